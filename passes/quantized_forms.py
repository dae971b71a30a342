"""Writes quantised operators as float ones between QuantizeLinear and DequantizeLinear, and these pairs as nothing at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.steps.decomposition_registry import Decomposition, decomposition_of
from onnx_migrate.engine.steps.formula import Array, Op, Result, TensorProto, Value, unregistered
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.scope import Scope
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.schema import is_onnx

from .standard import MICROSOFT, import_onnx

__all__ = ["WITH_SCALES", "Dequantized", "QuantizedAsPairs", "write_out_softmax", "write_scales_as_pairs"]

_T = TensorProto


def q_linear_conv(op: Op, *inputs: Value) -> Value:
    """Data, weights and bias are dequantised, and the result of Conv is quantised."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *biases = inputs
    weights = op.DequantizeLinear(w, w_scale, w_zero, axis=0 if w_scale.need_rank() else None)
    added, bias = None, biases[0] if biases else None
    if bias is not None:
        scale = op.known(x_scale) * op.known(w_scale)
        added = op.DequantizeLinear(bias, scale, None, axis=0 if w_scale.need_rank() else None)
    found = op.Conv(op.DequantizeLinear(x, x_scale, x_zero), weights, added, **op.attributes)
    return op.QuantizeLinear(found, y_scale, y_zero)


def q_linear_mat_mul(op: Op, *inputs: Value) -> Value:
    """Both matrices are dequantised, and their product is quantised."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs
    if a_scale.need_rank() or y_scale.need_rank():
        op.refuse("the rows of its first matrix have scales of their own", code="no-equal")
    right = op.DequantizeLinear(b, b_scale, b_zero, axis=-1 if b_scale.need_rank() else None)
    return op.QuantizeLinear(op.DequantizeLinear(a, a_scale, a_zero) @ right, y_scale, y_zero)


def mat_mul_integer(op: Op, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """The differences from the zero points, which DequantizeLinear with scales of 1 gives, are multiplied as floats."""
    if a_zero is not None and a_zero.need_rank() and a_zero.shape != (1,):
        op.refuse("the rows of its first matrix have zero points of their own", code="no-equal")
    return (_difference(op, a, a_zero, 0) @ _difference(op, b, b_zero, -1)).cast(_T.INT32)


def conv_integer(op: Op, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None) -> Value:
    """The differences from the zero points, which DequantizeLinear with scales of 1 gives, go through a Conv of floats."""
    found = op.Conv(_difference(op, x, x_zero, 0), _difference(op, w, w_zero, 0), **op.attributes)
    return found.cast(_T.INT32)


def _difference(op: Op, value: Value, zero: Value | None, axis: int) -> Value:
    shape = () if zero is None else zero.need_static()
    scale = op.constant(np.ones(shape, np.float32))
    return op.DequantizeLinear(value, scale, zero, axis=axis if shape else None)


def q_gemm(op: Op, *inputs: Value, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Value:
    """Both matrices and C are dequantised, and the result of Gemm is quantised if there is a scale for it."""
    a, a_scale, a_zero, b, b_scale, b_zero, *more = inputs
    c, y_scale, y_zero = [*more, None, None, None][:3]
    several = b_scale.need_rank() and b_scale.shape != (1,)
    right = op.DequantizeLinear(b, b_scale, b_zero, axis=(0 if transB else 1) if several else None)
    added = None
    if c is not None:
        scale = op.known(a_scale) * op.known(b_scale) * op.constant(np.float32(alpha))
        added = op.DequantizeLinear(c, scale, None, axis=c.need_rank() - 1 if several else None)
    left = op.DequantizeLinear(a, a_scale, a_zero)
    found = op.Gemm(left, right, added, alpha=float(alpha), transA=transA, transB=transB)
    if y_scale is None:
        return found
    return op.QuantizeLinear(found, y_scale, op.constant(0, a) if y_zero is None else y_zero)


_PAIRS = {
    (item.domain, item.operator): item
    for item in (
        unregistered(q_linear_conv, "QLinearConv", 13),
        unregistered(q_linear_mat_mul, "QLinearMatMul", 13),
        unregistered(mat_mul_integer, "MatMulInteger", 13),
        unregistered(conv_integer, "ConvInteger", 13),
        unregistered(q_gemm, "com.microsoft::QGemm", 13),
    )
}

_QUANTIZED = (
    "QLinear",
    "MatMulIntegerToFloat",
    "MatMulNBits",
    "DynamicQuantizeMatMul",
    "QAttention",
    "QEmbedLayerNormalization",
    "GatherBlockQuantized",
)
"""The beginnings of names of com.microsoft whose operators are written with standard ones first."""


def _form(domain: str, operator: str) -> Decomposition | None:
    return _PAIRS.get(("" if is_onnx(domain) else domain, operator)) or decomposition_of(domain, operator)


def _unfit(node: onnx.NodeProto, _scope: Scope) -> str | None:
    key = "" if is_onnx(node.domain) else node.domain, node.op_type
    if key in _PAIRS or (node.domain == MICROSOFT and node.op_type.startswith(_QUANTIZED)):
        return f"{node.op_type} is a quantised operator"
    return None


WITH_SCALES = frozenset(("QLinearConv", "QLinearMatMul"))


def write_scales_as_pairs(rw: LoweringRewriter) -> str | None:
    """Write a node whose weights have several scales as pairs, or return why it cannot be written.

    OpenVINO 2026.4 takes these scales for those of another axis, or for one, and refuses the file.
    """
    if rw.shape(rw.input(4)) in ((), (1,)):
        return None
    _write(rw, _PAIRS["", rw.node.op_type])
    return None


_MOVING = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def write_out_softmax(rw: LoweringRewriter) -> str | None:
    """Write a Softmax of what DequantizeLinear gives as Exp, ReduceSum and Div; return None.

    tract 0.23.9 makes one node of DequantizeLinear, Softmax and QuantizeLinear, which gives 255 for all elements.
    """
    source = rw.producer(rw.input(0))
    while source is not None and source.op_type in _MOVING:
        source = rw.producer(source.input[0])
    form = decomposition_of("", "Softmax")
    if source is not None and source.op_type == "DequantizeLinear" and form is not None:
        _write(rw, form)
    return None


def _write(rw: LoweringRewriter, form: Decomposition) -> None:
    assert form.adapt is not None
    form.adapt(rw.node, rw)
    rw.note(form.reason, form.exactness)


@register_pass
@dataclass(frozen=True)
class QuantizedAsPairs(Pass):
    """Write quantised operators with float ones between DequantizeLinear and QuantizeLinear, at the opset that the model has.

    Results of 8 bits that lie half-way between two steps may fall on the other one. Raises CannotMigrate for a node of which the
    pairs need something that is not known.
    """

    name: ClassVar[str] = "quantized_as_pairs"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    beside: int = 17
    """The ai.onnx opset for a body that imports none."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place; returns another one if functions were inlined."""
        import_onnx(model.proto, frozenset((MICROSOFT,)), self.beside)
        written = decompose_model(model, _unfit, log, self.name, forms=_form, lacking_code="not-standard")
        for item in written.refusals:
            raise item.error
        return written.model


