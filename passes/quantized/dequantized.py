"""Removes the pairs of QuantizeLinear and DequantizeLinear, and replaces dequantised constants by floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.obligations import PassResult
from onnx_migrate.engine.other_numbers import OtherNumbers
from onnx_migrate.engine.pass_infra import ObligedPass, register_pass
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.steps.formula import Array, Op, Result, Value, unregistered
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.value_facts import Producers
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import is_onnx

from ..standard.standard import MICROSOFT
from .quantized_as_pairs import MOVING

__all__ = ["Dequantized"]

_KEEPING = (
    *MOVING,
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
    """Return the number before it was quantised, with the same moves applied; a constant is dequantised at once."""
    moves, source = _moves_behind(x.name, op.rw.producer)
    # Moves between the pair move the float in the same way.
    if source is not None and source.op_type == "QuantizeLinear":
        value = _scaled(op, Value(op, source.input[0]), source, scale, zero)
        for move in reversed(moves):
            # The other inputs of a move are constants, such as a shape.
            more = [Value(op, name) if name else None for name in move.input[1:]]
            attributes = {
                attribute.name: helper.get_attribute_value(attribute) for attribute in move.attribute
            }
            value = op.write(move.op_type, value, *more, **attributes)
        return value
    if source is not None and source.op_type == "DynamicQuantizeLinear":
        return Value(op, source.input[0]) / Value(op, source.output[1])
    array, factor = x.need_constant("data"), scale.need_constant("scale")
    # Without a zero point, 0 stands for 0.
    origin = np.zeros((), np.int32) if zero is None else zero.need_constant("zero point")
    spread = partial(_spread, shape=array.shape, axis=axis, block=block_size)
    numbers = (array.astype(np.int32) - spread(origin).astype(np.int32)).astype(np.float32) * spread(factor)
    return op.constant(numbers.astype(factor.dtype))


def _scaled(op: Op, value: Value, source: onnx.NodeProto, scale: Value, zero: Value | None) -> Value:
    """Return a value as another scale or zero point dequantises it; `source` quantises it by its own scale and zero point."""
    own_names = [scale.name, *([] if zero is None else [zero.name])]
    if list(source.input[1:]) == own_names:
        return value
    # The value was quantised by these.
    before, origin = (Value(op, name).need_constant("scale") for name in source.input[1:3])
    after, end = scale.need_constant("scale"), origin if zero is None else zero.need_constant("zero point")
    factor, shift = after / before, (origin.astype(np.float32) - end.astype(np.float32)) * after
    value = value if factor == 1 else value * op.constant(factor.astype(np.float32))
    return value if shift == 0 else value + op.constant(shift.astype(np.float32))


def _spread(value: Array, shape: tuple[int, ...], axis: int, block: int) -> Array:
    """Return scales or zero points so that they are broadcast over data of a shape."""
    if value.size == 1:
        return value.reshape(())
    # With blocks, each scale holds for several neighbours.
    if block:
        return np.repeat(value, min(block, shape[axis]), axis)[tuple(slice(size) for size in shape)]
    return value.reshape([-1 if other_axis == axis % len(shape) else 1 for other_axis in range(len(shape))])


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
        array, factor, origin = (
            packed_value.need_constant("weights") for packed_value in (packed, scale, zero)
        )
        # One scale for each direction, or for each column of it.
        factor, origin = (
            packed_value.reshape(len(array), 1, -1) for packed_value in (factor, origin.astype(np.int32))
        )
        dequantised = (array.astype(np.int32) - origin).astype(np.float32) * factor
        # A transposed view has no bytes of its own to store.
        weights.append(op.constant(np.ascontiguousarray(dequantised.transpose(0, 2, 1))))
    return op.several("LSTM", 3, x, *weights, b, lengths, h, c, p, **op.attributes)


_FLOATS = {
    "DequantizeLinear": unregistered(dequantized, "DequantizeLinear"),
    "DynamicQuantizeLSTM": unregistered(dynamic_quantize_lstm, "com.microsoft::DynamicQuantizeLSTM", 14),
}


def _is_pair(source: onnx.NodeProto, moves: list[onnx.NodeProto], node: onnx.NodeProto, scope: Scope) -> bool:
    """Return whether `source` and `node` are a pair that can go: one parameter set without `moves`, or constant parameters."""
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
    return any(attribute.s == b"tf_crop_and_resize" for attribute in node.attribute)


@register_pass
@dataclass(frozen=True)
class Dequantized(ObligedPass):
    """Write the pairs of QuantizeLinear and DequantizeLinear as nothing, constants that are dequantised as floats, and
    DynamicQuantizeLSTM as LSTM.

    Nodes between the two of a pair that only move numbers of one scale, for example MaxPool, then move floats. A
    DequantizeLinear stays if an input of the model gives its integers.
    """

    name: ClassVar[str] = "dequantized"
    title: ClassVar[str] = "replacing quantised weights by floats"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Edit `model` in place; returns another one if functions were inlined."""
        makers = Producers()

        def unfit(node: onnx.NodeProto, scope: Scope) -> str | None:
            if node.op_type == "DynamicQuantizeLSTM" and node.domain == MICROSOFT:
                return "you asked for float operators"
            if node.op_type != "DequantizeLinear" or not is_onnx(node.domain):
                return None
            # Moves between the pair do not change numbers.
            moves, source = _moves_behind(node.input[0], makers.of(scope).get)
            if source is not None and source.op_type == "QuantizeLinear":
                return "you asked for float operators" if _is_pair(source, moves, node, scope) else None
            if moves:
                return None
            if source is None or source.op_type == "Constant":
                follows = scope.constant_source(node.input[0]) is not None
            else:
                # Only this zero point belongs to the quantised value.
                follows = source.op_type == "DynamicQuantizeLinear" and source.output[2] in node.input[2:]
            return "you asked for float operators" if follows else None

        written = decompose_model(
            model, unfit, log, self.name, forms=lambda domain, operator: _FLOATS[operator]
        )
        for refusal in written.refusals:
            if isinstance(refusal.error, CannotMigrate):
                raise refusal.error
        return PassResult(written.model, OtherNumbers(self.name, "floats for quantised numbers"))
