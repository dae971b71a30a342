"""A diff of two models by meaning: it matches nodes that compute the same, in any order and with any names.

The diff ignores nodes and weights that moved, values and weights with other names, and constants that became initializers. It
also ignores numbers that moved to another field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx

from onnx_migrate.messages import count_of, first_of
from onnx_migrate.model.graphs import Body, function_key, function_path, subgraph_path, subgraphs
from onnx_migrate.model.matching import match_nodes
from onnx_migrate.report.diff_nodes import DiffEntry, WeightsOf, changed_lines, node_changes
from onnx_migrate.report.diff_values import (
    constant_tensor,
    interface_changes,
    name_of,
    shape_changes,
    weight_changes,
)

__all__ = ["DiffEntry", "diff_entries", "diff_lines"]

_RENAMED = 20
"""Largest number of renamed values that are listed."""


def diff_lines(entries: Iterable[DiffEntry], names: tuple[str, str]) -> Iterator[str]:
    """Yield the lines of a diff between two models of these names; none without entries."""
    body = None
    for entry in entries:
        if body is None:
            yield from (f"--- {names[0]}", f"+++ {names[1]}")
        if entry.body != body:
            body = entry.body
            yield f"@@ {body} @@"
        yield from entry.lines()


def diff_entries(
    before: onnx.ModelProto, after: onnx.ModelProto, *, weights: WeightsOf = (None, None)
) -> Iterator[DiffEntry]:
    """Yield the differences between two models, in the order of the first one's nodes.

    The time is linear in the number of nodes. Values with another name are only listed. Shapes of inner values are compared
    only if the first model declares them. With `weights`, large weights that are not at the same position in both models are
    read.
    """
    yield from changed_lines("model", _header(before), _header(after))
    yield from _body(before.graph, after.graph, "graph", {}, weights)
    old = {function_key(function): function for function in before.functions}
    new = {function_key(function): function for function in after.functions}
    for key in dict.fromkeys((*old, *new)):
        if key in old and key in new:
            path = function_path(old[key])
            yield from changed_lines(path, _opsets(old[key].opset_import), _opsets(new[key].opset_import))
            yield from _body(old[key], new[key], path, {}, weights)
        else:
            found = old.get(key) or new[key]
            text = f"{function_path(found)} of {count_of(len(found.node), 'node')}"
            gone = (text,) if key in old else ()
            yield DiffEntry("model", text, gone, () if key in old else (text,))


def _header(proto: onnx.ModelProto) -> dict[str, str]:
    """Return the lines about a model's fields outside its graphs, by their subject."""
    found = {"IR version": f"IR version {proto.ir_version}", **_opsets(proto.opset_import)}
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if proto.HasField(field) and getattr(proto, field):
            found[field] = f"{field} = {getattr(proto, field)!r}"
    found.update(
        {f"metadata {item.key}": f"metadata {item.key} = {item.value!r}" for item in proto.metadata_props}
    )
    return found


def _opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, str]:
    named = ((item.domain or "ai.onnx", item.version) for item in imports)
    return {f"opset {domain}": f"opset {domain} {version}" for domain, version in named}


def _body(
    before: Body, after: Body, path: str, outside: Mapping[str, str], weights: WeightsOf
) -> Iterator[DiffEntry]:
    """Yield the differences of two bodies, then those of their sub-graphs; `outside` maps outer values to their new names."""
    renamed = dict(outside)
    if path != "graph":  # the names of a body's inputs are its own, and callers give values by position
        renamed.update(
            {
                new: old
                for old, new in zip(map(name_of, before.input), map(name_of, after.input), strict=False)
                if old != new
            }
        )
    yield from weight_changes(before, after, path, renamed, weights)
    old = [node for node in before.node if constant_tensor(node) is None]
    new = [node for node in after.node if constant_tensor(node) is None]
    found = match_nodes(old, new, renamed)
    yield from interface_changes(before, after, path, found)
    yield from shape_changes(before, after, path, found)
    yield from node_changes(old, new, path, found, weights)
    pairs = [(found.old(name), name) for node in new for name in node.output if name in found.renamed]
    if pairs:
        listed = first_of([f"{old_name} → {name}" for old_name, name in pairs], _RENAMED)
        yield DiffEntry(path, "renamed values", title=f"{count_of(len(pairs), 'value')} renamed: {listed}")
    for place, partner in found.partner.items():
        theirs = {(name, index): graph for name, index, graph in subgraphs(new[place])}
        for name, index, graph in subgraphs(old[partner]):
            if (name, index) in theirs:
                inner = subgraph_path(path, old[partner], name, index)
                yield from _body(graph, theirs[name, index], inner, found.renamed, weights)
