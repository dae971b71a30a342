"""README.md: its sample output is what the command prints, its links lead to files, its options (and of pipelines.md) exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import rich_click as click

from tests.support.paths import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PIPELINES = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")


def without_version(line: str) -> str:
    """Return a line without what depends on the installed versions: onnxsim 0.4 also removes a Constant."""
    line = re.sub(r"nodes 5 → [34], weights .*$", "nodes 5 → 3 or 4", line)
    line = re.sub(r"Constant       2       [01]  .*$", "Constant 2 → 0 or 1", line)
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


def options(*commands: click.Command) -> set[str]:
    return {
        name for command in commands for item in command.params for name in (*item.opts, *item.secondary_opts)
    }


@pytest.mark.parametrize(
    ("text", "shell", "others"), [(TEXT, "bash", set()), (PIPELINES, "sh", {"dask", "pip"})]
)
def test_the_commands_that_a_page_names_have_these_options(text: str, shell: str, others: set[str]) -> None:
    from onnx_migrate.cli.app import app

    lines = [
        line for block in re.findall(rf"```{shell}\n(.*?)```", text, re.DOTALL) for line in block.splitlines()
    ]
    assert len(lines) > 10
    for line in lines:
        program, *words = shlex.split(line.rpartition(" | ")[2], comments=True)
        if program in others:
            continue
        command = app.commands[words[0] if words[0] in app.commands else "migrate"]
        assert program == "onnx-migrate"
        assert {word.partition("=")[0] for word in words if word.startswith("--")} <= options(command), line


def test_the_options_that_the_page_on_pipelines_names_exist() -> None:
    from onnx_migrate.cli.app import app

    assert set(re.findall(r"`(--[a-z-]+)", PIPELINES)) <= options(*app.commands.values())


def test_the_configuration_of_the_page_on_pipelines_is_read(tmp_path: Path) -> None:
    from onnx_migrate.cli.app import app
    from onnx_migrate.cli.options import config

    (block,) = re.findall(r"```toml\n(.*?)```", PIPELINES, re.DOTALL)
    path = tmp_path / "onnx-migrate.toml"
    path.write_text(block, encoding="utf-8")

    read = config._read(path, click.Context(app.commands["batch"]))

    assert read.options["jobs"] == 4
    assert read.overrides[0][0] == ("legacy/*", "*_int8.onnx")


def test_what_it_does_and_for_whom_is_in_the_first_ten_lines() -> None:
    head = "\n".join(TEXT.splitlines()[:10])

    for word in (
        "opset",
        "proves",
        "runtime or chip refuses",
        "folders of models",
        "in a build",
        "converter",
    ):
        assert word in head


def test_pictures_exist_in_light_and_dark_and_say_what_they_show() -> None:
    pictures = re.findall(
        r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img ([^>]+)>', TEXT
    )

    assert len(pictures) == TEXT.count("<picture>") == 2
    for dark, light in pictures:
        assert (ROOT / dark).stat().st_size < 150_000
        assert f'src="{dark.replace("-dark", "-light")}"' in light
        assert len(re.findall(r'alt="([^"]+)"', light)[0]) > 60


def test_the_figure_of_speed_is_of_the_figures() -> None:
    from tests.docs.speed_figure import PICTURES, drawing, rows

    for path, scheme in PICTURES.items():
        assert path.read_text(encoding="utf-8") == drawing(scheme), "run python -m tests.docs.speed_figure"
    for name, seconds, _ in rows()[1]:
        assert f"{name} {seconds:g} s" in TEXT
