"""What would help where a runtime does not take a model; each is tried on the model's structure before it is said."""

from __future__ import annotations

import onnx

from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.errors import MigrateError
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import fed_inputs, nested_nodes, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.options import default_pipeline
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.targets import Target, Targets, milestones
from onnx_migrate.standard.targets.releases import key

__all__ = ["remedies"]

_FAR = 320
"""A length for an axis of an image: a multiple of the strides that networks have."""
_LONG = 128
"""A length for any other axis but the first."""


def remedies(checker: CompatibilityChecker, targets: Targets) -> tuple[str, ...]:
    """Return what would help with a model that the targets do not take: fixed dims, a later release, a shorter model."""
    found = [_fixed_dims(checker.model, targets), _cut_off(checker.model, targets)]
    if len(targets) == 1:
        found.insert(1, _later_release(checker, targets.members[0]))
    return tuple(item for item in found if item)


def _fixed_dims(model: Model, targets: Targets) -> str:
    """Return the options that fix all dims of the inputs, if the targets take the model then."""
    sizes: dict[str, int] = {}
    fixed: dict[str, list[int]] = {}
    for value in fed_inputs(model.proto.graph):
        dims = value.type.tensor_type.shape.dim
        if not value.type.tensor_type.HasField("shape") or all(dim.HasField("dim_value") for dim in dims):
            continue
        found = []
        for axis, dim in enumerate(dims):
            guess = 1 if axis == 0 else _FAR if len(dims) == 4 and axis > 1 else _LONG
            symbol = dim.dim_param or f"{value.name} {axis}"
            found.append(dim.dim_value if dim.dim_value > 0 else sizes.setdefault(symbol, guess))
        fixed[value.name] = found
    if not fixed:
        return ""
    try:
        default_pipeline(runtime=targets, fix=fixed, simplify=False).run(model, ChangeLog())
    except MigrateError:
        return ""
    options = " ".join(f"--fix {name}:{','.join(map(str, dims))}" for name, dims in fixed.items())
    return f"with fixed dims {targets} takes it, for example with {options}"


def _later_release(checker: CompatibilityChecker, target: Target) -> str:
    """Return the first later release that takes the model, as it is or after a migration."""
    for item in milestones(target.table):
        if key(item.number) > key(target.number):
            standing = checker.advise(item).standing
            if standing.rank >= Support.AFTER.rank:
                return f"{item} takes it {standing.value}"
    return ""


def _cut_off(model: Model, targets: Targets) -> str:
    """Return the nodes at the end without which the targets take the model, if they are fewer than half of them."""
    log = ChangeLog()
    try:
        pipeline = default_pipeline(runtime=targets, simplify=False, best_effort=True)
        result = pipeline.run(model, log).model
    except MigrateError:
        return ""
    graph = result.proto.graph
    left = {note.subject for note in log.notes if note.code == "not-fitted"}
    last = _and_what_follows(graph, {at for at, node in enumerate(graph.node) if node_label(node) in left})
    if not last or len(last) * 2 > len(graph.node):
        return ""
    first, count = graph.node[min(last)], len(last)
    label, operator = node_label(first), first.op_type
    outputs = _cut(graph, last, TypeTable(result.proto))
    known = {name for node in model.proto.graph.node for name in node.output}
    if not outputs or not known.issuperset(outputs):
        return ""
    checker = CompatibilityChecker(result)
    if any(checker.advise(target).standing.rank < Support.NOT_KNOWN.rank for target in targets):
        return ""
    nodes = f"the {count_of(count, 'node')} from {label!r} ({operator}) on"
    return f"without {nodes} at the end, with {listed(map(repr, outputs))} as outputs, {targets} takes it"


def _cut(graph: onnx.GraphProto, last: set[int], types: TypeTable) -> list[str]:
    """Remove nodes from a graph, in place, and make what they read its outputs; return these, none if a type is not known."""
    kept = [node for at, node in enumerate(graph.node) if at not in last]
    made = {name for node in kept for name in node.output if name}
    read = [name for at in sorted(last) for node in nested_nodes([graph.node[at]]) for name in node.input]
    names = [*(name for name in read if name in made), *(it.name for it in graph.output if it.name in made)]
    outputs = list(dict.fromkeys(names))
    found = []
    for name in outputs:
        known = types.lookup(None, (), name)
        if known.dtype is None:
            return []
        found.append(onnx.helper.make_tensor_value_info(name, known.dtype, known.shape))
    del graph.node[:], graph.output[:]
    graph.node.extend(kept)
    graph.output.extend(found)
    return outputs


def _and_what_follows(graph: onnx.GraphProto, heads: set[int]) -> set[int]:
    """Return nodes of a sorted graph and all that need their outputs, by their places."""
    gone: set[str] = set()
    found = set()
    for at, node in enumerate(graph.node):
        if at in heads or any(name in gone for inner in nested_nodes([node]) for name in inner.input):
            found.add(at)
            gone.update(name for name in node.output if name)
    return found
