"""The operators of a model before and after a migration, with the steps that changed them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from onnx_migrate.messages import count_of
from onnx_migrate.rewrite.change_log import Change
from onnx_migrate.rewrite.operator_counts import PassEffect, operator_name

__all__ = ["OperatorRow", "OperatorStep", "operator_table", "table_lines"]

_EMITTED = 3
"""Largest number of operators named in a step that writes a node with others."""

_STEPS = 3
"""Largest number of steps that a line of the text names."""


@dataclass(frozen=True)
class OperatorStep:
    """A rewrite of an operator's nodes, as in "Upsample-9 → Resize-13", or another change to them, by the pass `pass_name`.

    `step` is "" for changes of the pass other than rewrites of single nodes. `difference` is by how much it changed the number
    of nodes of this operator, `nodes` how many of them it rewrote.
    """

    pass_name: str
    step: str
    difference: int
    nodes: int = 0

    @property
    def label(self) -> str:
        """The step, or the pass where it has none."""
        return self.step or self.pass_name


@dataclass(frozen=True)
class OperatorRow:
    """An operator with its number of nodes in all bodies before and after, and the steps that changed these nodes."""

    operator: str
    before: int
    after: int
    steps: tuple[OperatorStep, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the number changed, or a node of the operator was rewritten."""
        return self.before != self.after or any(step.nodes for step in self.steps)

    @property
    def texts(self) -> list[str]:
        """The steps in words; if several steps changed the number, each has its difference."""
        several = sum(1 for step in self.steps if step.difference) > 1
        return [
            f"{step.label} ({step.difference:+,})" if several and step.difference else step.label
            for step in self.steps
        ]

    @property
    def words(self) -> str:
        """Return all the steps as text."""
        return ", ".join(self.texts)


def operator_table(
    before: Mapping[str, int],
    after: Mapping[str, int],
    changes: Sequence[Change],
    effects: Iterable[PassEffect],
) -> tuple[OperatorRow, ...]:
    """Return a row for each operator, in the order of their names.

    If the changes of a pass do not fully explain its effect on a number, the rest becomes a step without a rewrite.
    """
    steps: dict[str, dict[tuple[str, str], list[int]]] = defaultdict(dict)

    def add(operator: str, pass_name: str, step: str, difference: int, nodes: int) -> None:
        entry = steps[operator].setdefault((pass_name, step), [0, 0])
        entry[0] += difference
        entry[1] += nodes

    explained_until = 0
    for effect in sorted(effects, key=lambda effect: effect.first_change):
        # The rest is the part of the effect that no change explains.
        rest: dict[str, int] = defaultdict(int, effect.difference)
        for change, number in _kinds(changes[effect.first_change : effect.end_change]):
            for operator, difference, nodes in _parts(change):
                rest[operator] -= difference * number
                add(operator, change.pass_name, _step(change), difference * number, nodes * number)
        for operator, difference in rest.items():
            if difference:
                add(operator, effect.pass_name, "", difference, 0)
        explained_until = effect.end_change
    for change, number in _kinds(changes[explained_until:]):
        for operator, difference, nodes in _parts(change):
            add(operator, change.pass_name, _step(change), difference * number, nodes * number)
    return tuple(
        OperatorRow(
            operator,
            before.get(operator, 0),
            after.get(operator, 0),
            tuple(
                OperatorStep(*key, *values) for key, values in steps.get(operator, {}).items() if any(values)
            ),
        )
        for operator in sorted({*before, *after})
    )


def table_lines(rows: Sequence[OperatorRow], *, everything: bool = False) -> Iterator[str]:
    """Yield the lines of the table, aligned; unless `everything`, operators that did not change are only counted.

    Yields nothing if no operator changed.
    """
    if not any(row.changed for row in rows):
        return
    shown = [row for row in rows if everything or row.changed]
    width = max(len("operators"), *(len(row.operator) + 2 for row in shown))
    yield f"{'operators':{width}}  before   after"
    for row in shown:
        yield f"  {row.operator:{width - 2}}  {row.before:6,}  {row.after:6,}  {_said(row)}".rstrip()
    if others := len(rows) - len(shown):
        yield f"  {count_of(others, 'other operator')} unchanged"


def _said(row: OperatorRow) -> str:
    """Return the first steps that changed an operator, and how many more there are."""
    more = len(row.steps) - _STEPS
    return ", ".join(row.texts[:_STEPS]) + (f" and {count_of(more, 'more step')}" if more > 0 else "")


def _kinds(changes: Iterable[Change]) -> Iterator[tuple[Change, int]]:
    """Group changes with the same effect on operators; yield one change of each group, and the group's size."""
    counts_by_kind: dict[tuple[object, ...], list[Any]] = {}
    for change in changes:
        before, after = change.before, change.after
        into = None if after is None else (after.op_type, after.domain)
        # Changes of one kind are one row.
        key = (
            change.pass_name,
            before.op_type,
            before.domain,
            change.version_before,
            into,
            change.version_after,
        )
        counts_by_kind.setdefault((*key, change.emitted), [change, 0])[1] += 1
    yield from ((change, number) for change, number in counts_by_kind.values())


def _parts(change: Change) -> Iterator[tuple[str, int, int]]:
    """Yield each operator that a change affects, by how much its number of nodes grew, and how many nodes were rewritten."""
    before, after = _operator(change.before), None if change.after is None else _operator(change.after)
    yield before, 0 if before == after else -1, 1
    if after is not None and after != before:
        yield after, 1, 1
    helpers = change.helpers
    for helper in helpers:
        yield _operator(helper), 1, 0
    if not helpers:
        for operator in change.emitted:
            yield operator, 1, 0


def _operator(node: onnx.NodeProto) -> str:
    return operator_name(node.domain, node.op_type)


def _step(change: Change) -> str:
    """Return a short description of a change to its node; "" if operator and version stayed."""
    before = f"{change.before.op_type}-{change.version_before}"
    if change.after is None:
        others = list(dict.fromkeys(change.emitted))
        more = " + …" if len(others) > _EMITTED else ""
        return f"{before} → {' + '.join(others[:_EMITTED]) or 'removed'}{more}"
    if change.after.op_type != change.before.op_type:
        return f"{before} → {change.after.op_type}-{change.version_after}"
    return "" if change.version_after == change.version_before else f"{before} → {change.version_after}"
