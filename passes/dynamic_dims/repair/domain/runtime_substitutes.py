"""Standard nodes that stand for operators of ONNX Runtime while shapes are inferred.

ONNX Runtime's optimiser and quantiser write operators of its own (`com.microsoft`, some in ai.onnx) that onnx has no
inference for. Each here has outputs of the same dims as some operator of the standard, once its inputs are picked, and
some of their axes changed. What is not here is unknown to the interpreter, and so is what is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.shape_arithmetic import attributes_of

from .dims import Assignments
from .value import Value

__all__ = ["SUBSTITUTES_OPSET", "Substitute", "substitute"]

SUBSTITUTES_OPSET = 17
"""The first opset that has all operators used here; models with an older one may have nodes of ONNX Runtime's."""

_Inputs = Sequence[Value | None]


@dataclass(frozen=True)
class Substitute:
    """A node of the standard that has the same outputs, or one output with the dims of each of the outputs `like`.

    `dtype` is the type of the elements of the first, 0 where it is that of the substitute's output.
    """

    node: onnx.NodeProto
    inputs: list[Value | None]
    like: tuple[int, ...] = (0,)
    dtype: int = 0

    def spread(self, found: Sequence[Value], count: int) -> list[Value]:
        """Return the values of the `count` outputs of the node that this stands for, of those of the substitute."""
        first = found[0]
        first = replace(first, dtype=self.dtype) if self.dtype and first.dtype else first
        rest = [found[index] if index < len(found) else Value() for index in range(count)]
        return [first if index in self.like else value for index, value in enumerate(rest)]


def substitute(node: onnx.NodeProto, inputs: _Inputs, assignments: Assignments) -> Substitute | None:
    """Return what stands for a node of an operator that onnx does not know, None where nothing does."""
    make = _BY_DOMAIN.get(node.domain, {}).get(node.op_type)
    if make is None or not node.output:
        return None
    attributes = attributes_of(node)
    if attributes.get("channels_last"):
        return None  # the standard has no operator of that layout
    return make(node, attributes, [*inputs], assignments)


_Maker = Callable[[onnx.NodeProto, dict[str, Any], list[Value | None], Assignments], Substitute | None]


def _as(operator: str, *picked: int, like: tuple[int, ...] = (0,), dtype_of: int | None = None) -> _Maker:
    """Return a maker of nodes of `operator` with the inputs `picked` and the attributes it has.

    `dtype_of` is the input that has the type of the output's elements, if that is not the first one picked. Quantized
    elements are taken for numbers of float, since the standard's operators are not for them.
    """

    def make(
        node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
    ) -> Substitute | None:
        chosen = [index for index in picked if index < len(node.input)]
        if not chosen or (dtype_of is not None and dtype_of >= len(inputs)):
            return None
        schema = onnx.defs.get_schema(operator)
        kept = {name: value for name, value in attributes.items() if name in schema.attributes}
        typed = inputs[chosen[0] if dtype_of is None else dtype_of]
        made = helper.make_node(operator, [node.input[index] for index in chosen], node.output[:1], **kept)
        taken = [_as_float(inputs[index]) for index in chosen]
        return Substitute(made, taken, like, typed.dtype if typed is not None else 0)

    return make


def _as_float(value: Value | None) -> Value | None:
    quantized = value is not None and value.dtype in (TensorProto.INT8, TensorProto.UINT8)
    return Value(TensorProto.FLOAT, value.dims) if value is not None and quantized else value


def _identity(node: onnx.NodeProto, value: Value, dtype: int = 0) -> Substitute:
    return Substitute(helper.make_node("Identity", node.input[:1], node.output[:1]), [value], dtype=dtype)


def _with_last(value: Value | None, size: int, assignments: Assignments) -> Value | None:
    """Return a value with another length of the last axis, None if its rank is not known."""
    if value is None or not value.dims or size < 1:
        return None
    return Value(value.dtype, (*value.dims[:-1], assignments.fixed(size)))


