"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: casts or arithmetic replace the additions of each version."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_migrate.engine.steps.formula import HALVES, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import LoweringRewriter, Rewriter, adapter, compatible, lowering
from onnx_migrate.rewrite.bounded_arrays import bounded_dims

from .quantizing import dequantize, is_per_tensor, is_widened, quantize, refuse_missing_type, spread

_T = TensorProto
_WORDS = (_T.INT16, _T.UINT16)
_BYTES = (_T.INT8, _T.UINT8)

compatible(
    "QuantizeLinear DequantizeLinear",
    13,
    reason="scale and zero point may be vectors along an axis; scalars mean the same as before",
)
compatible(
    "QuantizeLinear DequantizeLinear",
    21,
    reason="block_size was added, with default 0; without output_dtype the type is that of the zero point or scale",
)
compatible("QuantizeLinear DequantizeLinear", 24, 25, 28, reason="more types are allowed")
compatible(
    "QuantizeLinear", 23, reason="precision was added; by default it is the type of the scale, as before"
)
compatible(
    "DequantizeLinear",
    19,
    reason="float 8 types are allowed; the result has the type of the scale, which had to be float",
)
compatible(
    "DequantizeLinear", 23, reason="output_dtype was added; by default it is the type of the scale, as before"
)

# Upward


@adapter("QuantizeLinear", to=19)
def quantize_linear_19(node: onnx.NodeProto, rw: Rewriter) -> None:
    """int32 data is cast to float, the type of the scale, since from opset 19 on both must have one type.

    What changes: float data is unchanged. From opset 23 on the types may differ again, so such a target needs no Cast.

    Why equal: the division is computed in the type of the scale (QuantizeLinear-23), which was always float.
    """
    dtype = rw.dtype(node.input[0])
    if dtype == _T.FLOAT:
        return
    if rw.target >= 23:
        rw.version = 23
        return
    node.input[0] = rw.before("CastLike", list(node.input[:2]), hint="like_scale")
    rw.note("the data is cast to the type of the scale, since both must have one type")


# Downward: DequantizeLinear


@lowering("DequantizeLinear", leaves=28, types=LostTypes.OWN)
@lowering("DequantizeLinear", leaves=25, types=LostTypes.OWN)
@lowering("DequantizeLinear", leaves=24, types=LostTypes.OWN)
def dequantize_linear_newest_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A node stays if the version before has its types.

    What changes: nothing, except for constants of types that the target does not have. They were widened before, integers to 8
    bits, and a node of widened floating point numbers becomes a product with the scale.

    Why equal: the version before supports fewer element types. Numbers of 8 bits and less are widened without rounding.

    Limits: onnx-migrate refuses values that are computed in a type that the target does not have.
    """
    op = Op(rw)
    x, scale = (Value(op, rw.input(index)) for index in range(2))
    if _is_written_out(op, x, scale):
        op.end(_dequantized(op, x, scale, op.input(2)))


@formula("DequantizeLinear", since=23, types=LostTypes.OWN)
def dequantize_linear_23(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """`output_dtype` becomes a Cast of the result.

    What changes: if it is another type than that of the scale, the scale is cast to float, and the result to that type.

    Why equal: ONNX Runtime computes in float and rounds once; so does version 21 between these Casts. Bit for bit.

    Limits: onnx-migrate refuses values of float4e2m1.
    """
    if _is_written_out(op, x, scale):
        return _dequantized(op, x, scale, zero_point)
    wanted = op.rw.get("output_dtype", 0)
    if wanted and wanted != scale.need_dtype():
        return _in_float(op, x, scale, zero_point, wanted, output_dtype=None)
    return op.itself(x, scale, zero_point, output_dtype=None)


@formula("DequantizeLinear", since=21, types=LostTypes.OWN)
def dequantize_linear_21(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Arithmetic replaces blocks and numbers of 16 bits: subtract the zero point, multiply by the scale.

    What changes: with a `block_size`, a Gather along the axis repeats scale and zero point. Data of int16 and uint16 is
    computed in int32, and in float from the difference on. Constants of 8 bits are too, if another node reads them and its
    results are quantised to 16 bits. Otherwise ONNX Runtime would assume that only the weights of that node are quantised, and
    round its data to 8 bits. Other nodes stay.

    Why equal: ONNX Runtime's kernel computes the same (onnxruntime/core/providers/cpu/quantization/quantize_linear.cc). Bit for
    bit.

    Limits: onnx-migrate refuses values of int4 and uint4. The rank of the data must be known for scales along an axis.
    """
    if _is_written_out(op, x, scale):
        return _dequantized(op, x, scale, zero_point)
    # Behind an operator of a runtime only the type of the zero point is known, which is the same.
    kind = (zero_point.dtype if zero_point is not None else None) or x.need_dtype()
    if kind in _WORDS or op.rw.get("block_size", 0) or (kind in _BYTES and _is_weight_of_words(op)):
        return _dequantized(op, x, scale, zero_point)
    return op.itself(x, scale, zero_point, block_size=None)


