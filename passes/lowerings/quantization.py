"""DequantizeLinear and QuantizeLinear: what each version added is cast, or written out in arithmetic."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast
from .quantizing import dequantize, is_per_tensor, is_widened, quantize, refuse_missing_type, spread

_T = TensorProto
_HALVES = (_T.FLOAT16, _T.BFLOAT16)
_WORDS = (_T.INT16, _T.UINT16)
_BYTES = (_T.INT8, _T.UINT8)


def dequantize_linear_newest_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A node of types that the version before has stays.

    What changes: nothing, but for constants of types that the target does not have. They were widened before, integers to 8
    bits, and a node of widened floating point numbers becomes a product with the scale.

    Why equal: the version before takes fewer element types. Numbers of 8 bits and less are widened without rounding.

    Limits: values that are computed in a type that the target does not have are refused.
    """
    _dequantize_widened(rw)


for _leaves in (28, 25, 24):
    lowering("DequantizeLinear", leaves=_leaves, types=LostTypes.OWN)(dequantize_linear_newest_down)


@lowering("DequantizeLinear", leaves=23, types=LostTypes.OWN)
def dequantize_linear_23_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`output_dtype` becomes a Cast of the result.

    What changes: if it is another type than that of the scale, the scale is cast to float, and the result to that type.

    Why equal: ONNX Runtime computes in float and rounds once; so does version 21 between these Casts. Bit for bit.

    Limits: values of float4e2m1 are refused.
    """
    if _dequantize_widened(rw):
        return
    wanted = rw.pop("output_dtype", 0)
    if wanted and wanted != rw.need_dtype(rw.input(1)):
        _dequantize_in_float(node, rw, wanted)


@lowering("DequantizeLinear", leaves=21, types=LostTypes.OWN)
def dequantize_linear_21_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Blocks and numbers of 16 bits are written out: subtract the zero point, multiply by the scale.

    What changes: with a `block_size`, scale and zero point are repeated by a Gather along the axis. int16 and uint16 compute in
    int32, and in float from the difference on. So do constants of 8 bits whose reader gives out values of 16 bits: ONNX Runtime
    would take such a reader, between values that are no longer quantised, for one with quantised weights alone, and
    round its data to 8 bits. Other nodes stay.

    Why equal: ONNX Runtime's kernel computes the same (onnxruntime/core/providers/cpu/quantization/quantize_linear.cc). Bit
    for bit.

    Limits: values of int4 and uint4 are refused. The rank of the data must be known for scales along an axis.
    """
    if _dequantize_widened(rw):
        return
    # Behind an operator of a runtime only the type of the zero point is known, which is the same.
    dtype = rw.dtype(rw.input(2)) if rw.input(2) else None
    kind = dtype or rw.need_dtype(rw.input(0))
    if kind in _WORDS or rw.get("block_size", 0) or (kind in _BYTES and _is_weight_of_words(rw)):
        _dequantize_by_arithmetic(rw)
    else:
        rw.drop("block_size")


@lowering("DequantizeLinear", leaves=19, types=LostTypes.OWN)
def dequantize_linear_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Half float scales are cast to float, and the result back.

    What changes: Casts around the node.

    Why equal: ONNX Runtime's kernel computes in float and rounds once. Bit for bit.

    Limits: values of 8 bit floats are refused.
    """
    if not _dequantize_widened(rw) and (dtype := rw.need_dtype(rw.input(1))) in _HALVES:
        _dequantize_in_float(node, rw, dtype)


@lowering("DequantizeLinear", leaves=13, types=LostTypes.OWN)
def dequantize_linear_13_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Scales along an axis are multiplied behind the node, which has the scale 1.

    What changes: with one zero point for all, the node gets the scale 1, and a Mul by the scales, reshaped to be broadcast,
    follows. With several, both are written out: subtract the zero point, multiply by the scale. A node with one scale
    stays, without `axis`.

    Why equal: as for version 21; a product with 1 is exact. Bit for bit. Constants stay dequantised by a node: ONNX
    Runtime's optimisations quantise weights anew where they find them as floats between quantised values.

    Limits: the rank of the scale must be known, and that of the data for scales along an axis.
    """
    if not is_widened(rw, rw.input(0)) and is_per_tensor(rw, rw.input(1)):
        rw.drop("axis")
        return
    zero = rw.constant_value(rw.input(2)) if rw.input(2) else np.zeros(1, np.int8)
    if is_widened(rw, rw.input(0)) or zero is None or not zero.size or (zero != zero[0]).any():
        _dequantize_by_arithmetic(rw)
        return
    factor = spread(rw, rw.input(1), rw.input(0))
    rw.set_input(2, rw.constant(zero[:1].reshape(()), "zero_point") if rw.input(2) and zero.any() else "")
    node.input[1] = rw.constant(np.array(1, np.float32), "one")
    rw.drop("axis")
    name = rw.output(0)
    rw.after("Mul", [rw.detach_output(0, "unscaled"), factor], [name])