def _fused_matmul(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    if attributes.get("transBatchA") or attributes.get("transBatchB"):
        return None
    sides = []
    for name, value in zip(("transA", "transB"), inputs, strict=False):
        if value is not None and attributes.get(name):
            if value.dims is None:
                return None
            rest, last = value.dims[:-2], value.dims[-2:]
            value = Value(value.dtype, (*rest, *reversed(last)))
        sides.append(value)
    made = helper.make_node("MatMul", node.input[:2], node.output[:1])
    return Substitute(made, sides)


def _quantized_lstm(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    """Return an LSTM; the weights, whose axes are in another order, play no part in the shapes."""
    found = _as("LSTM", *range(min(len(node.input), 7)))(node, attributes, inputs, assignments)
    if found is not None:
        found.node.output.extend(node.output[1:])
    return found


def _quantized_concat(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    return _as("Concat", *range(2, len(node.input), 3))(node, attributes, inputs, assignments)


def _quantized_gemm(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    found = _as("Gemm", 0, 3)(node, attributes, inputs, assignments)
    requantized = len(node.input) > 7 and node.input[7]
    return found if found is None or requantized else replace(found, dtype=TensorProto.FLOAT)


def _attention(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    """Return the input with the features of the value projection, the last of three in one matrix."""
    weights = inputs[1].known if len(inputs) > 1 and inputs[1] is not None else None
    sizes = attributes.get("qkv_hidden_sizes")
    if weights is None or len(weights) != 2:
        return None
    size = sizes[2] if sizes else weights[1].frozen // 3
    scale = inputs[3] if node.op_type == "QAttention" and len(inputs) > 3 else None
    value = _with_last(inputs[0], size, assignments)
    return _identity(node, value, scale.dtype if scale is not None else 0) if value is not None else None


def _heads(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    """Return the query with the features of the values; with all three in one tensor, without those of two."""
    query, key, value = (inputs + [None] * 3)[:3]
    if query is None or query.known is None or len(query.known) != 3:
        return None
    last = query.known[2].frozen
    if key is None:
        heads, kept = attributes.get("num_heads", 0), attributes.get("kv_num_heads", 0)
        size = last // (heads + 2 * kept) * heads if heads and kept else 0
    elif value is None or value.known is None or "kv_num_heads" in attributes:
        size = last
    elif len(value.known) == 4:  # the heads are split already
        size = value.known[1].frozen * value.known[3].frozen
    else:
        size = value.known[2].frozen
    result = _with_last(query, size, assignments)
    return _identity(node, result) if result is not None else None


def _block_quantized(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    value = _with_last(inputs[0] if inputs else None, attributes.get("N", 0), assignments)
    return _identity(node, value) if value is not None else None


def _reorder_output(
    node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Value | None], assignments: Assignments
) -> Substitute | None:
    x = inputs[0] if inputs else None
    if x is None or not x.dims or len(x.dims) < 2 or not attributes.get("channels"):
        return None
    channels = assignments.fixed(attributes["channels"])
    return _identity(node, Value(x.dtype, (x.dims[0], channels, *x.dims[2:])))


_POOLS = ("AveragePool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool")
_LIKE_INPUT = (
    "Gelu", "FastGelu", "QuickGelu", "BiasGelu", "BiasSoftmax", "BiasAdd", "GroupNorm", "RotaryEmbedding", "Inverse",
    "QLinearSigmoid", "QLinearLeakyRelu",
)  # fmt: skip

_MICROSOFT: dict[str, _Maker] = {
    **dict.fromkeys(_LIKE_INPUT, _as("Identity", 0)),
    "QLinearSoftmax": _as("Softmax", 0),
    "LayerNormalization": _as("LayerNormalization", 0, 1, 2),
    "SimplifiedLayerNormalization": _as("LayerNormalization", 0, 1),
    "SkipLayerNormalization": _as("LayerNormalization", 0, 2, like=(0, 3)),
    "SkipSimplifiedLayerNormalization": _as("LayerNormalization", 0, 2, like=(0, 3)),
    "EmbedLayerNormalization": _as("Gather", 2, 0),
    "QuantizeLinear": _as("Identity", 0, dtype_of=2),
    "DequantizeLinear": _as("Identity", 0, dtype_of=1),
    "QLinearAdd": _as("Add", 0, 3),
    "QLinearMul": _as("Mul", 0, 3),
    "QLinearWhere": _as("Where", 0, 1, 4, dtype_of=1),
    "QLinearConcat": _quantized_concat,
    "QLinearAveragePool": _as("AveragePool", 0),
    "QLinearGlobalAveragePool": _as("GlobalAveragePool", 0),
    "FusedMatMul": _fused_matmul,
    "TransposeMatMul": _fused_matmul,
    "DynamicQuantizeMatMul": _as("MatMul", 0, 1),
    "MatMulIntegerToFloat": _as("MatMul", 0, 1, dtype_of=2),
    "MatMulNBits": _block_quantized,
    "FusedGemm": _as("Gemm", 0, 1, 2),
    "QGemm": _quantized_gemm,
    "FusedConv": _as("Conv", 0, 1, 2),
    "DynamicQuantizeLSTM": _quantized_lstm,
    "Attention": _attention,
    "QAttention": _attention,
    "MultiHeadAttention": _heads,
    "GroupQueryAttention": _heads,
}

_BLOCKED: dict[str, _Maker] = {
    "Conv": _as("Conv", 0, 1, 2),
    **{name: _as(name, 0) for name in _POOLS},
    "ReorderInput": _as("Identity", 0),
    "ReorderOutput": _reorder_output,
}
"""Convolutions with channels in blocks, as ONNX Runtime saves a model that it optimised for one processor."""

_BY_DOMAIN = {
    "": {"SimplifiedLayerNormalization": _as("LayerNormalization", 0, 1)},
    "com.microsoft": _MICROSOFT,
    "com.microsoft.nchwc": _BLOCKED,
}
