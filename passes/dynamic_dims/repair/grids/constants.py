"""The elements of values that nodes compute from constants alone, for models that are not simplified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.facts.shape_arithmetic import LARGEST as SHAPE_ELEMENTS
from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.facts.shape_arithmetic import compute as compute_node
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.standard.schema import is_onnx

from ..domain import Array, SampledValue
from ..domain.node_inference import infer
from ..domain.values import dtype_of, known_value
from ..graph_state import GraphState

__all__ = ["LARGEST", "constant_array"]

LARGEST = 20_000_000
"""The most numbers of a table that is computed, or compared with laws; larger ones would take seconds."""
_EVALUATED = frozenset(
    {
        "ScatterND",
        "Pow",
        "Exp",
        "Log",
        "Sin",
        "Cos",
        "MatMul",
        "Split",
        "Trilu",
        "Reciprocal",
        "Sigmoid",
        "Shape",
        "Size",
        "Flatten",
    }
)
"""Operators that exporters compute tables with, beside shape arithmetic; onnx's reference evaluator computes them."""

_LOOKUPS = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
_MOST_COLUMNS = 8
"""Columns of a table, such as the four of a box: an axis of more elements has the rows of a table of positions."""


def constant_array(state: GraphState, name: str) -> Array | None:
    """Return the elements of a constant, also of one that nodes compute from constants; None for any other value.

    The nodes may be in `state` or a graph around it. The constant may also be an input or an output of a function.
    """
    computed = state.computed_constants
    # Chains of nodes can be longer than Python's recursion allows.
    queue = [name]
    while queue:
        value = queue[-1]
        if value in computed:
            queue.pop()
            continue
        array, owner = state.scope.constant(value), state.owner(value)
        if array is None and owner is not None and owner is not state:
            computed[value] = constant_array(owner, value)
            continue
        node = state.producers.get(value)
        if array is not None or node is None or not _is_computed(state, node):
            computed[value] = None if array is None else np.asarray(array)
            continue
        missing = [operand for operand in node.input if operand and operand not in computed]
        if missing:
            queue.append(missing[0])
            continue
        inputs = [computed[operand] if operand else None for operand in node.input]
        all_constant = all(
            array is not None for array, operand in zip(inputs, node.input, strict=True) if operand
        )
        computed[value] = _output(state, node, inputs) if all_constant else None
    return computed[name]


def _is_computed(state: GraphState, node: onnx.NodeProto) -> bool:
    """Return whether a node may compute a table; one that selects rows of a table of numbers looks them up instead."""
    if not is_onnx(node.domain) or len(node.output) != 1 or not node.input or any(subgraphs(node)):
        return False
    if any(attribute.ref_attr_name for attribute in node.attribute):
        return False  # each call of the function may give it another number
    if node.op_type not in _LOOKUPS:
        return True
    table = state.scope.constant(node.input[0])
    if table is None or table.dtype.kind != "f":
        return True
    attributes = attributes_of(node)
    axes = state.scope.constant(node.input[3]) if node.op_type == "Slice" and len(node.input) > 3 else None
    selected = axes.tolist() if axes is not None else attributes.get("axes", [attributes.get("axis", 0)])
    return all(table.shape[axis] <= _MOST_COLUMNS for axis in selected)


def _output(state: GraphState, node: onnx.NodeProto, inputs: Sequence[Array | None]) -> Array | None:
    if _elements(state, node, inputs) > LARGEST:
        return None
    array = compute_node(node.op_type, attributes_of(node), inputs, largest=LARGEST)
    return array if array is not None or node.op_type not in _EVALUATED else _evaluated(state, node, inputs)


def _elements(state: GraphState, node: onnx.NodeProto, inputs: Sequence[Array | None]) -> int:
    """Return how many elements the inputs have together, or the output if it has more."""
    arrays = [array for array in inputs if array is not None]
    count = sum(array.size for array in arrays)
    dims = state.value(node.output[0]).known
    if dims is None:  # lengths that follow from elements, as those of a NonZero, are known here
        values = [None if array is None else _value_of(array) for array in inputs]
        dims = infer(node, values, state.imports, state.ir_version)[0].known
    return max(count, prod(dim.frozen for dim in dims)) if dims is not None else count


def _value_of(array: Array) -> SampledValue:
    """Return the value of an array, without the elements if they are too many for a shape."""
    value = known_value(array)
    return value if array.size <= SHAPE_ELEMENTS else replace(value, data=None)


def _evaluated(state: GraphState, node: onnx.NodeProto, inputs: Sequence[Array | None]) -> Array | None:
    """Return the output as onnx's reference evaluator computes it, None if the evaluator does not run the node."""
    # Few models need the evaluator, and its import takes long.
    from onnx.reference import ReferenceEvaluator

    feed = {name: value for name, value in zip(node.input, inputs, strict=True) if value is not None}
    ports = [
        helper.make_tensor_value_info(name, dtype_of(value), value.shape) for name, value in feed.items()
    ]
    output = helper.make_empty_tensor_value_info(node.output[0])
    graph = helper.make_graph([node], "table", ports, [output])
    opset = helper.make_opsetid("", state.imports.get("", state.imports.get("ai.onnx", 1)))
    model = helper.make_model(graph, opset_imports=[opset], ir_version=state.ir_version)
    try:
        (result,) = ReferenceEvaluator(model).run(None, feed)
    except Exception:
        # The evaluator raises errors of any type. Such a value counts as no constant, so the pass refuses a reader that varies.
        return None
    return np.asarray(result)
