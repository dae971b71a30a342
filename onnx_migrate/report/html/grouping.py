"""Groups changes that differ only in names and values, so that a page of thousands of changes stays short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnx_migrate.report.data import INEXACT
from onnx_migrate.report.html.node_diagram import Drawing, draw
from onnx_migrate.rewrite.change_log import Change

__all__ = ["ChangeGroup", "Column", "Form", "grouped"]


_LIST = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True)
class Column:
    """A text in which the nodes of a form differ: its index among the texts of the drawing, and its label."""

    index: int
    label: str


@dataclass(frozen=True)
class Form:
    """Nodes that share one drawing: the texts of the first node, and the texts in which the nodes differ.

    `rows` has a row for every node, the first included, with the texts of `columns`; `unlisted` counts nodes left out.
    """

    drawing: Drawing
    texts: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    unlisted: int

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self.rows) + self.unlisted


@dataclass(frozen=True)
class ChangeGroup:
    """Nodes of one operator that became the same operator for the same reason; lists in `reason` are shown as "[…]".

    `inexact` says how the result may differ; "" if it is bit-identical.
    """

    before: str
    after: str
    reason: str
    inexact: str
    forms: tuple[Form, ...]

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(form.nodes for form in self.forms)


def grouped(changes: Iterable[Change], *, listed: int) -> tuple[ChangeGroup, ...]:
    """ChangeGroup changes, in linear time; at most `listed` nodes of each form get a row."""
    groups: dict[tuple[str, str, str], list[Change]] = {}
    for change in changes:
        before = f"{change.before.op_type}-{change.version_before}"
        if change.after is not None:
            became = f"{change.after.op_type}-{change.version_after}"
        else:
            became = " + ".join(dict.fromkeys(node.op_type for node in change.helpers)) or "removed"
        groups.setdefault((before, became, _LIST.sub("[…]", change.reason)), []).append(change)
    return tuple(
        ChangeGroup(
            *key,
            ", ".join(sorted({INEXACT[member.exactness.value] for member in members} - {""})),
            _forms(members, listed),
        )
        for key, members in groups.items()
    )


def _forms(changes: Sequence[Change], listed: int) -> tuple[Form, ...]:
    labels: dict[Drawing, list[str]] = {}
    members: dict[Drawing, list[list[str]]] = {}
    for change in changes:
        drawing, texts = draw(change)
        labels.setdefault(drawing, texts.labels)
        members.setdefault(drawing, []).append(texts.texts)
    return tuple(_form(drawing, labels[drawing], each, listed) for drawing, each in members.items())


def _form(drawing: Drawing, labels: Sequence[str], members: Sequence[Sequence[str]], listed: int) -> Form:
    """Combine nodes that share one drawing; if there are several, the first column is the node's name."""
    first = members[0]
    columns = tuple(
        Column(index, label)
        for index, label in enumerate(labels)
        if any(texts[index] != first[index] for texts in members) or (index == 0 and len(members) > 1)
    )
    rows = tuple(tuple(texts[column.index] for column in columns) for texts in members[:listed])
    return Form(drawing, tuple(first), columns, rows, len(members) - len(rows))
