"""`--check`, `--dry-run` and `--diff`: what a migration would do; and where a command writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.output.streams import STREAM
from onnx_migrate.printable import printable

if TYPE_CHECKING:
    from onnx_migrate.migration import Migration

__all__ = ["destination", "diff_lines", "print_diff"]


def destination(options: dict[str, Any]) -> str | None:
    """Return where to write, "-" for stdout, None to write nothing. Raises click.UsageError."""
    given = [path for path in (options["output"], options["output_option"]) if path is not None]
    preview = options["check"] or options["dry_run"]
    if options["depfile"] and (preview or options["in_place"] or STREAM in (options["model"], *given)):
        raise click.UsageError(
            "--depfile needs a MODEL and another OUTPUT that are files: make and ninja track files"
        )
    if options["depfile"] and any("://" in name for name in (options["model"], *given)):
        raise click.UsageError("--depfile needs files, not URLs: make and ninja track files")
    if options["in_place"]:
        if given:
            raise click.UsageError("--in-place replaces MODEL; leave OUTPUT out")
        if options["model"] == STREAM:
            raise click.UsageError("--in-place cannot replace stdin; name a file as MODEL")
        return None if preview else str(options["model"])
    if len(given) > 1 or not (given or preview):
        raise click.UsageError("name one OUTPUT, or use --in-place to replace MODEL")
    if preview:
        return None
    if given[0] == STREAM:
        if sys.stdout.isatty():
            raise click.UsageError("stdout is a terminal; name a file as OUTPUT")
        if options["save_as_external_data"]:
            raise click.UsageError(
                "--save-as-external-data writes two files, but stdout takes one; name a file as OUTPUT"
            )
    return str(given[0])


def diff_lines(migration: Migration, *, target: str | None) -> list[str]:
    """Return the lines of a diff from the original to the result; `target` is where the result will be written."""
    from onnx_migrate.report.diff import diff

    after = target if target not in (None, STREAM) else "migrated"
    names = migration.report.model, str(after)
    return list(diff(migration.original.proto, migration.structure, names=names))


def print_diff(lines: Iterable[str], *, err: bool) -> None:
    """Print the lines of a diff, in colours on a terminal."""
    for line in _coloured(lines):
        click.echo(line, err=err)


def _coloured(lines: Iterable[str]) -> Iterator[str]:
    colours = {"-": "red", "+": "green", "@": "cyan"}
    for line in map(printable, lines):
        head = line.startswith(("--- ", "+++ "))
        yield click.style(line, bold=True) if head else click.style(line, fg=colours.get(line[0]))
