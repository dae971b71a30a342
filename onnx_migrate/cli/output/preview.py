"""`--check`, `--dry-run` and `--diff`: what a migration would do; and where a command writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.output.streams import STREAM
from onnx_migrate.printable import printable

if TYPE_CHECKING:
    from onnx_migrate.report.diff import DiffEntry

__all__ = ["destination", "print_diff"]


def destination(options: dict[str, Any]) -> str | None:
    """Return where to write, "-" for stdout, None to write nothing. Raises click.UsageError."""
    given = [path for path in (options["output"], options["output_option"]) if path is not None]
    preview = options["check"] or options["dry_run"]
    streamed = options["model"] == STREAM or any(map(_is_stdout, given))
    if options["depfile"] and (preview or options["in_place"] or streamed):
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
    if len(given) > 1:
        raise click.UsageError(
            f"OUTPUT is given twice, as {given[0]} and with --output {given[1]}; leave one out"
        )
    if not (given or preview):
        raise click.UsageError("name an OUTPUT, or use --in-place to replace MODEL")
    if preview:
        return None
    if _is_stdout(given[0]):
        if sys.stdout.isatty():
            raise click.UsageError("stdout is a terminal; name a file as OUTPUT")
        if options["save_as_external_data"]:
            raise click.UsageError(
                "--save-as-external-data writes two files, but stdout takes one; name a file as OUTPUT"
            )
        return STREAM
    return str(given[0])


def _is_stdout(path: str) -> bool:
    """Whether a path leads to standard output, as /dev/stdout does: to replace it would lose what it is."""
    if path == STREAM:
        return True
    from onnx_migrate.files.destination import open_descriptor

    return open_descriptor(path) == 1


def print_diff(entries: Iterable[DiffEntry], model: str, target: str | None, *, err: bool) -> None:
    """Print a diff of a model, in colours on a terminal; `target` is where the result is written."""
    from onnx_migrate.report.diff import diff_lines

    after = target if target not in (None, STREAM) else "migrated"
    for line in _coloured(diff_lines(entries, (model, str(after)))):
        click.echo(line, err=err)


def _coloured(lines: Iterable[str]) -> Iterator[str]:
    colours = {"-": "red", "+": "green", "@": "cyan"}
    for line in map(printable, lines):
        head = line.startswith(("--- ", "+++ "))
        yield click.style(line, bold=True) if head else click.style(line, fg=colours.get(line[0]))
