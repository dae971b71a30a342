"""Prints inspections on a rich console: one model in full, a table with a row for each model, or where a model runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from onnx_migrate.compatibility import Support
from onnx_migrate.messages import count_of, markup_of, size_text
from onnx_migrate.report.data import INEXACT

if TYPE_CHECKING:
    from onnx_migrate.compatibility import Compatibility, RuntimeCompatibility
    from onnx_migrate.engine.incompatibility import Incompatibility
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.inspection import ForeignOperator, Inspection
    from onnx_migrate.rewrite.change_log import Change

__all__ = ["outlook_lines", "print_advice", "print_inspection", "print_outlooks", "print_overview"]

_SHOWN = 10
"""Number of changes and of refusals shown without --verbose."""

_HEADLINES = {
    Support.AS_IS: "[green]runs unchanged[/]",
    Support.AFTER: "[green]runs after a migration[/]",
    Support.UNSURE: "[yellow]may run after a migration[/]",
    Support.NO: "[red]does not run[/]",
}
_SHORT = {
    Support.AS_IS: "[green]unchanged[/]",
    Support.AFTER: "[green]migrated[/]",
    Support.NOT_KNOWN: "[yellow]not known[/]",
    Support.UNSURE: "[yellow]perhaps[/]",
    Support.NO: "[red]no[/]",
}


_GROUPS = {
    Support.AS_IS: "[green]runs unchanged[/] in",
    Support.AFTER: "[green]runs after a migration[/] in",
    Support.UNSURE: "[yellow]may run after a migration[/] in",
    Support.NOT_KNOWN: "[yellow]we do not know[/] whether these support every operator of it:",
    Support.NO: "[red]does not run[/] in",
}
_BASIS = {"read": "by its documentation, not tested by us", "measured": "tested by us"}
_SOURCE = {"read": "documentation", "measured": "tested"}


def print_overview(found: Sequence[Inspection], console: Console, *, to: str) -> None:
    """Print a table with one row per model; `to` is the heading of the column with what a migration would do."""
    table = _table("model", "opset", "IR", "nodes", "weights", "reachable")
    table.add_column(markup_of(to), overflow="fold")
    for inspection in found:
        table.add_row(
            markup_of(inspection.model),
            str(inspection.opset or "none"),
            str(inspection.summary.ir_version),
            str(inspection.nodes),
            size_text(inspection.weight_bytes),
            _span(inspection.reachability.opsets),
            _outlook(inspection)
            if f"to {inspection.target}" == to or inspection.plan is None
            else f"{inspection.target}: {_outlook(inspection)}",
        )
    console.print(table)


def print_inspection(item: Inspection, console: Console, *, everything: bool = False) -> None:
    """Print all that is known of a model."""

    def line(text: str) -> None:
        console.print(text, highlight=False, soft_wrap=True)

    line(f"[bold]{markup_of(item.model)}[/]")
    others = ", ".join(f"{domain} {version}" for domain, version in item.summary.opset_imports if domain)
    line(
        f"opset {item.opset or 'none'}{markup_of(f' ({others})' if others else '')}, IR {item.summary.ir_version}, "
        f"{count_of(item.nodes, 'node')}, {count_of(item.weights, 'weight')} of {size_text(item.weight_bytes)}"
        + (f", made by {markup_of(item.producer)}" if item.producer else "")
    )
    for name in item.external_files:
        line(f"weights in {markup_of(name)}")
    for problem in item.problems:
        line(f"[yellow]warning:[/] {markup_of(problem)}")
    for advice in item.advice:
        print_advice(advice, line, everything=everything)
    if item.outlooks:
        line("")
        if not everything:
            for text in outlook_lines(item.outlooks):
                line(text)
            return
        print_outlooks(item.outlooks, console)
    for title, ports in (("inputs", item.summary.inputs), ("outputs", item.summary.outputs)):
        line(f"\n[bold]{title}[/]")
        for port in ports:
            line(f"  {markup_of(str(port))}")
    line("\n[bold]operators[/]")
    table = _table("operator", "version", "nodes")
    for operator in item.operators:
        name = f"{operator.domain}:{operator.name}" if operator.domain else operator.name
        table.add_row(markup_of(name), str(operator.version or "–"), str(operator.count))
    console.print(table)
    if item.foreign:
        line("\n[bold]other domains[/]")
        _some([f"  {markup_of(_foreign(operator))}" for operator in item.foreign], line, everything)
    line(f"\n[bold]to opset {item.target}[/]: {_outlook(item)}")
    if item.plan is not None:
        _some(list(_changes(item.plan.changes, everything)), line, everything)
        for note in item.plan.notes:
            line(f"  {'[yellow]warning:[/] ' if note.severity == 'warning' else ''}{markup_of(note.message)}")
    by_domain = [
        ("opset", item.reachability),
        # Custom domains have opsets of their own.
        *((f"{it.domain} opset", it.reachability) for it in item.domains),
    ]
    for name, reachability in by_domain:
        line(f"\n[bold]reachable[/]: {markup_of(name)} {_span(reachability.opsets)}")
        refusals = [f"  not {_span(no.opsets)}: {_error_line(no.error)}" for no in reachability.refusals]
        _some(refusals, line, everything)


def print_advice(advice: Compatibility, line: Callable[[str], None], *, everything: bool = False) -> None:
    """Print the advice for one runtime, with the function that prints a line."""
    line(f"\n[bold]for {markup_of(str(advice.target))}[/]: {_headline(advice)}")
    if advice.objections:
        line("  unchanged it does not run:")
        for objection in advice.objections:
            line(f"    {_objection(objection)}")
    if advice.objections and not advice.obstacles:
        line(f"  a migration converts it to opset {advice.opset}, IR {advice.ir_version}, and changes")
        changes = [f"    {markup_of(name)}{_times(count)}" for name, count in advice.changes]
        _some(changes or ["    no node"], line, everything, "    … and {} more kinds (-v shows them)")
    if advice.obstacles:
        line("  a migration does not help:")
        for objection in advice.obstacles:
            line(f"    {_objection(objection)}")
    for text in advice.warnings:
        line(f"  [yellow]warning:[/] {markup_of(text)}")
    for text in advice.helps:
        line(f"  hint: {markup_of(text)}")


def _changes(changes: Iterable[Change], everything: bool) -> Iterator[str]:
    """Yield a line for each change; without `everything`, equal changes of several nodes share a line."""
    kinds: dict[object, list[Change]] = {}
    for change in changes:
        kind = (change.where if everything else None, change.operators, change.reason, change.exactness)
        kinds.setdefault(kind, []).append(change)
    for first, *others in kinds.values():
        subject = f"{first.operators}{_times(1 + len(others))}" if others else _node(first)
        inexact = INEXACT[first.exactness.value]
        doubt = f" [yellow]({inexact})[/]" if inexact else ""
        yield f"  {markup_of(subject)}: {markup_of(first.reason)}{doubt}"


def _foreign(operator: ForeignOperator) -> str:
    """Return the effect of `--to-onnx-ops` on an operator."""
    name = f"{operator.domain}.{operator.name}, {count_of(operator.count, 'node')}"
    if operator.written:
        best = f"; opset {operator.direct} or newer gives the shortest form" if operator.direct else ""
        return f"{name}: --to-onnx-ops replaces it by standard operators{best}"
    return f"{name}: --to-onnx-ops cannot replace it: {operator.reason}" + (
        f" ({operator.hint})" if operator.hint else ""
    )


def _headline(advice: Compatibility) -> str:
    """Return whether a runtime runs a model, and how that is known."""
    knowledge = advice.operators
    if advice.standing is not Support.NOT_KNOWN or knowledge is None:
        unknown = f"; {markup_of(str(knowledge))}" if knowledge is not None and knowledge.unknown else ""
        return f"{_HEADLINES[advice.standing]} ({_BASIS.get(advice.basis, advice.basis)}){unknown}"
    after = "after a migration the" if advice.objections else "the"
    sentence = knowledge.warning.partition(": ")[2]
    return f"[yellow]{after} opset fits, but {markup_of(sentence)}[/]"


def outlook_lines(found: Sequence[RuntimeCompatibility]) -> Iterator[str]:
    """Yield a line for each answer, with the runtimes that give it and their newest releases."""
    for support, title in _GROUPS.items():
        targets = [outlook.advice.target for outlook in found if outlook.advice.standing is support]
        names = sorted(
            (f"{target.table.title} {target.release}".strip() for target in targets), key=str.lower
        )
        if names:
            yield f"{title} {markup_of(', '.join(names))}"
    yield "[dim]-v shows the releases, the reasons and the sources in a table; --for RUNTIME shows one runtime[/]"


def print_outlooks(found: Sequence[RuntimeCompatibility], console: Console) -> None:
    """Print a table with one row per runtime, those that take the model first."""
    table = _table("runtime", "newest release", "unchanged", "after a migration", "source", "reason")
    for item in sorted(
        found, key=lambda item: (-item.advice.standing.rank, item.advice.target.table.title.lower())
    ):
        advice = item.advice
        table.add_row(
            markup_of(advice.target.table.title),
            f"{markup_of(advice.target.release)} {_SHORT[advice.standing]}".strip(),
            item.since(Support.AS_IS) or "–",
            item.since(Support.AFTER) or "–",
            _SOURCE.get(advice.basis, advice.basis) if advice.standing is not Support.NOT_KNOWN else "",
            markup_of(_brief(advice)),
        )
    console.print(table)


def _brief(advice: Compatibility) -> str:
    """Return the first reason against the newest release, and how many more there are."""
    reasons: Iterable[Incompatibility] = advice.obstacles or advice.objections
    reasons_text = [f"{objection.reason}{_times(objection.nodes)}" for objection in reasons]
    # The operators are the reason then.
    if advice.standing is Support.NOT_KNOWN:
        reasons_text.insert(0, str(advice.operators))
    first, *others = reasons_text or [""]
    short = first if len(first) <= 90 else f"{first[:88]} …"
    return f"{short}; {len(others)} more" if others else short


def _objection(item: Incompatibility) -> str:
    """Return a reason, and the first node with how many more there are."""
    if item.where is None:
        return markup_of(item.reason)
    more = f"; {count_of(item.nodes - 1, 'more node')}" if item.nodes > 1 else ""
    return markup_of(f"{item.where}: {item.reason}{more}")


def _times(count: int) -> str:
    return f" ×{count}" if count > 1 else ""


def _node(change: Change) -> str:
    """Return the node of a change, as in "'clip1' (Clip-6 → Clip-13)"."""
    return str(change.where._replace(operator=change.operators, from_version=None, to_version=None))


def _some(
    lines: list[str],
    line: Callable[[str], None],
    everything: bool,
    more: str = "  … and {} more (-v shows them)",
) -> None:
    shown = lines if everything else lines[:_SHOWN]
    for text in shown:
        line(text)
    if len(lines) > len(shown):
        line(more.format(len(lines) - len(shown)))


def _outlook(item: Inspection) -> str:
    if item.plan is None:
        assert item.refusal is not None
        return f"[red]refused[/], {_error_line(item.refusal)}"
    severities = Counter(note.severity for note in item.plan.notes)
    nothing = "nothing changes" if item.plan.same else ""
    parts = [nothing or f"[green]{count_of(len(item.plan.changes), 'node')} changed[/]"]
    parts += [
        count_of(severities[kind], noun)
        for kind, noun in (("info", "note"), ("warning", "warning"))
        if severities[kind]
    ]
    return ", ".join(parts)


def _error_line(error: MigrateError) -> str:
    return f"{error.code}: {markup_of(error.with_hint)}"


def _span(opsets: Iterable[int]) -> str:
    """Return increasing numbers as ranges, as in "9 to 12, 14"."""
    ranges: list[list[int]] = []
    for opset in opsets:
        if ranges and opset == ranges[-1][1] + 1:
            ranges[-1][1] = opset
        else:
            ranges.append([opset, opset])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in ranges) or "none"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(
            name, overflow="fold", justify="right" if name in ("opset", "IR", "nodes") else "left"
        )
    return table
