"""Cast, CastLike and BitCast: types by name, rounding modes, and computed bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.engine.steps.formula import LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Exactness, LoweringRewriter, Rewriter, adapter, compatible, lowering
from onnx_migrate.standard.element_types import FIRST_OPSET, type_name

compatible("Cast", 9, reason="strings are allowed")

compatible("Cast", 13, reason="bfloat16 is allowed, and conversions between numeric types are specified")

compatible("Cast CastLike", 19, reason="float 8 types are allowed, with saturate, which applies to them only")
compatible(
    "Cast CastLike",
    24,
    reason="float8e8m0 is allowed, with round_mode, which applies to it only; infinity saturates in the"
    " FNUZ types too, as ONNX Runtime and onnx.reference computed it before",
)


@adapter("Cast", to=6)
def cast_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The attribute `to` gives the type by its number in TensorProto.DataType instead of its name."""
    name = rw.get("to")
    if name.upper() not in TensorProto.DataType.keys():  # noqa: SIM118 an enum wrapper is no mapping
        rw.refuse(f"attribute to names the unknown type {name!r}", code="invalid-node")
    rw.set("to", TensorProto.DataType.Value(name.upper()))


@lowering("Cast", "CastLike", leaves=24)
def cast_24_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`round_mode` is dropped: it applies only to float8e8m0, which older opsets lack.

    Why equal: the text of version 24 limits `round_mode` to conversions to float8e8m0, and onnx-migrate refuses those.
    """
    _refuse_missing_type(rw)
    rw.drop("round_mode")


@lowering("Cast", "CastLike", leaves=19)
def cast_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`saturate` is dropped: it applies only to 8-bit floats, which older opsets lack.

    Why equal: the text of version 19 limits `saturate` to conversions to 8-bit floats, and onnx-migrate refuses those.
    """
    _refuse_missing_type(rw)
    rw.drop("saturate")


def _refuse_missing_type(rw: LoweringRewriter) -> None:
    to = rw.get("to") if rw.node.op_type == "Cast" else rw.dtype(rw.input(1))
    if to is not None and FIRST_OPSET.get(to, 1) > rw.version:
        rw.refuse(
            f"it casts to {type_name(to)}, which does not exist below opset {FIRST_OPSET[to]}",
            code="no-such-type",
            hint="convert the model to another element type first",
        )


@formula("CastLike", since=15, types=LostTypes.OWN)
def cast_like(op: Op, x: Value, like: Value) -> Value:
    """CastLike begins with opset 15, so Cast names the element type.

    Why equal: this is the function body of CastLike.
    """
    return op.Cast(x, to=like.need_dtype())


_T = TensorProto

_INTEGERS: dict[int, int] = {
    _T.INT8: 8, _T.UINT8: 8, _T.INT16: 16, _T.UINT16: 16, _T.INT32: 32, _T.UINT32: 32, _T.INT64: 64, _T.UINT64: 64,
}  # fmt: skip
"""The width of each integer type, in bits."""


@dataclass(frozen=True)
class _Float:
    """The layout of a float type, and the type for computations with its values."""

    width: int
    fraction: int
    """Bits of the fraction."""
    bias: int
    """The exponent bias. The largest exponent has the same value."""
    computed: int

    @property
    def lowest(self) -> int:
        """The exponent that the smallest normal number and all subnormal numbers have."""
        return 1 - self.bias

    @property
    def signed(self) -> int:
        """The signed integer type that has the width of this float."""
        return {16: int(_T.INT16), 32: int(_T.INT32), 64: int(_T.INT64)}[self.width]


_FLOATS: dict[int, _Float] = {
    _T.FLOAT16: _Float(16, 10, 15, _T.FLOAT),
    _T.BFLOAT16: _Float(16, 7, 127, _T.FLOAT),
    _T.FLOAT: _Float(32, 23, 127, _T.FLOAT),
    _T.DOUBLE: _Float(64, 52, 1023, _T.DOUBLE),
}


