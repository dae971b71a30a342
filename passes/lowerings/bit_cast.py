"""BitCast, which begins with opset 26: a Cast between integers, arithmetic between floats and integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.spec.element_types import type_name

from .building import cast, replace, scalar
from .selecting import select

_T = TensorProto

_INTEGERS: dict[int, int] = {
    _T.INT8: 8, _T.UINT8: 8, _T.INT16: 16, _T.UINT16: 16, _T.INT32: 32, _T.UINT32: 32, _T.INT64: 64, _T.UINT64: 64,
}  # fmt: skip
"""The width of each integer type, in bits."""


@dataclass(frozen=True)
class _Float:
    """The layout of a float type, and the type in which it is computed."""

    width: int
    fraction: int
    """Bits of the fraction."""
    bias: int
    """What is added to the exponent; the largest exponent is the same."""
    computed: int

    @property
    def lowest(self) -> int:
        """The exponent of the smallest normal number and of all subnormal ones."""
        return 1 - self.bias

    @property
    def signed(self) -> int:
        """The signed integer type of the width."""
        return {16: int(_T.INT16), 32: int(_T.INT32), 64: int(_T.INT64)}[self.width]


_FLOATS: dict[int, _Float] = {
    _T.FLOAT16: _Float(16, 10, 15, _T.FLOAT),
    _T.BFLOAT16: _Float(16, 7, 127, _T.FLOAT),
    _T.FLOAT: _Float(32, 23, 127, _T.FLOAT),
    _T.DOUBLE: _Float(64, 52, 1023, _T.DOUBLE),
}


@lowering("BitCast", leaves=26)
def bit_cast_26_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """BitCast begins with opset 26: between integers of one width, and from bool to uint8, it is a Cast.

    What changes: the node becomes a Cast with the same `to`. The bits of a float are computed: sign, exponent and
    fraction from its magnitude and powers of two; and a float from its bits the same way.

    Why equal: Cast keeps the low bits of integers (the text of Cast since version 13). The arithmetic is exact.

    Limits: the sign and the payload of a NaN are lost, so that bits of a float are assumed to be of none. Other types are
    refused. The element type must be known.
    """
    x, to = rw.input(0), rw.get("to")
    source = rw.need_dtype(x)
    widths = _INTEGERS.get(source), _INTEGERS.get(to)
    if source == to or (source, to) == (_T.BOOL, _T.UINT8) or (widths[0] == widths[1] and None not in widths):
        rw.rename("Cast")
    elif source in _FLOATS and _FLOATS[source].width == widths[1]:
        replace(rw, cast(rw, _bits_of(rw, x, _FLOATS[source]), to))
        rw.note("bits of floats are computed; those of a NaN are assumed not to matter", Exactness.ASSUMED)
    elif to in _FLOATS and _FLOATS[to].width == widths[0]:
        replace(rw, cast(rw, _float_of(rw, x, _FLOATS[to]), to))
        rw.note("floats are computed from their bits")
    else:
        rw.refuse(
            f"no operator below opset 26 reads the bits of {type_name(source)} as {type_name(to)}",
            code="no-equal",
        )


def _bits_of(rw: LoweringRewriter, x: str, layout: _Float) -> str:
    """Return the bits of floats as signed int64 numbers."""
    x = cast(rw, x, layout.computed)
    size = rw.before("Abs", [x])
    # The exponent by the logarithm, which may be off by one next to a power of two.
    binary = rw.before("Div", [rw.before("Log", [size]), scalar(rw, np.log(2), x)])
    guess = cast(rw, _clip(rw, rw.before("Floor", [binary]), layout.lowest, layout.bias), _T.INT64)
    powers = _powers(rw, range(layout.lowest, layout.bias + 2), layout)
    place = rw.before("Sub", [guess, _integer(rw, layout.lowest)], hint="place")
    lower = rw.before("Gather", [powers, place], axis=0)
    upper = rw.before("Gather", [powers, rw.before("Add", [place, _integer(rw, 1)])], axis=0)
    too_large = cast(rw, rw.before("Less", [size, lower]), _T.INT64)
    too_small = cast(rw, rw.before("Not", [rw.before("Less", [size, upper])]), _T.INT64)
    corrected = rw.before("Add", [rw.before("Sub", [place, too_large]), too_small])
    place = _clip_integer(rw, corrected, 2 * layout.bias - 1)
    quotient = rw.before("Div", [size, rw.before("Gather", [powers, place], axis=0)])
    finite = rw.before("Less", [size, scalar(rw, np.inf, x)])
    zero = scalar(rw, 0, x)
    quotient = select(rw, finite, quotient, zero)
    fraction = cast(rw, rw.before("Mul", [quotient, scalar(rw, 2.0**layout.fraction, x)]), _T.INT64)
    exponent = rw.before("Mul", [place, _integer(rw, 1 << layout.fraction)])
    infinite = (2 * layout.bias + 1) << layout.fraction
    number = rw.before("Equal", [x, x])
    beyond = select(rw, number, _integer(rw, infinite), _integer(rw, infinite | 1 << (layout.fraction - 1)))
    bits = select(rw, finite, rw.before("Add", [exponent, fraction]), beyond)
    inverse = rw.before("Reciprocal", [x])
    negative = rw.before("Or", [rw.before("Less", [value, zero]) for value in (x, inverse)])
    sign = rw.before("Mul", [cast(rw, negative, _T.INT64), _integer(rw, -1 << (layout.width - 1))])
    return rw.before("Add", [bits, sign], hint="bits")


def _float_of(rw: LoweringRewriter, x: str, layout: _Float) -> str:
    """Return the floats with the bits of integers."""
    bits = cast(rw, cast(rw, x, layout.signed), _T.INT64)
    negative = rw.before("Less", [bits, _integer(rw, 0)], hint="negative")
    one = cast(rw, negative, _T.INT64)
    size = rw.before("Sub", [bits, rw.before("Mul", [one, _integer(rw, -1 << (layout.width - 1))])])
    unit = _integer(rw, 1 << layout.fraction)
    exponent = rw.before("Div", [size, unit], hint="exponent")
    fraction = rw.before("Sub", [size, rw.before("Mul", [exponent, unit])], hint="fraction")
    normal = cast(rw, rw.before("Greater", [exponent, _integer(rw, 0)]), _T.INT64)
    whole = rw.before("Add", [fraction, rw.before("Mul", [normal, unit])])
    exponents = [max(place, 1) - layout.bias - layout.fraction for place in range(2 * layout.bias + 1)]
    powers = _powers(rw, exponents, layout, last=np.inf)
    scale = rw.before("Gather", [powers, exponent], axis=0)
    value = rw.before("Mul", [cast(rw, whole, layout.computed), scale], hint="magnitude")
    special = rw.before("Equal", [exponent, _integer(rw, 2 * layout.bias + 1)])
    broken = rw.before("And", [special, rw.before("Greater", [fraction, _integer(rw, 0)])])
    value = select(rw, broken, scalar(rw, np.nan, value), value)
    flags = rw.before("Mul", [cast(rw, negative, layout.computed), scalar(rw, 2, value)])
    return rw.before("Mul", [value, rw.before("Sub", [scalar(rw, 1, value), flags])])


def _powers(
    rw: LoweringRewriter, exponents: range | list[int], layout: _Float, last: float | None = None
) -> str:
    """Return a table of powers of two; one that is too large is infinite."""
    kind = helper.tensor_dtype_to_np_dtype(layout.computed)
    with np.errstate(over="ignore"):
        table = np.ldexp(np.ones(len(exponents), kind), np.array(exponents, np.int32))
    return rw.constant(table if last is None else np.append(table, kind.type(last)), "powers")


def _integer(rw: LoweringRewriter, number: int) -> str:
    return rw.constant(np.array(number, np.int64), "integer")


def _clip(rw: LoweringRewriter, value: str, low: int, high: int) -> str:
    """Bound floats by two numbers; NaN becomes the lower one."""
    above = rw.before("Greater", [value, scalar(rw, low, value)])
    value = select(rw, above, value, scalar(rw, low, value))
    return select(rw, rw.before("Greater", [value, scalar(rw, high, value)]), scalar(rw, high, value), value)


def _clip_integer(rw: LoweringRewriter, value: str, high: int) -> str:
    """Bound int64 numbers by 0 and another one."""
    value = select(rw, rw.before("Less", [value, _integer(rw, 0)]), _integer(rw, 0), value)
    return select(rw, rw.before("Greater", [value, _integer(rw, high)]), _integer(rw, high), value)