_KEEPING = (
    *_MOVING,
    "DepthToSpace",
    "Expand",
    "Gather",
    "MaxPool",
    "Resize",
    "Slice",
    "SpaceToDepth",
    "Tile",
)
"""Operators whose results have the scale of their first input: each is one of its numbers, or lies between them."""


def _moves_behind(
    value: str, producer: Callable[[str], onnx.NodeProto | None]
) -> tuple[list[onnx.NodeProto], onnx.NodeProto | None]:
    """Return the nodes through which a value went, last first, and the one that made it before them."""
    moves: list[onnx.NodeProto] = []
    source = producer(value)
    while source is not None and source.op_type in _KEEPING and value == source.output[0]:
        moves.append(source)
        value = source.input[0]
        source = producer(value)
    return moves, source


def dequantized(
    op: Op,
    x: Value,
    scale: Value,
    zero: Value | None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """The number is that before it was quantised, moved as it is behind; a constant is dequantised by the migration."""
    moves, source = _moves_behind(x.name, op.rw.producer)
    if source is not None and source.op_type == "QuantizeLinear":
        value = _scaled(op, Value(op, source.input[0]), source, scale, zero)
        for move in reversed(moves):
            more = [Value(op, name) if name else None for name in move.input[1:]]
            given = {item.name: helper.get_attribute_value(item) for item in move.attribute}
            value = op.write(move.op_type, value, *more, **given)
        return value
    if source is not None and source.op_type == "DynamicQuantizeLinear":
        return Value(op, source.input[0]) / Value(op, source.output[1])
    array, factor = x.need_constant("data"), scale.need_constant("scale")
    origin = np.zeros((), np.int32) if zero is None else zero.need_constant("zero point")
    spread = partial(_spread, shape=array.shape, axis=axis, block=block_size)
    found = (array.astype(np.int32) - spread(origin).astype(np.int32)).astype(np.float32) * spread(factor)
    return op.constant(found.astype(factor.dtype))


def _scaled(op: Op, value: Value, source: onnx.NodeProto, scale: Value, zero: Value | None) -> Value:
    """Return a value as it is dequantised by another scale or zero point than those by which `source` quantises it."""
    given = [scale.name, *([] if zero is None else [zero.name])]
    if list(source.input[1:]) == given:
        return value
    before, origin = (Value(op, name).need_constant("scale") for name in source.input[1:3])
    after, end = scale.need_constant("scale"), origin if zero is None else zero.need_constant("zero point")
    factor, shift = after / before, (origin.astype(np.float32) - end.astype(np.float32)) * after
    value = value if factor == 1 else value * op.constant(factor.astype(np.float32))
    return value if shift == 0 else value + op.constant(shift.astype(np.float32))


def _spread(value: Array, shape: tuple[int, ...], axis: int, block: int) -> Array:
    """Return scales or zero points so that they are broadcast over data of a shape."""
    if value.size == 1:
        return value.reshape(())
    if block:
        return np.repeat(value, block, axis)[tuple(slice(size) for size in shape)]
    return value.reshape([-1 if place == axis % len(shape) else 1 for place in range(len(shape))])


def dynamic_quantize_lstm(
    op: Op,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    lengths: Value | None,
    h: Value | None,
    c: Value | None,
    p: Value | None,
    w_scale: Value,
    w_zero: Value,
    r_scale: Value,
    r_zero: Value,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
) -> Result:
    """It is LSTM of dequantised weights, whose last two axes are swapped; data and states are not quantised in each step."""
    weights = []
    for packed, scale, zero in ((w, w_scale, w_zero), (r, r_scale, r_zero)):
        array, factor, origin = (item.need_constant("weights") for item in (packed, scale, zero))
        # One scale for each direction, or for each column of it.
        factor, origin = (item.reshape(len(array), 1, -1) for item in (factor, origin.astype(np.int32)))
        found = (array.astype(np.int32) - origin).astype(np.float32) * factor
        weights.append(op.constant(np.ascontiguousarray(found.transpose(0, 2, 1))))
    return op.several("LSTM", 3, x, *weights, b, lengths, h, c, p, **op.attributes)


_FLOATS = {
    "DequantizeLinear": unregistered(dequantized, "DequantizeLinear"),
    "DynamicQuantizeLSTM": unregistered(dynamic_quantize_lstm, "com.microsoft::DynamicQuantizeLSTM", 14),
}


def _is_pair(source: onnx.NodeProto, moves: list[onnx.NodeProto], node: onnx.NodeProto, scope: Scope) -> bool:
    """Whether what `source` quantises is known where `node` dequantises it, behind `moves`."""
    if not moves and list(source.input[1:]) == list(node.input[1:]):
        return True
    both = [*source.input[1:], *node.input[1:]]
    if len(source.input) < 3 or len(node.input) < 3 or any(map(_crops, moves)):
        return False
    return all(
        scope.value_type(name).shape in ((), (1,)) and scope.constant_source(name) is not None
        for name in both
    )


def _crops(node: onnx.NodeProto) -> bool:
    """Whether a Resize may put in a number of its own, which has no scale."""
    return any(item.s == b"tf_crop_and_resize" for item in node.attribute)


@register_pass
@dataclass(frozen=True)
class Dequantized(Pass):
    """Write the pairs of QuantizeLinear and DequantizeLinear as nothing, constants that are dequantised as floats, and
    DynamicQuantizeLSTM as LSTM.

    Nodes between the two of a pair that move numbers of one scale, as MaxPool, move floats. What is quantised by an input of the
    model stays as it is.
    """

    name: ClassVar[str] = "dequantized"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    changes_numbers: ClassVar[bool] = True

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place; returns another one if functions were inlined."""
        makers: dict[int, dict[str, onnx.NodeProto]] = {}

        def unfit(node: onnx.NodeProto, scope: Scope) -> str | None:
            if node.op_type == "DynamicQuantizeLSTM" and node.domain == MICROSOFT:
                return "floats were asked for"
            if node.op_type != "DequantizeLinear" or not is_onnx(node.domain):
                return None
            if id(scope.body) not in makers:
                makers[id(scope.body)] = {name: item for item in scope.body.node for name in item.output}
            moves, source = _moves_behind(node.input[0], makers[id(scope.body)].get)
            if source is not None and source.op_type == "QuantizeLinear":
                return "floats were asked for" if _is_pair(source, moves, node, scope) else None
            if moves:
                return None
            if source is None or source.op_type == "Constant":
                known = scope.constant_source(node.input[0]) is not None
            else:
                known = source.op_type == "DynamicQuantizeLinear" and source.output[2] in node.input[2:]
            return "floats were asked for" if known else None

        written = decompose_model(
            model, unfit, log, self.name, forms=lambda domain, operator: _FLOATS[operator]
        )
        for item in written.refusals:
            if isinstance(item.error, CannotMigrate):
                raise item.error
        return written.model
