"""Prints where a model runs: a page for each runtime that was asked for, or a table of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from onnx_migrate.compatibility import Support
from onnx_migrate.messages import markup_of

if TYPE_CHECKING:
    from onnx_migrate.compatibility import Compatibility, RuntimeCompatibility
    from onnx_migrate.engine.incompatibility import Incompatibility

__all__ = ["print_advice", "print_outlooks"]

_SHOWN = 10
"""Number of changes shown without --verbose."""

_HEADLINES = {
    Support.AS_IS: "[green]runs as it is[/]",
    Support.AFTER: "[green]runs after migration[/]",
    Support.UNSURE: "[yellow]may run after migration[/]",
    Support.NO: "[red]does not run[/]",
}
_BASIS = {True: "measured", False: "read, not measured"}


def print_advice(advice: Compatibility, line: Callable[[str], None], *, everything: bool = False) -> None:
    """Print the advice for one runtime, with the function that prints a line."""
    target = advice.target
    line(
        f"\n[bold]for {markup_of(str(target))}[/] ({_BASIS[target.measured]}): {_HEADLINES[advice.standing]}"
    )
    if advice.objections:
        line("  as it is it does not:")
        for item in advice.objections:
            line(f"    {_objection(item)}")
    if advice.standing in (Support.AFTER, Support.UNSURE):
        line(f"  a migration brings it to opset {advice.opset}, IR {advice.ir_version}, and changes")
        shown = advice.changes if everything else advice.changes[:_SHOWN]
        for name, count in shown:
            line(f"    {markup_of(name)}{_times(count)}")
        if len(advice.changes) > len(shown):
            line(f"    … and {len(advice.changes) - len(shown)} kinds more (--verbose shows them)")
        if not advice.changes:
            line("    no node")
    if advice.obstacles:
        line("  a migration does not help, because of")
        for item in advice.obstacles:
            line(f"    {_objection(item)}")
    for text in advice.warnings:
        line(f"  [yellow]warning:[/] {markup_of(text)}")
    for text in advice.helps:
        line(f"  hint: {markup_of(text)}")


def print_outlooks(found: Sequence[RuntimeCompatibility], console: Console) -> None:
    """Print a table with one row per runtime, those that take the model first."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("runtime", "newest release", "as it is", "after migration", "basis", "in the way"):
        table.add_column(name, overflow="fold")
    for item in sorted(
        found, key=lambda item: (-item.advice.standing.rank, item.advice.target.table.title.lower())
    ):
        advice = item.advice
        table.add_row(
            markup_of(advice.target.table.title),
            f"{markup_of(advice.target.release)} {_SHORT[advice.standing]}".strip(),
            item.since(Support.AS_IS) or "–",
            item.since(Support.AFTER) or "–",
            "measured" if advice.target.measured else "read",
            markup_of(_brief(advice)),
        )
    console.print(table)


_SHORT = {
    Support.AS_IS: "[green]as it is[/]",
    Support.AFTER: "[green]migrated[/]",
    Support.UNSURE: "[yellow]perhaps[/]",
    Support.NO: "[red]no[/]",
}


def _brief(advice: Compatibility) -> str:
    """Return the first reason against the newest release, and how many more there are."""
    reasons: Iterable[Incompatibility] = advice.obstacles or advice.objections
    first, *others = [f"{item.reason}{_times(item.nodes)}" for item in reasons] or [""]
    short = first if len(first) <= 90 else f"{first[:88]} …"
    return f"{short}; {len(others)} more" if others else short


def _objection(item: Incompatibility) -> str:
    """Return a reason, and the first node with how many more there are."""
    if item.where is None:
        return markup_of(item.reason)
    others = item.nodes - 1
    more = f"; {others} more node{'s' if others > 1 else ''}" if others > 0 else ""
    return markup_of(f"{item.where}: {item.reason}{more}")


def _times(count: int) -> str:
    return f" ×{count}" if count > 1 else ""