@lowering("DequantizeLinear", leaves=10, types=LostTypes.OWN)
def dequantize_linear_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The node is written out: subtract the zero point, multiply by the scale.

    What changes: the node becomes Cast, Sub, Cast and Mul.

    Why equal: as for version 21. Bit for bit.
    """
    _dequantize_by_arithmetic(rw)


def quantize_linear_newest_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A node of types that the version before has stays.

    What changes: nothing.

    Why equal: the version before takes fewer element types.

    Limits: a type that the target does not have is refused.
    """
    _refuse_missing_types(rw)


for _leaves in (28, 25, 24):
    lowering("QuantizeLinear", leaves=_leaves, types=LostTypes.OWN)(quantize_linear_newest_down)


@lowering("QuantizeLinear", leaves=23, types=LostTypes.OWN)
def quantize_linear_23_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Data and scale are cast to one type: that of `precision`, or of the scale.

    What changes: Casts before the node, where a type is another one. `precision` is dropped.

    Why equal: the text of version 23 defines the precision of the division so, and version 21 divides in the type of both.

    Limits: a scale of integers with data of floats is refused, as are results of float4e2m1.
    """
    _refuse_missing_types(rw)
    data, scale = rw.need_dtype(rw.input(0)), rw.need_dtype(rw.input(1))
    precision = rw.pop("precision", 0)
    if precision not in (0, _T.FLOAT, *_HALVES):
        rw.refuse(f"has precision={precision}, which is no floating point type", code="no-such-value")
    wanted = precision or scale
    if wanted == _T.INT32 != data:
        rw.refuse(
            "its scale holds integers and its data floats, which no older version takes",
            code="no-equal",
            hint="make the scale a float",
        )
    for index, hint in ((0, "data"), (1, "scale")):
        node.input[index] = cast(rw, rw.input(index), wanted, hint=hint)


@lowering("QuantizeLinear", leaves=21, types=LostTypes.OWN)
def quantize_linear_21_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`output_dtype` becomes a zero point of 0; blocks and results of 16 bits are written out.

    What changes: written out, the data is divided by the scale, rounded, moved by the zero point and cast between the ends of
    the type. With a `block_size`, scale and zero point are repeated by a Gather along the axis. Other nodes stay.

    Why equal: ONNX Runtime's kernel computes the same (onnxruntime/core/providers/cpu/quantization/quantize_linear.cc). Bit
    for bit, but for infinities of half floats and in blocks, which its kernels turn into the wrong end of the type.

    Limits: results of int4 and uint4 are refused. The rank of the data must be known for scales along an axis.
    """
    _refuse_missing_types(rw)
    dtype = _quantized_type(rw)
    if dtype in _WORDS or rw.get("block_size", 0):
        _quantize_by_arithmetic(rw, dtype)
        return
    if not rw.input(2) and dtype != _T.UINT8:
        rw.set_input(2, _zero_like_scale(rw, dtype))
    rw.drop("block_size", "output_dtype")


