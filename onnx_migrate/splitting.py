"""Finds the outputs at which to cut a model: before the first nodes that the target runtimes do not support, found by
trying.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import onnx

from onnx_migrate.errors import CannotMigrate, MigrateError
from onnx_migrate.model.graphs import (
    fed_inputs,
    names_read,
    names_read_by_each,
    nested_nodes,
    node_label,
    operators_of,
    output_names,
)
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.options import Options
from onnx_migrate.pipelines import pipeline_of
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["Split", "split_for", "with_cut"]


@dataclass(frozen=True)
class Split:
    """The values at which a model is cut, the first node behind them, and the number of nodes on each side."""

    outputs: tuple[str, ...]
    label: str = ""
    operator: str = ""
    before: int = 0
    behind: int = 0


def with_cut(options: Options, load: Callable[[], Model]) -> Options:
    """Return options with the outputs at which a model is split, if runtimes decide that. Raises as `split_for` does."""
    if not options.split or options.targets is None or options.extract_outputs:
        return options
    outputs = split_for(load(), options).outputs
    return replace(options, extract_outputs=outputs, split=bool(outputs))


def split_for(model: Model, options: Options) -> Split:
    """Return the outputs at which to cut a model so that the runtimes of `options` support the first part; none to keep it
    whole.

    Raises the error of the migration if the first part would be empty, or if no node causes the error.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    sort_model(proto)
    graph = proto.graph
    off: dict[str, Any] = {name: False for name in ("split", "simplify") if hasattr(options, name)}
    options = replace(options, **off)
    behind: set[int] = set()
    outputs: tuple[str, ...] = ()
    while True:
        options = replace(options, extract_outputs=outputs)
        try:
            pipeline_of(options).run(model, ChangeLog())
        except CannotMigrate as error:
            gone = _not_taken(model, options, error)
            # The set of nodes that must go grows with each round.
            cut_before = len(behind)
            behind |= _places(graph, {name for node in graph.node for name in node.output if name in gone})
            outputs = _outputs(graph, behind)
            # The next cut would be the same, so the error has another cause than the nodes behind the cut.
            if len(behind) == cut_before or not outputs:
                raise
        else:
            break
    if not behind:
        return Split(())
    first = graph.node[min(behind)]
    count = len(graph.node)
    return Split(outputs, node_label(first), first.op_type, count - len(behind), len(behind))


def _not_taken(model: Model, options: Options, error: CannotMigrate) -> set[str]:
    """Return the outputs of unsupported nodes in the migrated model, and the values that depend on them."""
    labels = {error.where.node} if error.where else set()
    log, result = ChangeLog(), model
    with suppress(MigrateError):  # after an error, the search uses the unchanged model
        # With best effort, the notes list all unsupported nodes.
        result = pipeline_of(replace(options, best_effort=True)).run(model, log).model
    labels |= {note.subject for note in log.notes if note.code == "not-fitted"}
    unsupported: set[str] = set()
    for graph in (result.proto.graph, model.proto.graph):
        heads = {
            name
            for node in graph.node
            if any(node_label(inner) in labels for inner in nested_nodes([node]))
            for name in node.output
            if name
        }
        node_indices = _places(graph, heads)
        unsupported |= {name for at in node_indices for name in graph.node[at].output if name}
    return unsupported


def _places(graph: onnx.GraphProto, values: Collection[str]) -> set[int]:
    """Return the places of the nodes of a sorted graph that compute these values, and of all that need them."""
    gone, node_indices = set(values), set()
    for at, (node, read) in enumerate(
        zip(graph.node, names_read_by_each(graph.node, operators_of(graph.node)), strict=True)
    ):
        if not gone.isdisjoint(read) or not gone.isdisjoint(node.output):
            node_indices.add(at)
            gone.update(filter(None, node.output))
    return node_indices


def _outputs(graph: onnx.GraphProto, behind: Collection[int]) -> tuple[str, ...]:
    """Return the values that depend on inputs, and that nodes before compute and nodes behind, or callers, read."""
    reached = {value.name for value in fed_inputs(graph)}
    before: set[str] = set()
    for at, node in enumerate(graph.node):
        if at not in behind and not reached.isdisjoint(names_read(node)):
            reached.update(filter(None, node.output))
            before.update(filter(None, node.output))
    read = [name for at in sorted(behind) for name in names_read(graph.node[at])]
    return tuple(dict.fromkeys(name for name in (*read, *output_names(graph)) if name in before))
