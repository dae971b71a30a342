"""README.md: its sample output is what the command prints, and its links lead to files."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.paths import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def without_version(line: str) -> str:
    """Return a line without what depends on the installed versions: onnxsim 0.4 also removes a Constant."""
    line = re.sub(r"nodes 5 → [34]$", "nodes 5 → 3 or 4", line)
    return re.sub(r"onnxruntime [\d.]+", "onnxruntime", line)


def test_every_line_of_the_sample_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onnx_migrate.cli.app import run

    (command,) = re.findall(r"\.venv/bin/onnx-migrate (.*)", TEXT)
    model, _, *options = shlex.split(command)
    sample = re.search(r"```\n\n((?: {4}.*\n|\n)+)\n?\(shortened\)", TEXT)
    assert sample

    with pytest.raises(SystemExit) as end:
        run([str(ROOT / model), str(tmp_path / "migrated.onnx"), *options])

    assert end.value.code == 0
    printed = {without_version(line) for line in capsys.readouterr().out.splitlines()}
    expected = [without_version(line[4:]) for line in sample[1].splitlines()]
    assert len(expected) > 10
    assert [line for line in expected if line not in printed] == []


def test_every_link_leads_to_a_file() -> None:
    targets = {target.partition("#")[0] for target in re.findall(r"\]\(([^)]+)\)", TEXT)}

    assert {"docs/commands.md", "CONTRIBUTING.md"} <= targets
    assert [
        target for target in sorted(targets) if "://" not in target and not (ROOT / target).is_file()
    ] == []
