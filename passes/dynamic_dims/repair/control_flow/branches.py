"""An If whose condition depends on the batch: with several items, one branch cannot be right for all of them.

If each item has its own condition, the repair computes both branches for all items, and a Where chooses between them.
Some conditions ask whether a length is 1, for example before a Squeeze of that axis. For them the repair takes the
branch that the frozen model takes, at all sizes. Either way the repair removes the If, and its branches become nodes of
the body around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import onnx

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import output_names, subgraphs
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Driver, Visitor
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.opsets import body_opsets

from ..domain import Dim, SampledValue
from ..node_context import NodeContext, UnrepairableNode

__all__ = ["BranchConflict", "Inlining", "branch_of_length", "branch_taken", "inlined", "inlining_of"]


@dataclass(frozen=True)
class Inlining:
    """How the If with this label is written without If: by one branch, or by both and a choice for each item.

    For a choice, `condition_shapes` has one shape for each output: Reshape gives it to the condition. None needs no Reshape.
    """

    label: str
    way: Literal["then_branch", "else_branch", "both"]
    condition_shapes: tuple[tuple[int, ...] | None, ...] = ()


class BranchConflict(UnrepairableNode):
    """An If takes one branch for all items of a batch. It is resolved by writing it without If."""

    def __init__(self, context: NodeContext, inlining: Inlining) -> None:
        super().__init__(context, "its condition is of the batch, and decides for all items at once")
        self.inlining = inlining


def branch_taken(condition: SampledValue | None) -> str | None:
    """Return the branch that an If takes at all sizes, None if that is not known."""
    constant = condition.constant() if condition is not None else None
    if constant is None or constant.size != 1:
        return None
    return "then_branch" if constant.item() else "else_branch"


def branch_of_length(context: NodeContext) -> Inlining | None:
    """Return how an If is written that takes another branch at other sizes: by the branch of the frozen ones."""
    condition = context.input(0)
    if condition is None or condition.data is None or condition.constant() is not None:
        return None
    return Inlining(context.label, "then_branch" if condition.data[0].reshape(-1)[0] else "else_branch")


def inlining_of(
    context: NodeContext, then: Sequence[SampledValue], other: Sequence[SampledValue]
) -> Inlining | None:
    """Return how to write an If whose branches give these values, None if the If may stay."""
    condition = context.input(0)
    if condition is None:
        return None
    of_length = branch_of_length(context)
    if of_length is not None:
        # Later nodes accept either branch if both have the same rank.
        return None if all(map(_same_rank, then, other)) else of_length
    dims = condition.known
    if dims is None or not any(dim.of_batch for dim in dims):
        return None
    shapes = []
    for a, b in zip(then, other, strict=True):
        shape = _condition_shape(dims, a, b)
        if shape is None:
            return None
        shapes.append(shape or None)
    return Inlining(context.label, "both", tuple(shapes))


def _same_rank(a: SampledValue, b: SampledValue) -> bool:
    return a.dims is not None and b.dims is not None and len(a.dims) == len(b.dims)


def _condition_shape(condition: tuple[Dim, ...], a: SampledValue, b: SampledValue) -> tuple[int, ...] | None:
    """Return the shape that aligns a condition with the batch of two values; () if it is aligned, None if no shape aligns it."""
    if a.known is None or b.known is None or len(a.known) != len(b.known):
        return None
    rank = len(a.known)
    axes = [
        axis for axis, dims in enumerate(zip(a.known, b.known, strict=True)) if any(d.of_batch for d in dims)
    ]
    own = [axis for axis, dim in enumerate(condition) if dim.of_batch]
    if len(axes) != 1 or len(own) != 1 or any(dim.frozen != 1 for dim in condition):
        return None
    if any(dim.varies for axis, dim in enumerate(condition) if axis != own[0]):
        return None
    if rank - axes[0] == len(condition) - own[0] and len(condition) <= rank:
        return ()
    return tuple(-1 if axis == axes[0] else 1 for axis in range(rank))


def inlined(model: Model, inlining: Inlining, log: ChangeLog, pass_name: str) -> Model:
    """Return a copy of the model without this If."""
    result = model.copy()
    proto = result.proto
    visitor = _Inliner(inlining, log, pass_name)
    bodies = scopes(proto, result.weights, result_ir_version=proto.ir_version)
    for scope, (_, opset) in zip(bodies, body_opsets(proto), strict=True):
        Driver(visitor).body(scope, opset or 1)
    return result


class _Inliner(Visitor):
    """Puts nodes of branches into the body around an If."""

    def __init__(self, inlining: Inlining, log: ChangeLog, pass_name: str) -> None:
        self.log, self.pass_name = log, pass_name
        self._inlining = inlining

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return `opset` for the If of this inlining, else None."""
        return opset if node.op_type == "If" and self._inlining.label in node.output else None

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        """Write both branches, or one, before the If, and replace the If by nodes that give its outputs."""
        way, names = self._inlining.way, [*node.output]
        rw = Rewriter(node, scope, version, version, Where(scope=scope.path, node=node.name, operator="If"))
        branches = {attribute: graph for attribute, _, graph in subgraphs(node)}
        if way == "both":
            then, other = (_copied(branches[key], rw) for key in ("then_branch", "else_branch"))
            for shape, a, b, name in zip(self._inlining.condition_shapes, then, other, names, strict=True):
                condition = node.input[0]
                if shape:
                    constant = rw.constant(np.array(shape, np.int64), "shape")
                    condition = rw.before("Reshape", [condition, constant], hint="condition")
                if name:
                    rw.after("Where", [condition, a, b], [name])
            rw.note("each item has its own condition: both branches are computed, and Where chooses")
        else:
            for value, name in zip(_copied(branches[way], rw), names, strict=True):
                if name:
                    rw.after("Identity", [value], [name])
            rw.note(
                f"its condition depends on the size of the exported batch; the result uses its {way} for every batch"
            )
        rw.remove()
        return rw


def _copied(graph: onnx.GraphProto, rw: Rewriter) -> list[str]:
    """Write the nodes of a branch before its If, under names of their own; return the names of the branch's outputs."""
    renamed: dict[str, str] = {}
    for tensor in graph.initializer:
        renamed[tensor.name] = rw.fresh(tensor.name)
        copy = rw.scope.body.initializer.add() if isinstance(rw.scope.body, onnx.GraphProto) else None
        if copy is None:
            node = onnx.helper.make_node("Constant", [], [renamed[tensor.name]], value=tensor)
            rw.preceding.append(node)
        else:
            copy.CopyFrom(tensor)
            copy.name = renamed[tensor.name]
    for inner in graph.node:
        node = onnx.NodeProto()
        node.CopyFrom(inner)
        if node.name:
            node.name = rw.fresh(node.name)
        for index, name in enumerate(node.output):
            if name:
                renamed[name] = node.output[index] = rw.fresh(name)
        _rename_inputs(node, renamed)
        rw.scope.register(node)
        rw.preceding.append(node)
    return [renamed.get(name, name) for name in output_names(graph)]


def _rename_inputs(node: onnx.NodeProto, renamed: dict[str, str]) -> None:
    """Rename the inputs of a node, and the outer values that its sub-graphs read."""
    for index, name in enumerate(node.input):
        node.input[index] = renamed.get(name, name)
    for _, _, graph in subgraphs(node):
        for inner in graph.node:
            _rename_inputs(inner, renamed)
        for output in graph.output:
            output.name = renamed.get(output.name, output.name)
