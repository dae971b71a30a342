"""The report as text: short, or with every changed node and how the result compared with the original."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from onnx_migrate.errors import require_package
from onnx_migrate.messages import markup_of
from onnx_migrate.report.data import ReportData
from onnx_migrate.report.operator_table import table_lines
from onnx_migrate.report.request import Request, tool_versions, with_caps
from onnx_migrate.report.summary import both, grade, print_summary, size_line, times, value_lines
from onnx_migrate.report.verdict_text import (
    condition_lines,
    headline,
    proof_lines,
    short_verdict_lines,
    trial_lines,
    verdict_lines,
)
from onnx_migrate.report.writer import Writer
from onnx_migrate.rewrite.change_log import Change, Note
from onnx_migrate.verdicts import DynamicProof, RuntimeProof, Verdict

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_report", "print_verdict", "report_text"]


def report_text(report: ReportData, *, everything: bool = False) -> str:
    """Return the text that `print_report` prints without a terminal. Raises UsageError without rich."""
    require_package("rich", "the report as text", "pip install rich", "or take the report's json()")
    from rich.console import Console

    stream = io.StringIO()
    print_report(report, Console(file=stream, color_system=None, force_terminal=False), everything=everything)
    return stream.getvalue()


def print_report(report: ReportData, console: Console, *, target: str = "", everything: bool = False) -> None:
    """Print a report on a rich console, as plain text unless it is a terminal; `target` is the path of the result.

    `everything` adds every changed node, operator and note to the verdict, the sizes and the warnings.
    """
    writer = Writer(console)
    arrow = f" → {markup_of(target)}" if target else ""
    if report.header_only and not everything:
        _header(report, arrow, writer)
        for line in value_lines(report):
            writer.line(line)
        _proved_in(report.proved_in, writer)
    elif everything:
        _full(report, arrow, writer)
    else:
        print_summary(report, writer, arrow)


def _full(report: ReportData, arrow: str, writer: Writer) -> None:
    writer.line(headline(report.verification))
    writer.line(f"  {markup_of(report.model)}{arrow}")
    writer.line(f"  {'unchanged: ' if report.outcome == 'unchanged' else ''}{size_line(report)}")
    for text in condition_lines(report.dynamic) if report.dynamic else ():
        writer.line(f"  [bold yellow]sizes[/]: {markup_of(text)}")
    if report.outcome != "unchanged":
        _operators(report, writer)
    _changes(report.changes, writer)
    if report.notes:
        writer.head("notes")
        _notes(report.notes, writer)
    for section, value in report.recorded:
        _details(section.title, section.details(value), writer)
    if report.dynamic is not None:
        _dynamic(report.dynamic, writer)
    if report.verification is not None:
        writer.head("comparison with the original")
        for line in verdict_lines(report.verification):
            writer.line(line)
    _proved_in(report.proved_in, writer)
    if report.request is not None:
        _request(report.request, report, writer)


def _operators(report: ReportData, writer: Writer) -> None:
    head, *rows = list(table_lines(report.operators, everything=True)) or [""]
    if head:
        writer.head(head)
    for row in rows:
        writer.line(markup_of(row))


def _header(report: ReportData, arrow: str, writer: Writer) -> None:
    """Print one line on a model with changes only in its header, and one line for each further note."""
    before, after = report.before, report.after
    # Imports that no node uses were removed.
    gone = [domain for domain, _ in before.opset_imports if domain not in dict(after.opset_imports)]
    facts = [f"IR {both(before.ir_version, after.ir_version)}"]
    facts += [f"import{'s' * (len(gone) > 1)} of {', '.join(gone)} removed"] if gone else []
    facts += ["annotations removed"] if any(note.code == "annotations" for note in report.notes) else []
    writer.line(
        f"[bold]{markup_of(report.model)}{arrow}[/]: {markup_of(', '.join(facts))}; the graph is unchanged"
    )
    codes_above = ("ir-version", "unused-import", "annotations")
    _notes([note for note in report.notes if note.code not in codes_above], writer)


def _notes(notes: Iterable[Note], writer: Writer) -> None:
    for note in notes:
        writer.line(
            f"  {'[yellow]warning:[/] ' if note.severity == 'warning' else ''}{markup_of(note.message)}"
        )


def _details(title: str, details: Iterable[str], writer: Writer) -> None:
    """Print the lines on the value of a feature below their title, if there are any."""
    lines = list(details)
    if lines:
        writer.head(title)
    for line in lines:
        writer.line(f"  {markup_of(line)}")


def print_verdict(
    verdict: Verdict, console: Console, *, original: str, other: str, everything: bool = False
) -> None:
    """Print the verdict on two models on a rich console; `everything` adds each output and every run."""
    writer = Writer(console)
    writer.line(headline(verdict))
    writer.line(f"  {markup_of(other)} compared with {markup_of(original)}")
    for line in verdict_lines(verdict) if everything else short_verdict_lines(verdict):
        writer.line(line)
    _proved_in(verdict.proved_in, writer)


def _request(request: Request, report: ReportData, writer: Writer) -> None:
    """Print our knowledge of each target runtime, the versions that made the result, and the command that repeats it."""
    versions = tool_versions()
    named = ("onnx-migrate", "onnx", "onnxruntime")
    tools = ", ".join(f"{name} {versions[name] or 'not installed'}" for name in named)
    writer.head("runtimes and versions")
    for target in request.targets or ():
        writer.line(f"  {with_caps(target, markup_of(target.qualified))}")
    for knowledge in report.operators_known:
        writer.line(f"  {markup_of(knowledge.sentence)}")
    writer.line(f"  {markup_of(report.command or request.call)}")
    writer.line(f"  with {markup_of(tools)}")


def _changes(changes: Iterable[Change], writer: Writer) -> None:
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((change.operators, change.reason), []).append(change)
    if groups:
        writer.head("changed nodes")
    for (operators, reason), members in groups.items():
        writer.line(
            f"  [green]{markup_of(operators)}[/]{times(members)}{grade(members)}: {markup_of(reason)}"
        )
        for member in members:
            _change(member, writer)


def _change(change: Change, writer: Writer) -> None:
    scope = f" in {change.where.scope}" if change.where.scope not in ("", "graph") else ""
    inputs = ""
    if change.after is not None and change.before.input != change.after.input:
        inputs = f"  ({_list(change.before.input)}) → ({_list(change.after.input)})"
    writer.line(f"    {markup_of(change.where.node + scope + inputs)}")
    old, new = change.attributes
    for name, value in old.items():
        if name not in new:
            writer.line(f"        [red]- {markup_of(name)} = {markup_of(value)}[/]")
    for name, value in new.items():
        was = f", was {old[name]}" if name in old else ""
        writer.line(f"        [green]+ {markup_of(name)} = {markup_of(value + was)}[/]")
    if change.emitted:
        writer.line(f"        added nodes: {markup_of(', '.join(change.emitted))}")


def _list(names: Iterable[str]) -> str:
    return ", ".join(name or "''" for name in names)


def _dynamic(proof: DynamicProof, writer: Writer) -> None:
    writer.head("runs at other sizes")
    for line in trial_lines(proof):
        writer.line(line)


def _proved_in(proofs: Iterable[RuntimeProof], writer: Writer) -> None:
    lines = list(proof_lines(proofs))
    if lines:
        writer.head("run in other runtimes")
    for line in lines:
        writer.line(line)