@formula("DequantizeLinear", since=19, types=LostTypes.OWN)
def dequantize_linear_19(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Half float scales are cast to float, and the result back.

    Why equal: ONNX Runtime's kernel computes in float and rounds once. Bit for bit.

    Limits: onnx-migrate refuses values of 8 bit floats.
    """
    if _is_written_out(op, x, scale):
        return _dequantized(op, x, scale, zero_point)
    dtype = scale.need_dtype()
    return _in_float(op, x, scale, zero_point, dtype) if dtype in HALVES else op.itself(x, scale, zero_point)


@formula("DequantizeLinear", since=13, types=LostTypes.OWN)
def dequantize_linear_13(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Scales along an axis are multiplied after the node, which has the scale 1.

    What changes: with one zero point for all, the node gets the scale 1, and a Mul by the reshaped scales follows. With several
    zero points, arithmetic replaces the node: subtract the zero point, multiply by the scale. A node with one scale stays,
    without `axis`.

    Why equal: as for version 21; a product with 1 is exact. Bit for bit. A node still dequantises constants, since ONNX
    Runtime's optimisations quantise float weights between quantised values again.

    Limits: the rank of the scale must be known, and that of the data for scales along an axis.
    """
    widened = is_widened(x)
    if not widened and is_per_tensor(scale):
        return op.itself(x, scale, zero_point, axis=None)
    zero = np.zeros(1, np.int8) if zero_point is None else op.rw.constant_value(zero_point.name)
    if widened or zero is None or not zero.size or (zero != zero[0]).any():
        return _dequantized(op, x, scale, zero_point)
    factor = spread(op, scale, x)
    origin = op.constant(zero[:1].reshape(())) if zero.any() else None
    return op.itself(x, op.constant(np.float32(1)), origin, axis=None) * factor


@formula("DequantizeLinear", since=10, types=LostTypes.OWN)
def dequantize_linear(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Arithmetic replaces the node: subtract the zero point, multiply by the scale.

    Why equal: as for version 21. Bit for bit.
    """
    return _dequantized(op, x, scale, zero_point)


def _is_written_out(op: Op, x: Value, scale: Value) -> bool:
    """Return whether the node has widened floating point constants; refuse types that the version before does not have."""
    if is_widened(x):
        return True
    for value in (x, scale):
        refuse_missing_type(op, value.dtype)
    return False


def _in_float(op: Op, x: Value, scale: Value, zero_point: Value | None, dtype: int, **dropped: None) -> Value:
    """Return the node with the scale in float, without some attributes, and its result in `dtype`."""
    result = op.itself(x, scale.cast(_T.FLOAT), zero_point, **dropped)
    return result if dtype == _T.FLOAT else op.Cast(result, to=dtype)


def _dequantized(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    dtype = op.rw.get("output_dtype", 0) or scale.need_dtype()
    return dequantize(op, x, scale, zero_point, dtype)


def _is_weight_of_words(op: Op) -> bool:
    """Return whether the node's data is a constant, and the result of a reader is quantised to 16 bits."""
    rw = op.rw
    if rw.scope.constant_source(rw.input(0)) is None:
        return False
    return any(
        later.op_type == "QuantizeLinear"
        and len(later.input) > 2
        and later.input[0] == result
        and rw.dtype(later.input[2]) in _WORDS
        for reader in rw.readers(rw.output(0))
        for result in reader.output
        for later in rw.readers(result)
    )


# Downward: QuantizeLinear


@lowering("QuantizeLinear", leaves=28, types=LostTypes.OWN)
@lowering("QuantizeLinear", leaves=25, types=LostTypes.OWN)
@lowering("QuantizeLinear", leaves=24, types=LostTypes.OWN)
def quantize_linear_newest_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A node stays if the version before has its types.

    What changes: nothing.

    Why equal: the version before supports fewer element types.

    Limits: onnx-migrate refuses a type that the target does not have.
    """
    op = Op(rw)
    _refuse_missing_types(op, Value(op, rw.input(1)), op.input(2))


@formula("QuantizeLinear", since=23, types=LostTypes.OWN)
def quantize_linear_23(op: Op, x: Value, scale: Value, zero_point: Value | None, *, precision: int) -> Value:
    """Data and scale are cast to one type: that of `precision`, or of the scale.

    Why equal: the text of version 23 defines the precision of the division so, and version 21 divides in the type of both.

    Limits: onnx-migrate refuses a scale of integers with data of floats, and results of float4e2m1.
    """
    _refuse_missing_types(op, scale, zero_point)
    data, of_scale = x.need_dtype(), scale.need_dtype()
    if precision not in (0, _T.FLOAT, *HALVES):
        op.refuse(f"has precision={precision}, which is no floating point type", code="no-such-value")
    wanted = precision or of_scale
    if wanted == _T.INT32 != data:
        op.refuse(
            "its scale holds integers and its data floats, which no older version takes",
            code="no-equal",
            hint="make the scale a float",
        )
    return op.itself(x.cast(wanted), scale.cast(wanted), zero_point, precision=None)


@formula("QuantizeLinear", since=21, types=LostTypes.OWN)
def quantize_linear_21(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """`output_dtype` becomes a zero point of 0; arithmetic replaces blocks and results of 16 bits.

    What changes: the arithmetic divides the data by the scale, rounds, adds the zero point, and casts within the limits of the
    type. With a `block_size`, a Gather along the axis repeats scale and zero point. Other nodes stay.

    Why equal: ONNX Runtime's kernel computes the same (onnxruntime/core/providers/cpu/quantization/quantize_linear.cc). Bit for
    bit, except for infinities of half floats and in blocks, which its kernels turn into the wrong end of the type.

    Limits: onnx-migrate refuses results of int4 and uint4. The rank of the data must be known for scales along an axis.
    """
    _refuse_missing_types(op, scale, zero_point)
    dtype = _quantized_type(op, zero_point)
    if dtype in _WORDS or op.rw.get("block_size", 0):
        return quantize(op, x, scale, zero_point, dtype)
    if zero_point is None and dtype != _T.UINT8:
        zero_point = _zero_like(op, scale, dtype)
    return op.itself(x, scale, zero_point, block_size=None, output_dtype=None)


@formula("QuantizeLinear", since=19, types=LostTypes.OWN)
def quantize_linear_19_down(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Half floats are cast to float, and `saturate`, which is about 8 bit floats, is dropped.

    Why equal: ONNX Runtime's kernel divides in float. Bit for bit, except for infinities of half floats, which it turns into
    the lower end of the type.

    Limits: onnx-migrate refuses results of 8 bit floats.
    """
    _refuse_missing_types(op, scale, zero_point)
    return op.itself(x.wide(), scale.cast(_T.FLOAT), zero_point, saturate=None)


@formula("QuantizeLinear", since=13, types=LostTypes.OWN)
def quantize_linear_13(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Arithmetic replaces scales along an axis: divide by the scale, round, add the zero point, saturate.

    What changes: scale and zero point are reshaped to be broadcast. A node with one scale stays, without `axis`.

    Why equal: as for version 21. Bit for bit.

    Limits: the rank of the scale must be known, and that of the data for scales along an axis.
    """
    if is_per_tensor(scale):
        return op.itself(x, scale, zero_point, axis=None)
    return quantize(op, x, scale, zero_point, _quantized_type(op, zero_point))


@formula("QuantizeLinear", since=10, types=LostTypes.OWN)
def quantize_linear(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Arithmetic replaces the node: divide by the scale, round, add the zero point, saturate.

    What changes: the node becomes arithmetic; halves are rounded to even by Floor and comparisons.

    Why equal: as for version 21. Bit for bit.
    """
    return quantize(op, x, scale, zero_point, _quantized_type(op, zero_point))


def _refuse_missing_types(op: Op, scale: Value, zero_point: Value | None) -> None:
    refuse_missing_type(op, scale.dtype)
    refuse_missing_type(op, None if zero_point is None else zero_point.dtype)
    refuse_missing_type(op, op.rw.dtype(op.rw.output(0)))
    refuse_missing_type(op, op.rw.get("output_dtype", 0) or None)


def _quantized_type(op: Op, zero_point: Value | None) -> int:
    return (
        zero_point.need_dtype() if zero_point is not None else int(op.rw.get("output_dtype", 0) or _T.UINT8)
    )


def _zero_like(op: Op, scale: Value, dtype: int) -> Value:
    """Return a zero point of 0 of the scale's shape."""
    static, kind = scale.static, onnx.helper.tensor_dtype_to_np_dtype(dtype)
    if static is not None:
        return op.constant(np.zeros(bounded_dims(static), kind))
    return op.ConstantOfShape(op.Shape(scale), value=numpy_helper.from_array(np.zeros(1, kind)))


@formula("DynamicQuantizeLinear", since=11)
def dynamic_quantize_linear(op: Op, x: Value) -> tuple[Value, Value, Value]:
    """Scale and zero point are computed from the smallest and the largest number; QuantizeLinear rounds both.

    Why equal: the equations of the standard's text. For a tensor of zeros the scale is 1, as in ONNX Runtime's kernel; the
    function body divides 0 by 0 there. Bit for bit, except for tensors with a NaN, on which runtimes differ.
    """
    zero, ends, unit = (op.constant(np.float32(number)) for number in (0, 255, 1))
    low = op.Min(op.ReduceMin(x, keepdims=False), zero)
    high = op.Max(op.ReduceMax(x, keepdims=False), zero)
    size = high - low
    step = size / ends
    scale = op.Where(zero < size, step, unit)
    origin = op.QuantizeLinear(zero - low / scale, unit, op.constant(np.uint8(0)))
    return op.QuantizeLinear(x, scale, origin), scale, origin
