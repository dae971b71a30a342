"""Runs the commands of docs/tutorial.md and writes their output into it. `python -m tools.pages.tutorial`."""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

__all__ = ["PAGE", "main", "page", "run_command"]

PAGE = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"```(console|bash|python)\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"[Ss]ave this as `(\w+\.py)`")


def main() -> None:
    """Write the page with the output of this version."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the page with the output that the commands print now, run in a folder of their own."""
    text = PAGE.read_text(encoding="utf-8")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return "".join(_parts(text))
        finally:
            os.chdir(here)


def _parts(text: str) -> Iterator[str]:
    end = 0
    for block in _BLOCK.finditer(text):
        before = text[end : block.start()]
        end = block.end()
        yield before + _renewed(block[1], block[2], saved_as=_FILE.findall(before)[-1:])
    yield text[end:]


def _renewed(language: str, code: str, saved_as: list[str]) -> str:
    """Run a block, and return it with the output of this version."""
    if language == "console":
        command = code.splitlines()[0]
        code = f"{command}\n{run_command(command)}"
    elif language == "python" and saved_as:
        Path(saved_as[0]).write_text(code, encoding="utf-8")
        runpy.run_path(saved_as[0])
    elif language == "python":
        exec(compile(code, "tutorial.md", "exec"), {})
    else:
        _run_shell(code)
    return f"```{language}\n{code}```"


def run_command(command: str) -> str:
    """Return all that a command of this package prints, without the spaces at the ends of lines."""
    from onnx_migrate.cli.app import run

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        run(shlex.split(command.removeprefix("$ "))[1:])
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def _run_shell(code: str) -> None:
    """Run the lines of a shell block that are about the files of the tutorial."""
    for line in code.splitlines():
        program, *words = shlex.split(line)
        if program == "onnx-migrate":
            run_command(line)
        elif program == "mkdir":
            os.mkdir(words[0])
        elif program == "cp":
            for name in words[:-1]:
                Path(words[-1], name).write_bytes(Path(name).read_bytes())


if __name__ == "__main__":
    main()
