"""Records what the command line does with models, so that a refactoring can show that it changed nothing.

    python -m tests.support.unchanged OUT [--tool /path/to/python] [--quick] [MODEL ...]

Runs every case of `CASES` on every model (all fixtures by default) with the onnx-migrate that `--tool` imports, and
writes to OUT one result.onnx and one report.txt for each. Record one commit and another, then `diff -r` the two folders.
Times, versions and paths are left out of the reports; nothing else is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

QUICK = {
    "lift": ["--opset=17", "--no-simplify", "--no-verify", "--json"],
    "newest": ["--opset=26", "--no-simplify", "--no-verify", "--json", "--keep-initializers-as-inputs"],
    "refused": ["--opset=9", "--no-verify", "--json"],
    "dynamic_unproved": ["--dynamic-batch", "--no-simplify", "--no-verify", "--json"],
    "sizes": ["--resize-form=sizes", "--no-simplify", "--no-verify", "--json"],
    "intent": ["--resize-intent", "--no-simplify", "--no-verify", "--json"],
    "opencv": ["--for=opencv==4.8", "--no-simplify", "--no-verify", "--json"],
    "fixed": ["--fix=batch=2", "--no-simplify", "--no-verify", "--json"],
}
PROVED = {
    "default": ["--opset=17", "--json"],
    "text": ["--opset=21", "--no-simplify", "--verbose"],
    "dynamic": ["--dynamic-batch", "--no-simplify", "--json"],
    "dynamic_simplified": ["--dynamic-batch", "--opset=17"],
    "check": ["--opset=17", "--check", "--diff"],
}
"""Options of `onnx-migrate MODEL OUTPUT`; with --quick only those of the first table, which run no model."""

FREE = re.compile(
    r'"(?:seconds|version|onnx)": (?:"[^"]*"|[\d.e-]+)|[\d.]+ (?:s|ms|GB|MB)\b|onnxruntime \d[\d.]*', re.ASCII
)
"""Text that differs between two runs of one tool."""


def cases(models: list[Path], quick: bool) -> Iterator[tuple[Path, str, list[str], bool]]:
    """Give a model, the name of a case, the arguments and whether they write a result."""
    for model in models:
        for name, options in {**QUICK, **({} if quick else PROVED)}.items():
            yield model, name, options, "--check" not in options
        yield model, "inspect", ["inspect", "--json"], False
        yield model, "inspect_text", ["inspect"], False


def run(tool: str, out: Path, model: Path, name: str, options: list[str], writes: bool) -> None:
    """Run one case and record it."""
    folder = out / model.stem / name
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / "result.onnx"
    result.unlink(missing_ok=True)
    if options[0] == "inspect":
        arguments = ["inspect", str(model), *options[1:]]
    else:
        arguments = [str(model), *([str(result)] if writes else []), *options]
    done = subprocess.run(
        [tool, "-m", "onnx_migrate", *arguments],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200", "PYTHONHASHSEED": "0"}, cwd=folder,
    )  # fmt: skip
    printed = f"exit {done.returncode}\n{without_seconds(done.stdout)}\n{done.stderr}"
    printed = FREE.sub("…", printed.replace(str(result), "RESULT").replace(str(model), "MODEL"))
    (folder / "report.txt").write_text(printed, encoding="utf-8")


def without_seconds(text: str) -> str:
    """Return a JSON report without its times, and other text as it is."""
    try:
        report = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_pruned(report), indent=1, sort_keys=True)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if key != "seconds"}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


def main() -> None:
    """Record all cases, two at a time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--tool", default=sys.executable)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_intermixed_args()
    models = [path.resolve() for path in given.models] or sorted((ROOT / "fixtures").glob("*.onnx"))
    with ThreadPoolExecutor(2) as pool:
        done = [
            pool.submit(run, given.tool, given.out.resolve(), *case) for case in cases(models, given.quick)
        ]
        for future in done:
            future.result()
    print(f"{len(done)} cases of {len(models)} models in {given.out}")


if __name__ == "__main__":
    main()
