"""A diff of two models by meaning: it matches nodes that compute the same, in any order and with any names.

The diff ignores nodes and weights that moved, values and weights with other names, and constants that became initializers. It
also ignores numbers that moved to another field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import onnx

from onnx_migrate.messages import count_of, first_of
from onnx_migrate.model.graphs import Body, function_key, function_path, subgraph_path, subgraphs
from onnx_migrate.model.matching import Matching, match_nodes
from onnx_migrate.report.diff_nodes import DiffEntry, NodeDiff, WeightsOf, changed_lines, node_changes
from onnx_migrate.report.diff_values import (
    constant_tensor,
    interface_changes,
    name_of,
    shape_changes,
    weight_changes,
)

__all__ = ["BodyDiff", "BodyPair", "DiffEntry", "body_diffs", "diff_entries", "diff_lines"]

_RENAMED = 20
"""Largest number of renamed values that are listed."""


@dataclass(frozen=True)
class BodyPair:
    """Two bodies with the same place in both models.

    `renamed` holds the name before of each value that has another name after. `callers` are the nodes whose sub-graphs the bodies
    are, None for a main graph or a function.
    """

    before: Body
    after: Body
    renamed: Mapping[str, str] = field(default_factory=dict)
    callers: tuple[onnx.NodeProto, onnx.NodeProto] | None = None


@dataclass(frozen=True)
class BodyDiff:
    """The differences of two bodies: all entries, and those of nodes again in `nodes`.

    `pair` is None for the fields of a model outside its graphs, and for functions that only one model has.
    """

    path: str
    entries: tuple[DiffEntry, ...]
    pair: BodyPair | None = None
    nodes: tuple[NodeDiff, ...] = ()


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
    """Yield the differences between two models, in the order of the first one's nodes; see `body_diffs`."""
    return chain.from_iterable(body_diff.entries for body_diff in body_diffs(before, after, weights=weights))


def body_diffs(
    before: onnx.ModelProto, after: onnx.ModelProto, *, weights: WeightsOf = (None, None)
) -> Iterator[BodyDiff]:
    """Yield the differences between two models, body by body: each before its sub-graphs, the functions last.

    The time is linear in the number of nodes. Values with another name are only listed. Shapes of inner values are compared
    only if the first model declares them. With `weights`, large weights that are not at the same position in both models are
    read.
    """
    yield BodyDiff("model", tuple(changed_lines("model", _header(before), _header(after))))
    yield from _body(BodyPair(before.graph, after.graph), "graph", {}, weights)
    # Functions are matched by their names.
    old = {function_key(function): function for function in before.functions}
    new = {function_key(function): function for function in after.functions}
    for key in dict.fromkeys((*old, *new)):
        if key in old and key in new:
            yield from _function(old[key], new[key], weights)
        else:
            lone = old.get(key) or new[key]
            text = f"{function_path(lone)} of {count_of(len(lone.node), 'node')}"
            gone = (text,) if key in old else ()
            yield BodyDiff("model", (DiffEntry("model", text, gone, () if key in old else (text,)),))


def _function(
    before: onnx.FunctionProto, after: onnx.FunctionProto, weights: WeightsOf
) -> Iterator[BodyDiff]:
    """Yield the differences of two functions: their opsets, their nodes, and the sub-graphs of these."""
    path = function_path(before)
    imports = changed_lines(path, _opsets(before.opset_import), _opsets(after.opset_import))
    own, *inner = _body(BodyPair(before, after), path, {}, weights)
    yield replace(own, entries=(*imports, *own.entries))
    yield from inner


def _header(proto: onnx.ModelProto) -> dict[str, str]:
    """Return the lines about a model's fields outside its graphs, by their subject."""
    lines = {"IR version": f"IR version {proto.ir_version}", **_opsets(proto.opset_import)}
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if proto.HasField(name) and getattr(proto, name):
            lines[name] = f"{name} = {getattr(proto, name)!r}"
    lines.update(
        {f"metadata {entry.key}": f"metadata {entry.key} = {entry.value!r}" for entry in proto.metadata_props}
    )
    return lines


def _opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, str]:
    named = ((opset_import.domain or "ai.onnx", opset_import.version) for opset_import in imports)
    return {f"opset {domain}": f"opset {domain} {version}" for domain, version in named}


def _body(pair: BodyPair, path: str, outside: Mapping[str, str], weights: WeightsOf) -> Iterator[BodyDiff]:
    """Yield the differences of two bodies, then those of their sub-graphs; `outside` maps outer values to their new names."""
    before, after = pair.before, pair.after
    renamed = dict(outside)
    # The main graph's names are its interface.
    if path != "graph":  # the names of a body's inputs are its own, and callers give values by position
        renamed.update(
            {
                new: old
                for old, new in zip(map(name_of, before.input), map(name_of, after.input), strict=False)
                if old != new
            }
        )
    # Weights come first, because matching nodes needs the names that only differ.
    of_weights = tuple(weight_changes(before, after, path, renamed, weights))
    # Constants are compared as weights.
    old = [node for node in before.node if constant_tensor(node) is None]
    new = [node for node in after.node if constant_tensor(node) is None]
    matching = match_nodes(old, new, renamed)
    nodes = tuple(node_changes(old, new, path, matching, weights))
    entries = (
        *of_weights,
        *interface_changes(before, after, path, matching),
        *shape_changes(before, after, path, matching),
        *(node.entry for node in nodes),
        *_renamed_values(new, path, matching),
    )
    yield BodyDiff(path, entries, replace(pair, renamed=matching.renamed), nodes)
    for node_index, partner in matching.partner.items():
        # Sub-graphs are compared if their nodes match.
        theirs = {(name, index): graph for name, index, graph in subgraphs(new[node_index])}
        for name, index, graph in subgraphs(old[partner]):
            if (name, index) in theirs:
                inner = BodyPair(graph, theirs[name, index], callers=(old[partner], new[node_index]))
                inner_path = subgraph_path(path, old[partner], name, index)
                yield from _body(inner, inner_path, matching.renamed, weights)


def _renamed_values(after: Iterable[onnx.NodeProto], path: str, found: Matching) -> Iterator[DiffEntry]:
    """Yield an entry that lists the values with another name, if there are any."""
    pairs = [(found.old(name), name) for node in after for name in node.output if name in found.renamed]
    if pairs:
        listed = first_of([f"{old_name} → {name}" for old_name, name in pairs], _RENAMED)
        yield DiffEntry(path, "renamed values", title=f"{count_of(len(pairs), 'value')} renamed: {listed}")
