"""Constants of 8 bits and less in types that an older opset does not have: widened if only dequantisation reads them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.model.graphs import (
    Body,
    FunctionKey,
    bodies,
    called,
    function_key,
    nested_bodies,
    output_names,
)
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import numbers
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.element_types import FIRST_OPSET, type_name
from onnx_migrate.standard.schema import is_onnx

__all__ = ["widen_constants"]

_T = TensorProto

_WIDER = {
    _T.DataType.Value(name): wide
    for names, wide in (
        (("INT4", "INT2"), _T.INT8),
        (("UINT4", "UINT2"), _T.UINT8),
        (
            (
                "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT6E2M3", "FLOAT6E3M2",
                "FLOAT4E2M1",
            ),
            _T.FLOAT16,
        ),
        (("FLOAT8E8M0",), _T.FLOAT),
    )
    for name in names
    if name in _T.DataType.keys()  # noqa: SIM118 - a protobuf enum wrapper is not iterable
}  # fmt: skip
"""The type that holds all values of a narrow one."""

_MOVERS = frozenset(
    ("Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")
)  # fmt: skip
"""Operators that give out elements of their first input (Concat: of all), of any type."""

_Functions = dict[FunctionKey, onnx.FunctionProto]


def widen_constants(model: Model, target: int, log: ChangeLog, pass_name: str) -> None:
    """Widen constants whose element type opset `target` does not have, in place, without rounding.

    This applies if every reader is a DequantizeLinear, a Cast, or a mover whose readers all are. Other constants
    stay, and the steps of their readers refuse them.
    """
    counts: dict[tuple[int, int], list[str]] = defaultdict(list)
    functions = {function_key(function): function for function in model.proto.functions}
    for located in bodies(model.proto):
        tensors = {
            name: tensor
            for name, tensor in _constants(located.body)
            # Older opsets have no such type.
            if tensor.data_type in _WIDER and FIRST_OPSET[tensor.data_type] > target
        }
        if not tensors:
            continue
        wide = _widened_values(located.body, set(tensors), functions)
        for name, tensor in tensors.items():
            if name in wide:
                counts[tensor.data_type, _WIDER[tensor.data_type]].append(name)
                _widen(model, tensor)
        # Declared types inside sub-graphs must follow.
        for _, body in nested_bodies(located.body):
            for value in getattr(body, "value_info", ()):
                if value.name in wide and value.type.tensor_type.elem_type in _WIDER:
                    value.type.tensor_type.elem_type = _WIDER[value.type.tensor_type.elem_type]
    for (narrow, wider), names in sorted(counts.items()):
        log.note(
            pass_name,
            "widened",
            f"widened {len(names)} constant{'s' if len(names) > 1 else ''} of {type_name(narrow)}, which begins with"
            f" opset {FIRST_OPSET[narrow]}, to"
            f" {type_name(wider)}, with equal values",
            subject=names[0],
        )


def _constants(body: Body) -> Iterator[tuple[str, TensorProto]]:
    if isinstance(body, onnx.GraphProto):
        listed = {value.name for value in body.input}
        for tensor in body.initializer:
            # A caller can set an initializer that is listed as an input, so that it is no constant.
            if tensor.name not in listed:
                yield tensor.name, tensor
    for node in body.node:
        if node.op_type == "Constant" and is_onnx(node.domain):
            for attribute in node.attribute:
                if attribute.name == "value" and not attribute.ref_attr_name:
                    yield node.output[0], attribute.t


def _widened_values(body: Body, narrow: set[str], functions: _Functions) -> set[str]:
    """Return the values in `narrow` that can be widened, and the values that nodes move from them."""
    readers: dict[str, list[tuple[onnx.NodeProto, int]]] = defaultdict(list)
    given_out: set[str] = set()
    # Outputs of a body have a type that a caller or a declaration expects.
    for _, inner in nested_bodies(body):
        # An output of a body must keep its declared type.
        given_out.update(output_names(inner))
        for node in inner.node:
            for index, name in enumerate(node.input):
                if name:
                    readers[name].append((node, index))
    wide_values, pending = set(narrow), list(narrow)
    while pending:
        for node, index in readers[pending.pop()]:
            # A node that moves elements passes the wider type on.
            if _moves(node, index):
                new = [name for name in node.output if name and name not in wide_values]
                wide_values.update(new)
                pending.extend(new)
    # A value that cannot be widened takes those with it that are moved into it, or read beside it.
    shrinking = True
    while shrinking:
        still_wide = {
            name
            for name in wide_values
            if name not in given_out
            and all(_takes(node, index, wide_values, functions) for node, index in readers[name])
        }
        shrinking = still_wide != wide_values
        wide_values = still_wide
    return wide_values


def _moves(node: onnx.NodeProto, index: int) -> bool:
    return is_onnx(node.domain) and node.op_type in _MOVERS and (index == 0 or node.op_type == "Concat")


def _takes(node: onnx.NodeProto, index: int, wide: set[str], functions: _Functions) -> bool:
    """Return whether a node computes the same if this input is widened, and the others of its type with it."""
    function = functions.get(called(node))
    # A call is safe if the function's body is.
    if function is not None:
        wide_inputs = {name for name, value in zip(function.input, node.input, strict=False) if value in wide}
        inner = {key: callee for key, callee in functions.items() if callee is not function}
        return index < len(function.input) and function.input[index] in _widened_values(
            function, wide_inputs, inner
        )
    if _moves(node, index):
        beside = node.input if node.op_type == "Concat" else ()
        return all(name in wide for name in (*beside, *node.output) if name)
    if not is_onnx(node.domain) or node.op_type not in ("Cast", "DequantizeLinear"):
        return False
    if node.op_type == "Cast" or index == 1:
        return True
    return all(not name or name in wide for name in (node.input[0], *node.input[2:3]))


def _widen(model: Model, tensor: TensorProto) -> None:
    wide = _WIDER[tensor.data_type]
    array = numbers(model.weights.array(tensor)).astype(helper.tensor_dtype_to_np_dtype(wide))
    tensor.data_type = wide
    model.weights.put(tensor, numpy_helper.from_array(array).raw_data)
