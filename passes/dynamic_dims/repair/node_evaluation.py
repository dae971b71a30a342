"""The evaluation of one node without sub-graphs: its repair rule, its transfer function, and the check for conflicts."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from onnx_migrate.standard.schema import is_onnx

from .conflicts import batch_mixing, broadcast_conflict, operand_conflict
from .domain import Value
from .domain.node_inference import ShapeConflict, infer
from .domain.runtime_substitutes import SUBSTITUTES_OPSET, substitute
from .domain.value import known_value
from .graph_state import GraphState
from .node_context import BatchMixed, NodeContext, UnrepairableNode
from .rules.squeezed_batch import BATCH_REMOVERS
from .rules.table import APPLIED_TO_CONSTANTS, RULES, RUNTIME_RULES

__all__ = ["evaluate", "record_emitted", "removed_batch"]


def evaluate(
    context: NodeContext, imports: Mapping[str, int], ir_version: int, tolerated: Set[str]
) -> list[Value]:
    """Repair a node and return the values of its outputs.

    Raises UnrepairableNode for a conflict, but for BatchMixed of a node whose label is in `tolerated`.
    """
    node = context.node
    outputs = _apply_rule(context)
    record_emitted(context, imports, ir_version)
    stand_in = substitute(context.node, context.inputs, context.assignments)
    if stand_in is not None:
        context = replace(context, node=stand_in.node, inputs=stand_in.inputs)
        imports = {**imports, "": max(imports.get("", 1), SUBSTITUTES_OPSET)}
    try:
        if outputs is None:
            outputs = infer(context.node, context.inputs, imports, ir_version, context.assignments)
    except ShapeConflict as error:
        reason = broadcast_conflict(context) or f"it is not valid at other sizes: {error}"
        raise UnrepairableNode(context, reason, _suspect(context)) from error
    problem = operand_conflict(context)
    if problem:
        raise UnrepairableNode(context, problem, _suspect(context))
    mixed = batch_mixing(context)
    if mixed and context.label not in tolerated:
        raise BatchMixed(context, mixed)
    return stand_in.spread(outputs, len(node.output)) if stand_in is not None else outputs


def _apply_rule(context: NodeContext) -> list[Value] | None:
    """Apply the repair rule of a node's operator; return the values of its outputs if the rule knows them."""
    node = context.node
    varying = any(value is not None and (value.varies or value.dims is None) for value in context.inputs)
    rules = RULES if is_onnx(node.domain) else RUNTIME_RULES if node.domain == "com.microsoft" else {}
    if not varying and node.op_type not in APPLIED_TO_CONSTANTS:
        return None
    rule = rules.get(node.op_type)
    return rule(context) if rule is not None else None


def removed_batch(context: NodeContext) -> bool:
    """Return whether an evaluated node removed a batch axis, and was made a Reshape that merges it instead."""
    return context.where.operator in BATCH_REMOVERS and context.node.op_type == "Reshape"


def record_emitted(context: NodeContext, imports: Mapping[str, int], ir_version: int) -> None:
    """Record the values of the nodes written before a node, for the nodes after it."""
    state = context.graph_state
    for node in context.rw.preceding:
        if any(name in state.values for name in node.output):
            continue
        inputs = [_value_of(state, name) for name in node.input]
        outputs = infer(node, inputs, imports, ir_version, context.assignments)
        state.values.update(zip(node.output, outputs, strict=True))


def _value_of(state: GraphState, name: str) -> Value:
    """Return the value of an input of an emitted node, which may be a constant that was just added."""
    value = state.value(name)
    if value.dtype or value.types:
        return value
    array = state.scope.constant(name)
    return value if array is None else known_value(array, state.assignments)


def _suspect(context: NodeContext) -> str:
    """Return the name of the first input whose shape is known and fixed: the likeliest to hold the frozen size."""
    for name, value in zip(context.node.input, context.inputs, strict=False):
        if value is not None and value.dims is not None and not value.varies:
            return name
    return ""
