"""`--check`, `--dry-run` and `--diff`: what would be done, without doing it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.output.streams import STREAM

if TYPE_CHECKING:
    from onnx_migrate.migration import Migration

__all__ = ["destination", "diff_lines", "print_diff"]


def destination(options: dict[str, Any]) -> str | None:
    """Return where to write, "-" for stdout, None to write nothing. Raises click.UsageError."""
    given = [path for path in (options["output"], options["output_option"]) if path is not None]
    preview = options["check"] or options["dry_run"]
    if options["depfile"] and (preview or options["in_place"] or STREAM in (options["model"], *given)):
        raise click.UsageError(
            "--depfile tells what a file was made from: it needs a MODEL and another OUTPUT"
        )
    if options["depfile"] and any("://" in name for name in (options["model"], *given)):
        raise click.UsageError("--depfile is for make and ninja, which know files and no URLs")
    if options["in_place"]:
        if given:
            raise click.UsageError("--in-place writes over MODEL: leave OUTPUT out")
        if options["model"] == STREAM:
            raise click.UsageError("--in-place has no place to write to: MODEL is stdin")
        return None if preview else str(options["model"])
    if len(given) > 1 or not (given or preview):
        raise click.UsageError("say where to write: MODEL OUTPUT, or --in-place to write over MODEL")
    if preview:
        return None
    if given[0] == STREAM:
        if sys.stdout.isatty():
            raise click.UsageError("stdout is a terminal: give OUTPUT a name")
        if options["save_as_external_data"]:
            raise click.UsageError("--save-as-external-data writes two files, and stdout takes one")
    return str(given[0])


def diff_lines(migration: Migration, *, target: str | None) -> list[str]:
    """Return the lines of a diff from the original to the result; `target` is where the result will be written."""
    from onnx_migrate.report.diff import diff

    after = target if target not in (None, STREAM) else "migrated"
    names = migration.report.model, str(after)
    return list(diff(migration.original.proto, migration.structure, names=names))


def print_diff(lines: Iterable[str], *, err: bool) -> None:
    """Print a diff, in colours on a terminal."""
    for line in _coloured(lines):
        click.echo(line, err=err)


def _coloured(lines: Iterable[str]) -> Iterator[str]:
    colours = {"-": "red", "+": "green", "@": "cyan"}
    for line in lines:
        head = line.startswith(("--- ", "+++ "))
        yield click.style(line, bold=True) if head else click.style(line, fg=colours.get(line[0]))
