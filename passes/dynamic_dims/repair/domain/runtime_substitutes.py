"""Standard nodes that replace operators of ONNX Runtime while shapes are inferred.

ONNX Runtime's optimiser and quantiser write operators of their own (`com.microsoft`, some in ai.onnx). onnx has no shape
inference for these. For each operator here, some standard operator gives outputs of the same dims, after this module
picks its inputs and changes some of their axes. The interpreter knows nothing about other operators and their outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.shape_arithmetic import attributes_of

from .values import Dim, SampledValue, fixed

__all__ = ["SUBSTITUTES_OPSET", "Substitute", "substitute"]

SUBSTITUTES_OPSET = 17
"""The first opset that has all operators used here; models with an older one may have nodes of ONNX Runtime's."""


@dataclass(frozen=True)
class Substitute:
    """A node of the standard that has the same outputs, or one output with the dims of each of the outputs `like`.

    `dtype` is the element type of the first output, 0 if it is the type of the substitute's output.
    """

    node: onnx.NodeProto
    inputs: list[SampledValue | None]
    like: tuple[int, ...] = (0,)
    dtype: int = 0

    def spread(self, found: Sequence[SampledValue], count: int) -> list[SampledValue]:
        """Return the values of the `count` outputs of the node that this stands for, of those of the substitute."""
        first = found[0]
        first = replace(first, dtype=self.dtype) if self.dtype and first.dtype else first
        rest = [found[index] if index < len(found) else SampledValue() for index in range(count)]
        return [first if index in self.like else value for index, value in enumerate(rest)]


@dataclass(frozen=True)
class _Call:
    """A node of an operator that onnx does not know, and the values of its inputs."""

    node: onnx.NodeProto
    attributes: dict[str, Any]
    inputs: list[SampledValue | None]

    def dims(self, index: int) -> tuple[Dim, ...] | None:
        """Return the dims of an input, None if it is absent or not all dims are known."""
        value = self.inputs[index] if index < len(self.inputs) else None
        return value.known if value is not None else None

    def like_first(self, size: int | None = None, axis: int = -1, dtype: int = 0) -> Substitute | None:
        """Return an Identity of the first input, with `size` for the length of one axis; None if its rank is not known."""
        value = self.inputs[0] if self.inputs else None
        if value is None or not value.dims or len(value.dims) <= axis or not size or size < 1:
            return None
        identity = helper.make_node("Identity", self.node.input[:1], self.node.output[:1])
        return Substitute(identity, [value.with_axis(axis, fixed(size))], dtype=dtype)


def substitute(node: onnx.NodeProto, inputs: Sequence[SampledValue | None]) -> Substitute | None:
    """Return the substitute for a node of an operator that onnx does not know, None if there is none."""
    make = _BY_DOMAIN.get(node.domain, {}).get(node.op_type)
    if make is None or not node.output:
        return None
    attributes = attributes_of(node)
    if attributes.get("channels_last"):
        return None  # the standard has no operator of that layout
    return make(_Call(node, attributes, [*inputs]))


_Maker = Callable[[_Call], Substitute | None]


def _as(operator: str, *picked: int, like: tuple[int, ...] = (0,), dtype_of: int | None = None) -> _Maker:
    """Return a maker of nodes of `operator` with the inputs `picked` and the attributes it has.

    `dtype_of` is the input that has the type of the output's elements, if that is not the first one picked. Quantized
    elements are treated as floats, since the standard operators do not support quantized ones.
    """

    def make(call: _Call) -> Substitute | None:
        names, inputs = call.node.input, call.inputs
        chosen = [index for index in picked if index < len(names)]
        if not chosen or (dtype_of is not None and dtype_of >= len(inputs)):
            return None
        formal = onnx.defs.get_schema(operator).attributes
        kept_attributes = {name: value for name, value in call.attributes.items() if name in formal}
        typed = inputs[chosen[0] if dtype_of is None else dtype_of]
        substitute_node = helper.make_node(
            operator, [names[index] for index in chosen], call.node.output[:1], **kept_attributes
        )
        chosen_inputs = [_as_float(inputs[index]) for index in chosen]
        return Substitute(substitute_node, chosen_inputs, like, typed.dtype if typed is not None else 0)

    return make


def _as_float(value: SampledValue | None) -> SampledValue | None:
    quantized = value is not None and value.dtype in (TensorProto.INT8, TensorProto.UINT8)
    return SampledValue(TensorProto.FLOAT, value.dims) if value is not None and quantized else value


def _fused_matmul(call: _Call) -> Substitute | None:
    # These attributes move the batch axes, which MatMul cannot express.
    if call.attributes.get("transBatchA") or call.attributes.get("transBatchB"):
        return None
    sides = []
    for name, value in zip(("transA", "transB"), call.inputs, strict=False):
        if value is not None and call.attributes.get(name):
            if value.dims is None:
                return None
            value = SampledValue(value.dtype, (*value.dims[:-2], *reversed(value.dims[-2:])))
        sides.append(value)
    return Substitute(helper.make_node("MatMul", call.node.input[:2], call.node.output[:1]), sides)


def _quantized_lstm(call: _Call) -> Substitute | None:
    """Return an LSTM; the weights, whose axes are in another order, play no part in the shapes."""
    lstm = _as("LSTM", *range(7))(call)
    if lstm is not None:
        lstm.node.output.extend(call.node.output[1:])
    return lstm


def _quantized_concat(call: _Call) -> Substitute | None:
    return _as("Concat", *range(2, len(call.node.input), 3))(call)


def _quantized_gemm(call: _Call) -> Substitute | None:
    gemm = _as("Gemm", 0, 3)(call)
    requantized = len(call.node.input) > 7 and call.node.input[7]
    return gemm if gemm is None or requantized else replace(gemm, dtype=TensorProto.FLOAT)


def _attention(call: _Call) -> Substitute | None:
    """Return the input with the features of the value projection, the last of three in one matrix."""
    weights, sizes = call.dims(1), call.attributes.get("qkv_hidden_sizes")
    if weights is None or len(weights) != 2:
        return None
    scale = call.inputs[3] if call.node.op_type == "QAttention" and len(call.inputs) > 3 else None
    size = sizes[2] if sizes else weights[1].frozen // 3
    return call.like_first(size, dtype=scale.dtype if scale is not None else 0)


def _heads(call: _Call) -> Substitute | None:
    """Return the query with the features of the values; with all three in one tensor, without those of two."""
    query, value = call.dims(0), call.dims(2)
    if query is None or len(query) != 3:
        return None
    size = query[2].frozen
    if len(call.inputs) < 2 or call.inputs[1] is None:
        heads, kv_heads = call.attributes.get("num_heads", 0), call.attributes.get("kv_num_heads", 0)
        # The packed tensor has the heads of the query, and the shared heads of keys and values twice.
        size = size // (heads + 2 * kv_heads) * heads if heads and kv_heads else 0
    elif value is not None and "kv_num_heads" not in call.attributes:
        heads_apart = len(value) == 4
        size = value[1].frozen * value[3].frozen if heads_apart else value[2].frozen
    return call.like_first(size)


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
    "MatMulNBits": lambda call: call.like_first(call.attributes.get("N")),
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
    "ReorderOutput": lambda call: call.like_first(call.attributes.get("channels"), 1),
}
"""Convolutions with channels in blocks: ONNX Runtime saves these in models that it optimised for one processor."""

_BY_DOMAIN = {
    "": {"SimplifiedLayerNormalization": _as("LayerNormalization", 0, 1)},
    "com.microsoft": _MICROSOFT,
    "com.microsoft.nchwc": _BLOCKED,
}