@formula("BitCast", since=26)
def bit_cast(op: Op, x: Value, *, to: int) -> Value:
    """BitCast begins with opset 26, so a Cast or arithmetic computes the bits.

    What changes: between integers of one width, and from bool to uint8, the node becomes a Cast with the same `to`. For a
    float, the sign, exponent and fraction are computed from its magnitude and powers of two. A float is computed from its
    bits in the same way.

    Why equal: Cast keeps the low bits of integers (the text of Cast since version 13). The arithmetic is exact.

    Limits: NaN loses its sign and payload, so onnx-migrate assumes that the bits of a float are not those of a NaN. It
    refuses other types.
    """
    source = x.need_dtype()
    widths = _INTEGERS.get(source), _INTEGERS.get(to)
    if source == to or (source, to) == (_T.BOOL, _T.UINT8) or (widths[0] == widths[1] and None not in widths):
        return op.Cast(x, to=to)
    if source in _FLOATS and _FLOATS[source].width == widths[1]:
        op.note("bits of floats are computed; those of a NaN are assumed not to matter", Exactness.ASSUMED)
        return _bits_of(op, x, _FLOATS[source]).cast(to)
    if to not in _FLOATS or _FLOATS[to].width != widths[0]:
        op.refuse(
            f"no operator below opset 26 reads the bits of {type_name(source)} as {type_name(to)}",
            code="no-equal",
        )
    op.note("floats are computed from their bits")
    return _float_of(op, x, _FLOATS[to]).cast(to)


def _bits_of(op: Op, x: Value, layout: _Float) -> Value:
    """Return the bits of floats as signed int64 numbers."""
    x = x.cast(layout.computed)
    size = abs(x)
    # The logarithm gives the exponent. Next to a power of two it may be wrong by one.
    guess = _clip(op, op.Floor(op.Log(size) / np.log(2)), layout.lowest, layout.bias).cast(_T.INT64)
    powers = _powers(op, range(layout.lowest, layout.bias + 2), layout)
    index = guess - layout.lowest
    lower = op.Gather(powers, index, axis=0)
    upper = op.Gather(powers, index + 1, axis=0)
    too_large = (size < lower).cast(_T.INT64)
    too_small = (~(size < upper)).cast(_T.INT64)
    index = _clip_integer(op, index - too_large + too_small, 2 * layout.bias - 1)
    quotient = size / op.Gather(powers, index, axis=0)
    finite = size < np.inf
    fraction = (op.select(finite, quotient, 0) * 2.0**layout.fraction).cast(_T.INT64)
    exponent = index * (1 << layout.fraction)
    infinite = (2 * layout.bias + 1) << layout.fraction
    beyond = op.select(x == x, op.constant(infinite), op.constant(infinite | 1 << (layout.fraction - 1)))
    bits = op.select(finite, exponent + fraction, beyond)
    # A negative zero is not below 0, and only its reciprocal shows the sign.
    inverse = op.Reciprocal(x)
    negative = (x < 0) | (inverse < 0)
    return bits + negative.cast(_T.INT64) * (-1 << (layout.width - 1))


def _float_of(op: Op, x: Value, layout: _Float) -> Value:
    """Return the floats with the bits of integers."""
    bits = x.cast(layout.signed).cast(_T.INT64)
    negative = bits < 0
    size = bits - negative.cast(_T.INT64) * (-1 << (layout.width - 1))
    unit = 1 << layout.fraction
    exponent = size / unit
    fraction = size - exponent * unit
    normal = (exponent > 0).cast(_T.INT64)
    whole = fraction + normal * unit
    exponents = [max(power, 1) - layout.bias - layout.fraction for power in range(2 * layout.bias + 1)]
    scale = op.Gather(_powers(op, exponents, layout, last=np.inf), exponent, axis=0)
    value = whole.cast(layout.computed) * scale
    broken = (exponent == 2 * layout.bias + 1) & (fraction > 0)
    value = op.select(broken, np.nan, value)
    return value * (1 - negative.cast(layout.computed) * 2)


def _powers(op: Op, exponents: range | list[int], layout: _Float, last: float | None = None) -> Value:
    """Return a table of powers of two. A power beyond the largest float is infinite."""
    kind = helper.tensor_dtype_to_np_dtype(layout.computed)
    with np.errstate(over="ignore"):
        table = np.ldexp(np.ones(len(exponents), kind), np.array(exponents, np.int32))
    return op.constant(table if last is None else np.append(table, kind.type(last)))


def _clip(op: Op, value: Value, low: int, high: int) -> Value:
    """Limit floats to the range between two numbers. NaN becomes the lower one."""
    value = op.select(value > low, value, low)
    return op.select(value > high, high, value)


def _clip_integer(op: Op, value: Value, high: int) -> Value:
    """Limit int64 numbers to the range from 0 to another number."""
    value = op.select(value < 0, 0, value)
    return op.select(value > high, high, value)
