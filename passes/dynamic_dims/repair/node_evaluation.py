"""The evaluation of one node without sub-graphs: its repair rule, its transfer function, and the check for conflicts."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from onnx_migrate.standard.schema import is_onnx

from .conflicts import batch_mixing, broadcast_conflict, operand_conflict
from .domain import SampledValue
from .domain.node_inference import ShapeConflict, infer
from .domain.runtime_substitutes import SUBSTITUTES_OPSET, substitute
from .domain.values import known_value
from .graph_state import GraphState
from .grids import follow_cell_indices, follow_image_sizes, track_coordinates
from .node_context import BatchMixed, NodeContext, UnrepairableNode
from .rules import apply_rule

__all__ = ["evaluate", "record_emitted"]


def evaluate(context: NodeContext, tolerated: Set[str]) -> list[SampledValue]:
    """Repair a node and return the values of its outputs.

    Raises UnrepairableNode for a conflict, but for BatchMixed of a node whose label is in `tolerated`.
    """
    state, count = context.graph_state, len(context.node.output)
    # The hooks know operators by name; a node of another domain may have the same one.
    of_standard = is_onnx(context.node.domain)
    if of_standard:
        follow_image_sizes(context)
        follow_cell_indices(context)
    outputs = apply_rule(context)
    record_emitted(context)
    # A hook that replaces a constant leaves its value to the nodes that were written, which are known only now.
    context.inputs = [
        _value_of(state, name) if value is None and name else value
        for name, value in zip(context.node.input, context.inputs, strict=True)
    ]
    imports = state.imports
    stand_in = substitute(context.node, context.inputs)
    if stand_in is not None:
        context = replace(context, node=stand_in.node, inputs=stand_in.inputs)
        imports = {**imports, "": max(imports.get("", 1), SUBSTITUTES_OPSET)}
    try:
        if outputs is None:
            outputs = infer(context.node, context.inputs, imports, state.ir_version)
    except ShapeConflict as error:
        reason = broadcast_conflict(context) or f"it is not valid at other sizes: {error}"
        raise UnrepairableNode(context, reason, _suspect(context)) from error
    problem = operand_conflict(context)
    if problem:
        raise UnrepairableNode(context, problem, _suspect(context))
    mixed = batch_mixing(context)
    if mixed and context.label not in tolerated:
        raise BatchMixed(context, mixed)
    if stand_in is not None:
        return stand_in.spread(outputs, count)
    if of_standard:
        track_coordinates(context, outputs)
    return outputs


def record_emitted(context: NodeContext) -> None:
    """Record the values of the nodes written before a node, for the nodes after it."""
    state = context.graph_state
    for node in context.rw.preceding:
        if not any(name in state.values for name in node.output):
            inputs = [_value_of(state, name) if name else None for name in node.input]
            outputs = infer(node, inputs, state.imports, state.ir_version)
            state.values.update(
                (name, value) for name, value in zip(node.output, outputs, strict=True) if name
            )


def _value_of(state: GraphState, name: str) -> SampledValue:
    """Return the value of an input of an emitted node, which may be a constant that was just added."""
    value = state.value(name)
    array = None if value.dtype or value.types else state.scope.constant(name)
    return value if array is None else known_value(array)


def _suspect(context: NodeContext) -> str:
    """Return the name of the first input whose shape is known and fixed: the likeliest to hold the frozen size."""
    for name, value in zip(context.node.input, context.inputs, strict=False):
        if value is not None and value.dims is not None and not value.varies:
            return name
    return ""