@lowering("QuantizeLinear", leaves=19, types=LostTypes.OWN)
def quantize_linear_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Half floats are cast to float, and `saturate`, which is about 8 bit floats, is dropped.

    What changes: Casts before the node.

    Why equal: ONNX Runtime's kernel divides in float. Bit for bit, but for infinities of half floats, which it turns into the
    lower end of the type.

    Limits: results of 8 bit floats are refused.
    """
    _refuse_missing_types(rw)
    rw.drop("saturate")
    if rw.need_dtype(rw.input(0)) in _HALVES:
        node.input[0] = cast(rw, rw.input(0), _T.FLOAT, hint="data")
    node.input[1] = cast(rw, rw.input(1), _T.FLOAT, hint="scale")


@lowering("QuantizeLinear", leaves=13, types=LostTypes.OWN)
def quantize_linear_13_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Scales along an axis are written out: divide by the scale, round, add the zero point, saturate.

    What changes: scale and zero point are reshaped to be broadcast. A node with one scale stays, without `axis`.

    Why equal: as for version 21. Bit for bit.

    Limits: the rank of the scale must be known, and that of the data for scales along an axis.
    """
    if is_per_tensor(rw, rw.input(1)):
        rw.drop("axis")
    else:
        _quantize_by_arithmetic(rw, _quantized_type(rw))


@lowering("QuantizeLinear", leaves=10, types=LostTypes.OWN)
def quantize_linear_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The node is written out: divide by the scale, round, add the zero point, saturate.

    What changes: the node becomes arithmetic; halves are rounded to even by Floor and comparisons.

    Why equal: as for version 21. Bit for bit.
    """
    _quantize_by_arithmetic(rw, _quantized_type(rw))


def _dequantize_widened(rw: LoweringRewriter) -> bool:
    """Write a node of widened floating point constants out; refuse types that the version before does not have."""
    if is_widened(rw, rw.input(0)):
        _dequantize_by_arithmetic(rw)
        return True
    for index in (0, 1):
        refuse_missing_type(rw, rw.dtype(rw.input(index)))
    return False


def _dequantize_by_arithmetic(rw: LoweringRewriter) -> None:
    dtype = rw.get("output_dtype", 0) or rw.need_dtype(rw.input(1))
    dequantize(rw, rw.input(0), rw.input(1), rw.input(2), dtype, rw.output(0))
    rw.remove()


def _is_weight_of_words(rw: LoweringRewriter) -> bool:
    """Return whether the node's data is a constant, and the result of a reader is quantised to 16 bits."""
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


def _dequantize_in_float(node: onnx.NodeProto, rw: LoweringRewriter, dtype: int) -> None:
    """Cast the scale to float, and the result to `dtype`."""
    node.input[1] = cast(rw, rw.input(1), _T.FLOAT, hint="scale")
    if dtype != _T.FLOAT:
        name = rw.output(0)
        rw.after("Cast", [rw.detach_output(0, "float")], [name], to=dtype)


def _refuse_missing_types(rw: LoweringRewriter) -> None:
    for value in (rw.input(1), rw.input(2), rw.output(0)):
        refuse_missing_type(rw, rw.dtype(value) if value else None)
    refuse_missing_type(rw, rw.get("output_dtype", 0) or None)


def _quantized_type(rw: LoweringRewriter) -> int:
    return rw.need_dtype(rw.input(2)) if rw.input(2) else int(rw.get("output_dtype", 0) or _T.UINT8)


def _quantize_by_arithmetic(rw: LoweringRewriter, dtype: int) -> None:
    quantize(rw, rw.input(0), rw.input(1), rw.input(2), dtype, rw.output(0))
    rw.remove()


def _zero_like_scale(rw: LoweringRewriter, dtype: int) -> str:
    """Return a zero point of 0 of the scale's shape."""
    shape, kind = rw.shape(rw.input(1)), helper.tensor_dtype_to_np_dtype(dtype)
    if shape is not None and None not in shape:
        return rw.constant(np.zeros([size or 0 for size in shape], kind), "zero_point")
    zero = numpy_helper.from_array(np.zeros(1, kind))
    return rw.before("ConstantOfShape", [rw.before("Shape", [rw.input(1)])], hint="zero_point", value=zero)
