"""The short report: the verdict, the sizes, the changes and warnings, in at most 16 lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from onnx_migrate.messages import count_of, markup_of, size_text
from onnx_migrate.report.data import INEXACT, ReportData
from onnx_migrate.report.verdict_text import (
    claim_lines,
    condition_lines,
    grouped,
    headline,
    metric_lines,
    run_line,
    sizes_line,
)
from onnx_migrate.report.writer import Writer
from onnx_migrate.rewrite.change_log import Change, Note

__all__ = ["both", "change_notes", "grade", "print_summary", "size_line", "times", "value_lines"]

_LINES = 15
"""Largest number of lines below the verdict."""

_WARNINGS = 4
"""Up to so many warnings are always shown; changes get the other lines."""

_LONGEST = 220
"""Maximum length of a line, in characters; a longer line is cut, and -v shows all of it."""

_SHOWN_NOTES = (
    "input-dims", "output-dims", "fixed-dims", "fixed-values", "cut", "written-out", "precision", "precision-error",
    "kept-precision", "other-numbers", "static", "unlisted", "inlined", "exporter-intent", "opset-raised",
)  # fmt: skip
"""Codes of notes on changes that a user sees: to inputs, outputs, types and numbers. The header line has others."""

_METRICS = 4
"""Lines of metrics: a heading and the outputs that differ most."""

_OWN = ("migrate_opset", "lower_opset", "resize_form", "cleanup", "simplify", "declared_shapes")
"""Passes that every migration runs: their changes come after those that the user asked for."""


def print_summary(report: ReportData, writer: Writer, arrow: str) -> None:
    """Print the verdict, then at most `_LINES` lines."""
    if report.outcome == "unchanged":
        writer.line(f"[bold green]unchanged[/]: the model needs no change; {headline(report.verification)}")
    else:
        writer.line(headline(report.verification))
    lines = [f"  {markup_of(report.model)}{arrow}", f"  {size_line(report)}", *_proof(report)]
    warnings, changes = list(_warnings(report)), list(_changes(report))
    # The last line tells how to see more.
    room = _LINES - len(lines) - 1
    if warnings:
        warnings = _first(warnings, max(_WARNINGS, room - 2 - len(changes)), "more warning")
        room -= len(warnings)
    if changes:
        lines += ["changes", *_first(changes, max(1, room - 1), "more kind of change")]
    writer.line(
        "\n".join(
            [*lines, *warnings, "  [dim]-v shows every changed node and note; --html FILE writes a page[/]"]
        )
    )


def _first(lines: Sequence[str], most: int, noun: str) -> list[str]:
    """Return the first lines; the last of them says how many more there are."""
    if len(lines) <= most:
        return list(lines)
    more = len(lines) - most + 1
    return [
        *lines[: most - 1],
        f"  and {count_of(more, noun)}".replace("kinds of changes", "kinds of change"),
    ]


def size_line(report: ReportData) -> str:
    """Return opset, IR version, nodes, parameters, bytes and time in one line; a number once where it did not change."""
    before, after = report.before, report.after
    kept_note = (
        " (kept; --opset N changes it)" if any(note.code == "opset-kept" for note in report.notes) else ""
    )
    parts = [
        f"opset {both(before.opset or 'none', after.opset or 'none')}{kept_note}",
        f"IR {both(before.ir_version, after.ir_version)}",
        f"nodes {both(f'{before.nodes:,}', f'{after.nodes:,}')}",
        f"parameters {both(f'{before.parameters:,}', f'{after.parameters:,}')}",
    ]
    # Sizes of files are only known after saving.
    sizes = report.file_bytes or (before.weight_bytes, after.weight_bytes)
    parts.append(f"{'file' if report.file_bytes else 'weights'} {both(*map(size_text, sizes))}")
    if report.seconds:
        parts.append(f"{sum(report.seconds.values()):.1f} s")
    return ", ".join(parts)


def both(old: object, new: object) -> str:
    """Return two values with an arrow, or the one value where they are equal."""
    return f"{old}" if old == new else f"{old} → {new}"


def _proof(report: ReportData) -> Iterator[str]:
    """Yield the conditions on sizes, and lines about the runs of the result."""
    if report.dynamic is not None:
        for text in condition_lines(report.dynamic):
            yield f"  [bold yellow]sizes[/]: {markup_of(text)}"
        if text := sizes_line(report.dynamic):
            yield f"  {markup_of(text)}"
    if report.verification is not None:
        yield from claim_lines(report.verification, short=True)
        if text := run_line(report.verification):
            yield f"  {markup_of(text)}"
        # Metrics of equal outputs say nothing.
        if any(metrics.equal < 1 for metrics in report.verification.metrics):
            yield from islice(metric_lines(report.verification), _METRICS)
    for proof in report.proved_in:
        yield f"  {markup_of(_cut(f'{proof.runtime}: {proof.text}'))}"
    for knowledge in report.operators_known:
        if not knowledge.unknown:
            yield f"  {markup_of(knowledge.sentence)}"


def _changes(report: ReportData) -> Iterator[str]:
    """Yield the changes of inputs and outputs, then those of nodes, with those that the user asked for first."""
    for note in change_notes(report):
        yield f"  {markup_of(_cut(note.message))}"
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in sorted(report.changes, key=lambda change: change.pass_name in _OWN):
        groups.setdefault((change.operators, change.reason), []).append(change)
    for (operators, reason), members in groups.items():
        yield f"  [green]{markup_of(operators)}[/]{times(members)}{grade(members)}: {markup_of(_cut(reason))}"
    yield from value_lines(report)


def value_lines(report: ReportData) -> Iterator[str]:
    """Yield the lines on the values of features."""
    for section, value in report.recorded:
        if text := section.summary(value):
            yield f"  [green]{markup_of(section.title)}[/]: {markup_of(_cut(text))}"


def change_notes(report: ReportData) -> list[Note]:
    """Return the notes on changes of inputs, outputs, types and numbers, the most important first."""
    shown = [note for note in report.notes if note.code in _SHOWN_NOTES and note.severity != "warning"]
    return sorted(shown, key=lambda note: _SHOWN_NOTES.index(note.code))


def times(members: Sequence[Change]) -> str:
    """Return the number of nodes with the same change, as in " ×3"; "" for one."""
    return f" ×{len(members)}" if len(members) > 1 else ""


def grade(members: Sequence[Change]) -> str:
    """Return how exact the changes of a group are; "" if the results are bit-identical."""
    inexact = sorted({INEXACT[member.exactness.value] for member in members} - {""})
    return f" [yellow]({', '.join(inexact)})[/]" if inexact else ""


def _warnings(report: ReportData) -> Iterator[str]:
    """Yield the warnings of the passes, and the limits of the verification."""
    claimed = report.verification is not None and bool(report.verification.statements)
    for note in report.notes:
        # The statements say the same in more detail.
        if note.severity == "warning" and not (claimed and note.code == "other-numbers"):
            yield f"[yellow]warning[/]: {markup_of(_cut(note.message))}"
    verdict, dynamic = report.verification, report.dynamic
    condition_notes = {condition.note for condition in dynamic.conditions} if dynamic else set()
    notes = [*(dynamic.notes if dynamic else ()), *(verdict.notes if verdict else ())]
    for text, more in grouped(note for note in notes if note not in condition_notes):
        yield f"[yellow]note[/]: {markup_of(_cut(text))}{f' ({more} more of this kind)' if more else ''}"


def _cut(text: str) -> str:
    """Return a text that fits on two lines of a terminal, cut at a word."""
    return text if len(text) <= _LONGEST else f"{text[: text.rfind(' ', 0, _LONGEST)]} …"
