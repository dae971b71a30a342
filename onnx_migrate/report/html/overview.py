"""The overview of a page: the graph of the result with the changed nodes in place. graphlay lays it out for the page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from onnx_migrate.messages import count_of
from onnx_migrate.report.body_view import BodyView, ViewedNode
from onnx_migrate.report.html.folding import Fold, folded
from onnx_migrate.report.html.grouping import titled
from onnx_migrate.report.html.node_diagram import kind_of
from onnx_migrate.report.result_view import ResultView
from onnx_migrate.reported import Outline

__all__ = ["DrawnBox", "GraphDrawing", "drawings", "graph_drawings", "layout_available"]

_DRAWN = 20_000
"""Nodes up to which the inside of every box is drawn, as a page has to stay small."""

_PASSED = 300
"""Rows that all lines of a drawing may pass together: more make it unreadable, and 1,500 take graphlay seconds."""

_HEIGHT, _FOLD_HEIGHT = 26, 40
"""Pixels of a box with one line, and with two."""

_NARROW, _WIDE = 64, 190
"""Pixels of the narrowest and the widest box."""

_PER_CHARACTER = 7.2
"""Pixels of a character; a wide one is a little wider, and the box has some room."""

_CHARACTERS = 24
"""Characters of a line in the widest box."""

_MARGIN = 12
"""Pixels around a drawing."""

_SIGNS = {"removed": "− ", "added": "+ ", "changed": "~ ", "blocked": "✗ "}
"""Characters before the text of a marked box, for readers who do not see its colour."""

_OPTIONS = {
    "direction": "topbottom",
    "routing": {"style": "diagonal"},
    "spacing": {"layer_gap": 26.0, "node_gap": 18.0, "dummy_gap": 12.0},
}
"""How graphlay draws: as graph viewers do, from top to bottom with straight lines."""


@dataclass(frozen=True)
class DrawnBox:
    """A box: its corner and size in pixels, one or two lines of text, its kind, and a tooltip.

    `inside` is the number of the drawing of a fold's nodes, or None. `change` is the position of the change of a single node,
    or None. `changed` counts changed nodes, and `outlined` those that a feature marks (`onnx_migrate.reported.Outline`).
    `mark` is that of the changed nodes of a diff, "changed" if they have several, or "".
    """

    x: int
    y: int
    width: int
    height: int
    text: str
    more: str
    kind: str
    title: str
    changed: int
    inside: int | None
    change: int | None
    outlined: int = 0
    mark: str = ""

    @property
    def classes(self) -> str:
        """The names of its style."""
        states = ("is" if self.changed else "", "kept" if self.outlined else "", self.mark)
        return " ".join(filter(None, (self.kind, *states)))


@dataclass(frozen=True)
class GraphDrawing:
    """A drawing of some nodes of a body: its title, size in pixels, boxes, and the lines between them as the path of an SVG.

    `left_out` counts long lines that are not drawn. `whole` is whether it shows all nodes of the body, those of folds as one box
    each.
    """

    title: str
    width: int
    height: int
    boxes: tuple[DrawnBox, ...]
    lines: str
    nodes: int
    changed: int
    left_out: int = 0
    whole: bool = False


def layout_available() -> bool:
    """Whether the library that makes the layout is installed."""
    try:
        import graphlay  # noqa: F401
    except ImportError:
        return False
    return True


def drawings(
    view: ResultView | None, outline: Outline | None = None, *, boxes: int, inside: bool
) -> list[GraphDrawing]:
    """Return the drawings of a result: of each body the whole, with at most so many boxes, and with `inside` those of its folds.

    The nodes of `outline` are marked. There are no drawings where graphlay is not installed. Equal views give
    equal drawings.
    """
    if view is None:
        return []
    outlined = outline.nodes if outline else frozenset[str]()
    return list(chain.from_iterable(graph_drawings(view.bodies, outlined, boxes=boxes, inside=inside)))


def graph_drawings(
    bodies: Iterable[BodyView], outlined: Set[str] = frozenset(), *, boxes: int, inside: bool
) -> list[list[GraphDrawing]]:
    """Return the drawings of each body: the whole, and with `inside` those of its folds. All have numbers in one sequence.

    `outlined` are the names of nodes that are marked.
    """
    if not layout_available():
        return []
    drawings_by_body, number = list[list[GraphDrawing]](), 0
    for body in bodies:
        drawings_by_body.append(
            _of_body(body, outlined, number, boxes, inside=inside and len(body.nodes) <= _DRAWN)
        )
        number += len(drawings_by_body[-1])
    return drawings_by_body


def _of_body(
    body: BodyView, outlined: Set[str], first: int, boxes: int, *, inside: bool
) -> list[GraphDrawing]:
    """Return the drawings of a body; `first` is the number of the whole, and those of folds follow."""
    title = "The whole graph" if body.path == "graph" else body.path
    pending = deque([(title, tuple(range(len(body.nodes))))])
    part_drawings, number = list[GraphDrawing](), first
    while pending:
        title, members = pending.popleft()
        folds = folded(body.nodes, members, boxes)
        numbers = list[int | None]()
        for fold in folds:
            opens = inside and len(fold.members) > 1
            number += opens
            numbers.append(number if opens else None)
            if opens:
                pending.append((fold.label, fold.members))
        drawing = _drawing(title, body.nodes, outlined, folds, numbers)
        part_drawings.append(replace(drawing, whole=not part_drawings))
    return part_drawings


def _drawing(
    title: str,
    nodes: Sequence[ViewedNode],
    outlined: Set[str],
    folds: Sequence[Fold],
    inside: Sequence[int | None],
) -> GraphDrawing:
    """Lay out the boxes of some folds."""
    texts = [_texts(nodes, fold) for fold in folds]
    sizes = [_size(*text) for text in texts]
    edges = list(_edges(nodes, folds))
    shown = _short_first(edges, len(folds))
    placed = _layout(sizes, shown)
    low_x, low_y = placed.bounds["min"]["x"], placed.bounds["min"]["y"]

    def point(place: Any) -> tuple[int, int]:
        return round(place["x"] - low_x) + _MARGIN, round(place["y"] - low_y) + _MARGIN

    drawn = []
    for fold, (text, more), (width, height), number, node in zip(
        folds, texts, sizes, inside, placed.nodes, strict=True
    ):
        x, y = point(node["center"])
        changed = sum(nodes[place].change is not None for place in fold.members)
        only = nodes[fold.members[0]] if len(fold.members) == 1 else None
        drawn.append(
            DrawnBox(
                x - width // 2,
                y - height // 2,
                width,
                height,
                text,
                more,
                kind_of(only.operator) if only else "fold",
                only.name if only else fold.label,
                changed,
                number,
                only.change if only else None,
                sum(nodes[place].name in outlined for place in fold.members),
                _common_mark({nodes[place].mark for place in fold.members} - {""}),
            )
        )
    lines = "".join(_path([point(place) for place in edge["points"]]) for edge in placed.edges)
    right, bottom = point(placed.bounds["max"])
    members = [nodes[place] for fold in folds for place in fold.members]
    counted = [node for node in members if node.operator not in ("input", "output")]
    changed = sum(node.change is not None for node in members)
    return GraphDrawing(
        title, right + _MARGIN, bottom + _MARGIN, tuple(drawn), lines, len(counted), changed, len(edges) - len(shown)
    )  # fmt: skip


def _common_mark(marks: Set[str]) -> str:
    """Return the mark of a box whose nodes have these marks."""
    return next(iter(marks)) if len(marks) == 1 else "changed" if marks else ""


def _layout(sizes: Sequence[tuple[int, int]], edges: Sequence[tuple[int, int]]) -> Any:
    import graphlay

    graph = graphlay.Graph()
    for width, height in sizes:
        graph.node(width=width, height=height)
    for source, target in edges:
        graph.edge(source, target)
    return graphlay.layout(graph, options=_OPTIONS)


def _edges(nodes: Sequence[ViewedNode], folds: Sequence[Fold]) -> Iterator[tuple[int, int]]:
    """Yield which box feeds which, once each, in order."""
    box_of = {index: number for number, fold in enumerate(folds) for index in fold.members}
    pairs = {
        (box_of[source], number): None
        for number, fold in enumerate(folds)
        for index in fold.members
        for source in nodes[index].reads
        if source in box_of and box_of[source] != number
    }
    yield from pairs


def _short_first(edges: Sequence[tuple[int, int]], boxes: int) -> list[tuple[int, int]]:
    """Return the edges that are drawn, in order; of long ones, as of a mask that all layers read, the shortest."""
    row = [0] * boxes
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        row[target] = max(row[target], row[source] + 1)
    passed = 0
    shown = set()
    for edge in sorted(edges, key=lambda edge: row[edge[1]] - row[edge[0]]):
        passed += row[edge[1]] - row[edge[0]] - 1
        if passed > _PASSED:
            break
        shown.add(edge)
    return [edge for edge in edges if edge in shown]


def _texts(nodes: Sequence[ViewedNode], fold: Fold) -> tuple[str, str]:
    """Return the lines of a box: an operator, the name of an input or output, or the scope of a fold and its size."""
    if len(fold.members) == 1:
        node = nodes[fold.members[0]]
        text = node.name if node.operator in ("input", "output") else node.operator
        return titled(f"{_SIGNS.get(node.mark, '')}{text}", _CHARACTERS), ""
    return titled(fold.label, _CHARACTERS), count_of(len(fold.members), "node")


def _size(text: str, more: str) -> tuple[int, int]:
    longest = max(len(text), len(more) + (10 if more else 0))
    width = round(min(_WIDE, max(_NARROW, longest * _PER_CHARACTER + 18)))
    return width + width % 2, _FOLD_HEIGHT if more else _HEIGHT


def _path(points: Sequence[tuple[int, int]]) -> str:
    head, *rest = points
    return f"M{head[0]} {head[1]}" + "".join(f"L{x} {y}" for x, y in rest)
