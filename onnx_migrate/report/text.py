"""The report as text: what changed and why, and how the result compared with the original."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

from onnx_migrate.errors import require_package
from onnx_migrate.messages import count_of, markup_of, size_text
from onnx_migrate.report.data import AS_DECLARED, INEXACT, ReportData
from onnx_migrate.report.operator_table import table_lines
from onnx_migrate.report.request import Request, tool_versions, with_caps
from onnx_migrate.rewrite.change_log import Change, Note
from onnx_migrate.verdicts import Comparison, DynamicProof, PrecisionChange, RuntimeProof, Verdict

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_report", "print_verdict", "report_text"]

_SHOWN = 5
"""Number of nodes shown for each kind of change without --verbose."""


def report_text(report: ReportData, *, everything: bool = False) -> str:
    """Return what `print_report` prints where there is no terminal. Raises UsageError without rich."""
    require_package("rich", "the report as text", "pip install rich", "or take the report's json()")
    from rich.console import Console

    stream = io.StringIO()
    print_report(report, Console(file=stream, color_system=None, force_terminal=False), everything=everything)
    return stream.getvalue()


def print_report(report: ReportData, console: Console, *, target: str = "", everything: bool = False) -> None:
    """Print a report on a rich console, as plain text unless it is a terminal; `target` is where the result was written."""
    writer = _Writer(console)
    before, after = report.before, report.after
    arrow = f" → {target}" if target else ""
    if report.header_only and not everything:
        _header(report, arrow, writer)
        _proved_in(report.proved_in, writer)
        return
    writer.line(f"[bold]{markup_of(report.model)}{markup_of(arrow)}[/]")
    if report.outcome == "unchanged":
        writer.line(f"unchanged: opset {after.opset}, IR {after.ir_version}, {count_of(after.nodes, 'node')}")
    else:
        writer.line(
            f"opset {_both(before.opset, after.opset)}, IR {_both(before.ir_version, after.ir_version)}, "
            f"nodes {_both(before.nodes, after.nodes)}, weights {_sizes(before.weight_bytes, after.weight_bytes)}"
            + (f", file {_sizes(*report.file_bytes)}" if report.file_bytes else "")
        )
        _operators(report, writer, everything)
    _changes(report.changes, writer, everything)
    if report.notes:
        writer.head("notes")
        _notes(report.notes, writer)
    if report.precision is not None and everything:
        _kept_nodes(report.precision, writer)
    if report.dynamic is not None:
        _dynamic(report.dynamic, writer)
    _verification(report.verification, writer)
    _proved_in(report.proved_in, writer)
    if report.request is not None:
        _request(report.request, report, writer)


def _operators(report: ReportData, writer: _Writer, everything: bool) -> None:
    head, *rows = list(table_lines(report.operators, everything=everything)) or [""]
    if head:
        writer.head(head)
    for row in rows:
        writer.line(markup_of(row))


def _header(report: ReportData, arrow: str, writer: _Writer) -> None:
    """Print one line on a model whose header alone changed, and one for each note that this line does not say."""
    before, after = report.before, report.after
    gone = [domain for domain, _ in before.opset_imports if domain not in dict(after.opset_imports)]
    facts = [f"IR {_both(before.ir_version, after.ir_version)}"]
    facts += [f"import{'s' * (len(gone) > 1)} of {', '.join(gone)} removed"] if gone else []
    facts += ["annotations removed"] if any(note.code == "annotations" for note in report.notes) else []
    writer.line(
        f"[bold]{markup_of(report.model)}{markup_of(arrow)}[/]: {markup_of(', '.join(facts))}; the graph is unchanged"
    )
    said = ("ir-version", "unused-import", "annotations")
    _notes([note for note in report.notes if note.code not in said], writer)


def _notes(notes: Iterable[Note], writer: _Writer) -> None:
    for note in notes:
        writer.line(
            f"  {'[yellow]warning:[/] ' if note.severity == 'warning' else ''}{markup_of(note.message)}"
        )


def _kept_nodes(change: PrecisionChange, writer: _Writer) -> None:
    """Print a line for each node and each weight that keeps its type."""
    lines = list(change.node_lines)
    if lines:
        writer.head(f"nodes and weights that stay in {change.old_type}")
    for line in lines:
        writer.line(f"  {markup_of(line)}")


def print_verdict(verdict: Verdict, console: Console, *, original: str, other: str) -> None:
    """Print the verdict on two models on a rich console."""
    writer = _Writer(console)
    writer.line(f"[bold]{markup_of(other)} compared with {markup_of(original)}[/]")
    _verification(verdict, writer)
    _proved_in(verdict.proved_in, writer)


class _Writer:
    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def head(self, text: str) -> None:
        self.line(f"\n[bold]{text}[/]")


def _request(request: Request, report: ReportData, writer: _Writer) -> None:
    """Say what was asked for, of which versions, and the command that does it again."""
    versions = tool_versions()
    named = ("onnx-migrate", "onnx", "onnxruntime")
    tools = ", ".join(f"{name} {versions[name] or 'not installed'}" for name in named)
    writer.head("asked for")
    for target in request.targets or ():
        writer.line(f"  {with_caps(target, markup_of(target.qualified))}")
    for known in report.operators_known:
        writer.line(f"  {markup_of(f'{known.runtime}: {known}')}")
    writer.line(f"  {markup_of(report.command or request.call)}")
    writer.line(f"  with {markup_of(tools)}")


def _changes(changes: Iterable[Change], writer: _Writer, everything: bool) -> None:
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        groups.setdefault((change.operators, change.reason), []).append(change)
    if groups:
        writer.head("changed nodes")
    for (operators, reason), members in groups.items():
        count = f" ×{len(members)}" if len(members) > 1 else ""
        inexact = sorted({INEXACT[member.exactness.value] for member in members} - {""})
        grade = f" [yellow]({', '.join(inexact)})[/]" if inexact else ""
        writer.line(f"  [green]{markup_of(operators)}[/]{count}{grade}: {markup_of(reason)}")
        shown = members if everything else members[:_SHOWN]
        for member in shown:
            _change(member, writer)
        if len(members) > len(shown):
            writer.line(f"    … and {len(members) - len(shown)} more (--verbose shows them)")


def _change(change: Change, writer: _Writer) -> None:
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


def _both(old: object, new: object) -> str:
    return f"{old}" if old == new else f"{old} → {new}"


def _sizes(before: int, after: int) -> str:
    return _both(size_text(before), size_text(after))


def _dynamic(proof: DynamicProof, writer: _Writer) -> None:
    writer.head("runs at other sizes")
    for trial in proof.trials:
        sizes = ", ".join(f"{symbol}={size}" for symbol, size in trial.sizes)
        writer.line(f"  {markup_of(sizes)}: {markup_of(trial.problem) or AS_DECLARED}")
    for note in proof.notes:
        writer.line(f"  {markup_of(note)}")


def _verification(verdict: Verdict | None, writer: _Writer) -> None:
    if verdict is None:
        writer.head("[yellow]not verified[/]: verification was turned off")
        return
    colour = "green" if verdict.verified else "yellow"
    writer.head(
        f"[{colour}]{verdict.kind.value}[/]{markup_of(verdict.summary.removeprefix(verdict.kind.value))}"
    )
    if verdict.first_difference is not None:
        writer.line(f"  {markup_of(str(verdict.first_difference))}")
        writer.line(f"    {markup_of(verdict.first_difference.problem)}")
        for reason in verdict.first_difference.reasons:
            writer.line(f"    why: {markup_of(reason)}")
    if verdict.verified and verdict.setting:
        writer.line(f"  {markup_of(verdict.setting)}")
    for statement in () if verdict.verified else verdict.statements:
        writer.line(f"  {markup_of(str(statement))}")
    if verdict.statements and verdict.comparisons:
        writer.line(f"  output by output, compared with {markup_of(verdict.compared_with)}:")
    for item in verdict.comparisons:
        shape = "×".join(map(str, item.shape_after or ())) or "scalar"
        if item.problem:
            finding = f"[red]{markup_of(item.problem)}[/]"
        elif item.doubt:
            finding = f"[yellow]{markup_of(item.doubt)}[/]"
        elif item.identical:
            finding = "bit-identical"
        else:
            finding = (
                f"differs by up to {item.largest_absolute:.3g}, {item.largest_relative:.1g} of the largest value;"
                f" {item.allowed:.3g} is allowed"
            )
        if item.left_out:
            finding += (
                f"; {item.left_out:,} of {item.elements:,} elements are undefined or unstable, and left out"
            )
        writer.line(f"  {markup_of(item.output)}  {item.dtype_after} {shape}  {finding}")
        if item.problem:
            _spread(item, writer)
    for note in (*map(str, verdict.rounded), *verdict.notes):
        writer.line(f"  {markup_of(note)}")


def _spread(item: Comparison, writer: _Writer) -> None:
    """Print where an output differs most, and how many of its elements differ by how much."""
    if item.largest_at is not None:
        writer.line(f"    differs {markup_of(str(item.largest_at))}")
    for row in item.histogram.lines() if item.histogram else ():
        writer.line(f"      {row}")


def _proved_in(proofs: Iterable[RuntimeProof], writer: _Writer) -> None:
    proofs = list(proofs)
    if proofs:
        writer.head("run in other runtimes")
    for proof in proofs:
        colour = "green" if proof.outcome in ("right", "gained") else "yellow" if proof.passed else "red"
        writer.line(f"  [{colour}]{markup_of(proof.runtime)}[/]: {markup_of(proof.text)}")
        for note in proof.notes:
            writer.line(f"    {markup_of(note)}")
