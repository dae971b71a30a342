"""Finds the elements of outputs that depend on results that the standard leaves undefined (rule 6).

Undefined are a Cast to an integer of NaN, of an infinity or of a number out of range, and an integer division by zero. A shift by
the width of the type or more is undefined as well (see the texts of Cast, Div, Mod and BitShift). The original runs with several
numbers instead of such operands: an element that changes depends on one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto

from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import LocatedBody, all_nodes, bodies
from onnx_migrate.model.names import Names
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.compare.values import paired
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, open_model
from onnx_migrate.verify.evaluators.written_nodes import WrittenNodes
from onnx_migrate.verify.kernel.arrays import Array, is_float

__all__ = ["may_be_undefined", "undefined_elements"]

_OPERATORS = frozenset({"Cast", "Div", "Mod", "BitShift"})

_OTHERS = (1, 3, 2)
"""Numbers that replace an undefined operand, in turn. An element that depends on it changes between two of them."""

_WHERE_BEGINS = 9
"""The first opset with the operator Where, which replaces operands."""


def may_be_undefined(model: onnx.ModelProto) -> bool:
    """Whether a node of the model may have a result that the standard leaves undefined."""
    return any(node.op_type in _OPERATORS and is_onnx(node.domain) for node in all_nodes(model))


def undefined_elements(
    original: Runnable, configuration: str, feeds: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[int, str, dict[str, Array]]]:
    """Yield the feed, the output and, for each tensor, its undefined elements, for outputs that have some.

    The runs with other operands are compared with each other. The nodes that replace operands may change how ONNX Runtime rounds
    float16, so that the original itself differs from them for another reason. A model that does not run with other operands has
    no undefined elements.
    """
    variants = [_with_operands(original, other) for other in _OTHERS]
    try:
        models = [open_model(variant, configuration) for variant in variants if variant is not None]
        for index, feed in enumerate(feeds if models else ()):
            first, *others = [model.run(feed) for model in models]
            for other in others:
                for name in first:
                    if elements := _changed(name, first[name], other[name]):
                        yield index, name, elements
    except EvaluationError:
        return


def _changed(name: str, one: Any, other: Any) -> dict[str, Array]:
    """Return by tensor the elements that are not the same in two runs; all of a tensor of another shape."""
    masks = {}
    for part, a, b in paired(name, one, other) or ():
        if a is None or b is None:
            continue
        if a.shape != b.shape:
            masks[part] = np.ones(a.shape, bool)
            continue
        unequal = np.asarray(a != b)
        if is_float(a):
            # NaN differs from itself, though both runs computed it.
            unequal &= ~(np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64)))
        if unequal.any():
            masks[part] = unequal
    return masks


def _with_operands(original: Runnable, other: int) -> Runnable | None:
    """Return the model with `other` in place of each operand with an undefined result; None if no operand can be replaced."""
    model = original.proto()
    types, names, replaced = TypeTable(model), Names(model), 0
    for located in bodies(model):
        if (
            located.owner is not model
            or (onnx_opset(model.opset_import, ir_version=model.ir_version) or 0) < _WHERE_BEGINS
        ):
            continue
        nodes = located.body.node
        # From the end, so that insertions do not move the nodes that follow in the loop.
        for node_index in reversed(range(len(nodes))):
            if written := _replaced_operand(nodes[node_index], located, types, names, other):
                replaced += 1
                for node in reversed(written):
                    nodes.insert(node_index, node)
    return original.with_structure(model) if replaced else None


def _replaced_operand(
    node: NodeProto, located: LocatedBody, types: TypeTable, names: Names, other: int
) -> list[NodeProto]:
    """Make a node read `other` in place of an operand with an undefined result; return the nodes that it then needs."""
    if node.op_type not in _OPERATORS or not is_onnx(node.domain):
        return []
    operand = 0 if node.op_type == "Cast" else 1
    dtype = _dtype(types.lookup(None, located.key, node.input[operand]).dtype)
    write = WrittenNodes(node.output[0], names)
    put, constant, value = write.put, write.constant, node.input[operand]
    if dtype is None:
        return []
    if node.op_type == "Cast":
        target = _dtype(int(attributes_of(node).get("to", 0)))
        if dtype.kind != "f" or target is None or target.kind not in "iu":
            return []
        limits = np.iinfo(target)
        wide = put("Cast", value, to=TensorProto.DOUBLE)
        # The standard leaves a Cast beyond the range of the type undefined.
        below = put("Less", wide, constant(np.float64(float(limits.max) + 1)))
        above = put("Greater", wide, constant(np.float64(float(limits.min) - 1)))
        defined = put("And", below, above)
    elif dtype.kind not in "iu":
        return []
    elif node.op_type == "BitShift":
        number = put("Cast", value, to=TensorProto.INT64)
        # A shift by the width of the type or more is undefined in C++.
        defined = put("Less", number, constant(np.int64(dtype.itemsize * 8)))
    else:
        number = put("Cast", value, to=TensorProto.INT64)
        # A division of integers by zero is undefined.
        defined = put("Not", put("Equal", number, constant(np.int64(0))))
    node.input[operand] = put("Where", defined, value, constant(np.array(other, dtype)))
    return write.nodes


def _dtype(element: int | None) -> np.dtype[Any] | None:
    """Return the numpy type of an element type; None if it is unknown or not one of numpy's own."""
    if not element or element in (TensorProto.STRING, TensorProto.UNDEFINED):
        return None
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element))
    return dtype if dtype.isbuiltin == 1 else None
