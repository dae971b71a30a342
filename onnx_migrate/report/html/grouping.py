"""Groups changes that differ only in names and values, so that a page of thousands of changes stays short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnx_migrate.pipelines import default_pipeline
from onnx_migrate.report.data import INEXACT, ReportData
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.html.node_diagram import Drawing, draw
from onnx_migrate.report.summary import change_notes
from onnx_migrate.rewrite.change_log import Change, Note

__all__ = [
    "LONGEST_TITLE",
    "ChangeGroup",
    "Column",
    "Form",
    "asked_notes",
    "change_anchors",
    "grouped",
    "grouped_by_request",
    "titled",
]

LONGEST_TITLE = 80
"""Characters of a title: more do not fit on a line."""

_NAMED = 4
"""Operators that a title names of those that replaced a node."""

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
        """Return the number of nodes."""
        return len(self.rows) + self.unlisted


@dataclass(frozen=True)
class ChangeGroup:
    """Nodes of one operator that became the same operator for the same reason; lists in `reason` are shown as "[…]".

    `inexact` says how the result may differ; "" if it is bit-identical. `places` are the positions of the changes. The
    first names the group's part of the page.
    """

    before: str
    after: str
    reason: str
    inexact: str
    forms: tuple[Form, ...]
    places: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """Return the operators before and after, as a short text."""
        title = self.before if self.after == self.before else f"{self.before} → {self.after}"
        return titled(title, LONGEST_TITLE - len(" ×10,000"))

    @property
    def anchor(self) -> str:
        """The HTML id of the group, within the part of a model."""
        return f"change-{self.places[0]}" if self.places else "change"

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return sum(form.nodes for form in self.forms)


def grouped(changes: Iterable[tuple[int, Change]], *, listed: int) -> tuple[ChangeGroup, ...]:
    """Group changes, each with its position, in linear time; at most `listed` nodes of each form get a row."""
    groups: dict[tuple[str, str, str], list[tuple[int, Change]]] = {}
    for index, change in changes:
        before = f"{change.before.op_type}-{change.version_before}"
        became = _operators(change)
        groups.setdefault((before, became, _LIST.sub("[…]", change.reason)), []).append((index, change))
    return tuple(
        ChangeGroup(
            key[0],
            key[1],
            _common_reason([member for _, member in members], key[2]),
            ", ".join(sorted({INEXACT[member.exactness.value] for _, member in members} - {""})),
            _forms([member for _, member in members], listed),
            tuple(index for index, _ in members),
        )
        for key, members in groups.items()
    )


def _common_reason(changes: Sequence[Change], elided: str) -> str:
    """Return the reason that all changes share, or else the one without the lists in which they differ."""
    reasons = {change.reason for change in changes}
    return reasons.pop() if len(reasons) == 1 else elided


def _operators(change: Change) -> str:
    """Return the operator that a node became, or those that replaced it, at most four by name."""
    if change.after is not None:
        return f"{change.after.op_type}-{change.version_after}"
    operators = list(dict.fromkeys(node.op_type for node in change.helpers))
    more = f" + {len(operators) - _NAMED} more" if len(operators) > _NAMED else ""
    return " + ".join(operators[:_NAMED]) + more or "removed"


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


def grouped_by_request(
    report: ReportData | Failure, *, listed: int
) -> tuple[tuple[ChangeGroup, ...], tuple[ChangeGroup, ...]]:
    """Return the groups of changes that the user asked for, and the others; nodes that only have another version come last.

    Of a result that the report has a view of, they are the nodes of the result.
    """
    if isinstance(report, Failure):
        return (), grouped(enumerate(report.done.changes), listed=listed)
    changes = report.changes if report.view is None else report.view.changes
    requested = _asked_passes(report)
    of_request, others = list[tuple[int, Change]](), list[tuple[int, Change]]()
    for index, change in sorted(enumerate(changes), key=lambda entry: _is_version_alone(entry[1])):
        wanted = not requested.isdisjoint(change.pass_name.split(", "))
        (of_request if wanted else others).append((index, change))
    return grouped(of_request, listed=listed), grouped(others, listed=listed)


def asked_notes(report: ReportData) -> list[Note]:
    """Return the notes on changes that the user asked for, for example on the precision or on sizes."""
    requested = _asked_passes(report)
    return [note for note in change_notes(report) if note.pass_name in requested]


def change_anchors(groups: Iterable[ChangeGroup]) -> dict[int, str]:
    """Return the HTML id of the group of each change, by the change's position."""
    return {index: group.anchor for group in groups for index in group.places}


def titled(text: str, most: int = LONGEST_TITLE) -> str:
    """Return a title with at most so many characters, cut in the middle where it has more."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}…{text[len(text) - (most - most // 2 - 1) :]}"


def _asked_passes(report: ReportData) -> set[str]:
    """Return the passes that run because of an option that the user gave; the others run in any migration."""
    options = set(report.request.options if report.request else ())
    always = {step.name for step in default_pipeline()}
    requested = {name for name in report.passes if name not in always or name in options}
    if not options.isdisjoint(("opset", "runtime")):
        requested |= {"migrate_opset", "lower_opset"}
    return requested


def _is_version_alone(change: Change) -> bool:
    """Whether a node differs in the version of its operator only."""
    return not change.helpers and change.after is not None and change.before == change.after
