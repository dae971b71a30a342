"""The view of a model before its migration: its graphs, with marks on the nodes that the migration changes or cannot convert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import bodies, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.report.body_view import BodyView, NodeMark, body_view
from onnx_migrate.rewrite.change_log import Change

__all__ = ["planned_bodies"]

_NO_CHANGE = -1
"""The position of the change of a node that cannot be converted."""


def planned_bodies(model: Model, changes: Iterable[Change], refused: Iterable[Where]) -> Iterator[BodyView]:
    """Yield the main graph, and the others with a marked node; a node in `refused` has the mark "blocked"."""
    marks: dict[tuple[str, str], NodeMark] = {}
    for place, change in enumerate(changes):
        for name in change.before.output:
            marks.setdefault((change.where.scope, name), NodeMark(place))
    # A refused node has no change.
    blocked = {(where.scope, where.node) for where in refused}
    for located in bodies(model.proto):
        path = located.path

        def mark_of(node: onnx.NodeProto, path: str = path) -> NodeMark | None:
            if (path, node_label(node)) in blocked:
                return NodeMark(_NO_CHANGE, "blocked")
            return next((marks[path, name] for name in node.output if (path, name) in marks), None)

        view = body_view(path, located.body, mark_of)
        # Sub-graphs without a change would only fill the page.
        if path == "graph" or view.changed:
            yield view
