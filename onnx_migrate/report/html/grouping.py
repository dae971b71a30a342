"""Changes put together that are the same but for names, so that a page of thousands stays short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx_migrate.report.html.diagram_parts import Drawing
from onnx_migrate.report.html.node_diagram import draw

__all__ = ["Column", "Form", "Group", "grouped"]


_LIST = re.compile(r"\[[^\]]*\]")

_INEXACT = {"exact": "", "equivalent": "equivalent: rounds otherwise", "assumed": "right under an assumption"}


@dataclass(frozen=True)
class Column:
    """A text that nodes of a form differ in: its place among the drawing's texts, and what it is."""

    place: int
    label: str


@dataclass(frozen=True)
class Form:
    """Nodes of one drawing: the texts of the first, and for the others what differs.

    `rows` has a row for every node, the first included, of the texts in `columns`; `unlisted` counts nodes left out.
    """

    drawing: Drawing
    texts: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    unlisted: int

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.rows) + self.unlisted


@dataclass(frozen=True)
class Group:
    """Nodes of one operator that became the same for the same reason, but for lists in it, which are written as "[…]".

    `inexact` says how near the new form is; "" where it is bit for bit the old.
    """

    before: str
    after: str
    reason: str
    inexact: str
    forms: tuple[Form, ...]

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return sum(form.nodes for form in self.forms)


def grouped(changes: Iterable[Mapping[str, Any]], *, listed: int) -> tuple[Group, ...]:
    """Group the changes of a report's dict; of each form at most `listed` nodes get a row. Linear in the changes."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for change in changes:
        old, new = change["before"], change["after"]
        became = f"{new['operator']}-{new['version']}" if new else " + ".join(_operators(change))
        reason = _LIST.sub("[…]", change["reason"])
        key = (f"{old['operator']}-{old['version']}", became or "nothing", reason)
        groups.setdefault(key, []).append(change)
    return tuple(
        Group(
            *key,
            ", ".join(sorted({_INEXACT[member["exactness"]] for member in members} - {""})),
            _forms(members, listed),
        )
        for key, members in groups.items()
    )


def _operators(change: Mapping[str, Any]) -> Iterable[str]:
    return dict.fromkeys(node["operator"] for node in change["helper_nodes"])


def _forms(changes: Sequence[Mapping[str, Any]], listed: int) -> tuple[Form, ...]:
    labels: dict[Drawing, list[str]] = {}
    members: dict[Drawing, list[list[str]]] = {}
    for change in changes:
        drawing, texts = draw(change)
        labels.setdefault(drawing, texts.labels)
        members.setdefault(drawing, []).append(texts.texts)
    return tuple(_form(drawing, labels[drawing], each, listed) for drawing, each in members.items())


def _form(drawing: Drawing, labels: Sequence[str], members: Sequence[Sequence[str]], listed: int) -> Form:
    """Put nodes of one drawing together; where they are several, the first column is the node's name."""
    first = members[0]
    columns = tuple(
        Column(place, label)
        for place, label in enumerate(labels)
        if any(texts[place] != first[place] for texts in members) or (place == 0 and len(members) > 1)
    )
    rows = tuple(tuple(texts[column.place] for column in columns) for texts in members[:listed])
    return Form(drawing, tuple(first), columns, rows, len(members) - len(rows))
