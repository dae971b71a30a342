"""`--check`, `--dry-run` and `--diff` show the changes of a migration; `Call` has the paths that a command writes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import rich_click as click

from onnx_migrate.cached import cached_property
from onnx_migrate.cli.output.streams import STREAM
from onnx_migrate.messages import count_of, printable

if TYPE_CHECKING:
    from onnx_migrate.report.data import ReportData
    from onnx_migrate.report.diff import DiffEntry

__all__ = ["Call", "difference_of", "print_diff"]


@dataclass(frozen=True)
class Call:
    """One call of `onnx-migrate MODEL OUTPUT`: its files and its output, without the options of the migration."""

    model: str
    output: str | None
    output_option: str | None
    in_place: bool
    check: bool
    dry_run: bool
    diff: bool
    depfile: str | None
    html: str | None
    junit: str | None
    config: str | None
    as_json: bool
    verbose: bool
    quiet: bool
    split: bool = False

    @cached_property
    def target(self) -> str | None:
        """Where to write, "-" for stdout, None to write nothing. Raises click.UsageError."""
        outputs = [path for path in (self.output, self.output_option) if path is not None]
        preview = self.check or self.dry_run
        streamed = self.model == STREAM or any(map(_is_stdout, outputs))
        # A stream has no path that a dependency file could name.
        if self.depfile and (preview or self.in_place or streamed):
            raise click.UsageError(
                "--depfile needs a MODEL and another OUTPUT that are files: make and ninja track files"
            )
        if self.depfile and any("://" in name for name in (self.model, *outputs)):
            raise click.UsageError("--depfile needs files, not URLs: make and ninja track files")
        if self.in_place:
            if outputs:
                raise click.UsageError("--in-place replaces MODEL; leave OUTPUT out")
            if self.model == STREAM:
                raise click.UsageError("--in-place cannot replace stdin; name a file as MODEL")
            return None if preview else self.model
        if len(outputs) > 1:
            raise click.UsageError(
                f"OUTPUT is given twice, as {outputs[0]} and with --output {outputs[1]}; leave one out"
            )
        if not (outputs or preview):
            raise click.UsageError("name an OUTPUT, or use --in-place to replace MODEL")
        if preview:
            # A preview writes no model.
            return None
        if _is_stdout(outputs[0]):
            # A model would garble the terminal.
            if sys.stdout.isatty():
                raise click.UsageError("stdout is a terminal; name a file as OUTPUT")
            return STREAM
        return outputs[0]

    @property
    def files(self) -> list[str]:
        """The files that the result may be written to: the model, and its weights."""
        if self.target in (None, STREAM):
            return []
        return [file for model in self.models for file in (model, f"{model}.data")]

    @property
    def models(self) -> list[str]:
        """The models that the result is written to: OUTPUT, and with --split what is behind it."""
        return [str(self.target), *filter(None, [self.rest])]

    @property
    def rest(self) -> str | None:
        """The path of the second part of a model that is cut, None without one."""
        if not self.split or self.target in (None, STREAM):
            return None
        from onnx_migrate.files import rest_path

        return rest_path(str(self.target))

    @property
    def beside(self) -> list[str]:
        """The files that are written beside the result."""
        return list(filter(None, [self.depfile, self.html, self.junit]))

    @property
    def saving(self) -> tuple[str, ...]:
        """The flags that say how the result is saved."""
        names = ("in_place", "check", "dry_run")
        return tuple(f"--{name.replace('_', '-')}" for name in names if getattr(self, name))


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


def difference_of(report: ReportData) -> str:
    """Return what a migration changed, as in "opset 11 → 17, 3 nodes changed"."""
    before, after, count = report.before, report.after, len(report.changes)
    pairs = (("opset", before.opset, after.opset), ("IR", before.ir_version, after.ir_version))
    parts = [f"{label} {old} → {new}" for label, old, new in pairs if old != new]
    if count:
        parts.append(f"{count_of(count, 'node')} changed")
    return ", ".join(parts) or "; ".join(note.message for note in report.notes)
