"""Writes docs/onnx-migrate.1, the man page, from the commands' own help. `python -m tools.pages.man_page`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import rich_click as click

from onnx_migrate import __version__
from onnx_migrate.cli.app import app
from onnx_migrate.cli.options.panels import groups_of
from onnx_migrate.cli.stop_signals import PROGRAM
from tests.support.paths import ROOT
from tools.pages.commands_page import argument_text, default_text, value_text

__all__ = ["PAGE", "escaped", "main", "page"]

PAGE = ROOT / "docs" / f"{PROGRAM}.1"

_BLOCK = "\b\n"
"""What a paragraph begins with whose lines the help keeps."""

_SYMBOLS = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti", '"': "\\(dq"}
"""What roff would print as a typographic character, or read as its own."""

_FILES = (
    ("onnx-migrate.toml", "Options in a file, in the working folder or the nearest parent that has one; also the table "
     "[tool.onnx-migrate] of pyproject.toml."),
    (".onnx-migrate.jsonl", "What a batch has done, in the folder of its results; batch --resume reads it."),
)  # fmt: skip

_ENVIRONMENT = (
    ("OMP_NUM_THREADS", "The number of threads on which ONNX Runtime runs a model."),
    ("TMPDIR", "Where temporary files are written, such as models that are downloaded."),
    ("COLUMNS", "The width of tables."),
    ("_ONNX_MIGRATE_COMPLETE", 'Set to bash_source, zsh_source or fish_source, the command prints the completion of that shell: '
     'eval "$(_ONNX_MIGRATE_COMPLETE=bash_source onnx-migrate)".'),
)  # fmt: skip


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="ascii")


def page() -> str:
    """Return the page for the commands as they are, in ASCII, for groff and mandoc."""
    summary, *body = _paragraphs(app)
    lines = [
        '.\\" Written by python -m tools.pages.man_page.',
        f'.TH {PROGRAM.upper()} 1 "" "{PROGRAM} {__version__}" "User Commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{escaped(PROGRAM)} \\- {escaped(summary.rstrip('.').replace('Bring', 'bring', 1))}",
        ".SH SYNOPSIS",
        *_synopsis(f"{PROGRAM}", "[OPTIONS] MODEL OUTPUT"),
        *_synopsis(f"{PROGRAM}", "COMMAND [OPTIONS] ..."),
    ]
    for title, paragraphs in _sections(body).items():
        lines += [f".SH {title}", *(line for paragraph in paragraphs for line in _block(paragraph))]
    lines.append(".SH COMMANDS")
    for name, command in app.commands.items():
        lines += _command(name, command)
    for title, rows in (("FILES", _FILES), ("ENVIRONMENT", _ENVIRONMENT)):
        lines.append(f".SH {title}")
        for name, text in rows:
            lines += [".TP", f"\\fB{escaped(name)}\\fR", escaped(text)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return text as roff prints it, character for character; a line of it may begin with any."""
    signs = (_SYMBOLS.get(sign) or (sign if sign.isascii() else f"\\[u{ord(sign):04X}]") for sign in text)
    return re.sub(r"(?m)^(?=\.)", r"\\&", "".join(signs))


def _sections(paragraphs: list[str]) -> dict[str, list[str]]:
    """Return the paragraphs of the program's help by the section of a man page that they belong to."""
    exits, blocks = _BLOCK + "Exit codes:\n", [item for item in paragraphs if item.startswith(_BLOCK)]
    return {
        "DESCRIPTION": [item for item in paragraphs if item not in blocks],
        "EXAMPLES": [item for item in blocks if not item.startswith(exits)],
        '"EXIT STATUS"': [_BLOCK + item.removeprefix(exits) for item in blocks if item.startswith(exits)],
    }


def _command(name: str, command: click.Command) -> Iterator[str]:
    yield f".SS {escaped(PROGRAM)} {escaped(name)}"
    arguments = [item for item in command.params if isinstance(item, click.Argument)]
    yield from _synopsis(f"{PROGRAM} {name}", " ".join(["[OPTIONS]", *map(argument_text, arguments)]))
    for paragraph in _paragraphs(command):
        yield from _block(paragraph)
    for group, options in groups_of(command):
        example = group.examples.get(str(command.name))
        yield ".PP"
        yield f"\\fI{escaped(group.title)}\\fR"
        if example:
            yield from (".br", escaped(f"{PROGRAM} {example}"))
        for option in options:
            yield from _option(option)


def _option(option: click.Option) -> Iterator[str]:
    names = ", ".join(f"\\fB{escaped(name)}\\fR" for name in (*option.opts, *option.secondary_opts))
    value, default = value_text(option), default_text(option)
    yield ".TP"
    yield f"{names} \\fI{escaped(value)}\\fR" if value else names
    yield escaped(f"{option.help}" + (f" Default: {default}." if default is not None else ""))


def _paragraphs(command: click.Command) -> list[str]:
    return re.split(r"\n{2,}", inspect.cleandoc(command.help or ""))


def _synopsis(words: str, rest: str) -> list[str]:
    return [".PP", f"\\fB{escaped(words)}\\fR {escaped(rest)}"]


def _block(paragraph: str) -> list[str]:
    """Return a paragraph; one after \\b keeps its lines."""
    if not paragraph.startswith(_BLOCK):
        return [".PP", escaped(" ".join(paragraph.split()))]
    return [".PP", ".nf", escaped(paragraph.removeprefix(_BLOCK)), ".fi"]


if __name__ == "__main__":
    main()
