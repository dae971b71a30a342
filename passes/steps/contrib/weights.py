"""ONNX Runtime's operators (com.microsoft) with weights of few bits: MatMulNBits, MatMulBnb4, GatherBlockQuantized."""

from __future__ import annotations

import math

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Array, Op, TensorProto, Value, formula
from onnx_migrate.rewrite.bounded_arrays import bounded, bounded_dims

_T = TensorProto

_BLOCKED = 21
"""DequantizeLinear supports blocks and integers of 4 bits from this opset on."""


def _unpacked(packed: Array, bits: int) -> Array:
    """Return the numbers of `bits` bits in bytes, low bits first, side by side in the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[..., None] >> shifts) & np.uint8(2**bits - 1)).reshape(*packed.shape[:-1], -1)


def _packed(numbers: Array, bits: int) -> bytes:
    """Return numbers as the bytes of a tensor: two numbers of 4 bits in each byte, or one number of 8 bits."""
    if bits == 8:
        return numbers.astype(np.uint8).tobytes()
    # An odd number of elements leaves half of the last byte empty.
    flat = np.append(numbers.reshape(-1), np.zeros(numbers.size % 2, np.uint8)).astype(np.uint8)
    return (flat[::2] | flat[1::2] << np.uint8(4)).tobytes()


def _unpacked_value(op: Op, packed: Value, bits: int) -> Value:
    """Return the numbers in bytes as uint8, those of a constant as one, else computed: quotients, and their remainders."""
    if bits == 8:
        return packed
    array = packed.constant
    if array is not None:
        return op.constant(_unpacked(array, bits))
    wide, rank = packed.cast(_T.INT32), packed.need_rank()
    digits = [
        op.Mod(wide if not shift else wide / 2**shift, op.constant(2**bits, wide))
        for shift in range(0, 8, bits)
    ]
    joined = op.Concat(*(op.Unsqueeze(digit, [rank]) for digit in digits), axis=rank)
    return joined.reshape(*[0] * (rank - 1), -1).cast(_T.UINT8)


@formula("com.microsoft::MatMulNBits", since=1, direct=21, exactness=EQUIVALENT)
def matmul_n_bits(
    op: Op,
    a: Value,
    b: Value,
    scales: Value,
    zero_points: Value | None,
    g_idx: Value | None,
    bias: Value | None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Value:
    """A is multiplied by the dequantised weights, whose rows have a scale and a zero point for each block.

    What changes: from opset 21 on the bytes of B become a tensor of uint4 or uint8, dequantised in blocks and transposed. Below
    opset 21 the numbers of B are unpacked into uint8, with a row for each block. Incomplete blocks and a computed B are
    unpacked at all opsets. `accuracy_level` 4 lets ONNX Runtime quantise A too; the result multiplies floats.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/matmul_nbits.cc and dequantize_blockwise.h. The numbers of
    `accuracy_level` 0, bit for bit but for the order of sums.

    Limits: onnx-migrate refuses rows that `g_idx` sorts, and prepacked weights.
    """
    if g_idx is not None or weight_prepacked:
        op.refuse("its weights are sorted by g_idx, or prepacked for a processor", code="no-equal")
    if bits not in (2, 4, 8):
        op.refuse(f"its weights have {bits} bits, not 2, 4 or 8", code="no-equal")
    blocks = math.ceil(K / block_size)
    zero = _zero_points(op, zero_points, (N, blocks), bits)
    packed = bits in (4, 8) and zero.need_dtype() == _T.UINT8 and b.is_constant
    whole = blocks * block_size == K  # OpenVINO supports only whole blocks
    form = _in_blocks if op.version >= _BLOCKED and packed and whole else _by_rows
    weights = form(op, b, scales, zero, (N, K, blocks), bits, block_size)
    result = a @ op.Transpose(weights.cast(a.need_dtype()), perm=[1, 0])
    return result if bias is None else result + bias


_Sizes = tuple[int, int, int]
"""The weights' rows and columns, and the blocks of a row."""


def _in_blocks(op: Op, b: Value, scales: Value, zero: Value, sizes: _Sizes, bits: int, block: int) -> Value:
    """Return the weights (N, K) by DequantizeLinear with a block size, which reads the bytes of B unchanged."""
    rows, columns, blocks = sizes
    kind, scope = _T.UINT8 if bits == 8 else _T.UINT4, op.rw.scope
    name = scope.add_view(b.name, kind, (rows, columns), f"{b.name}_weights")
    if name is None:
        packed = b.need_constant("weights").tobytes()
        name = scope.add_packed(packed, kind, (rows, columns), f"{b.name}_weights")
    points = _packed(zero.need_constant("zero points"), bits)
    zeros = scope.add_packed(points, kind, (rows, blocks), f"{b.name}_zero_points")
    scale = _shaped(op, scales, rows, blocks)
    return op.DequantizeLinear(Value(op, name), scale, Value(op, zeros), axis=1, block_size=block)


def _shaped(op: Op, value: Value, *shape: int) -> Value:
    """Return a value in a shape, a constant in another one as a view of its bytes."""
    if value.shape == shape:
        return value
    view = op.rw.scope.add_view(value.name, value.need_dtype(), shape, f"{value.name}_shaped")
    return Value(op, view) if view is not None else value.reshape(*shape)


def _by_rows(op: Op, b: Value, scales: Value, zero: Value, sizes: _Sizes, bits: int, block: int) -> Value:
    """Return the weights (N, K) as floats: each block is a row of its own, with its scale and zero point."""
    rows, columns, blocks = sizes
    numbers = _unpacked_value(op, _shaped(op, b, rows, blocks * block * bits // 8), bits)
    numbers = _shaped(op, numbers, rows * blocks, block)
    scale, zero = (_shaped(op, part, rows * blocks) for part in (scales.wide(), zero))
    if zero.need_dtype() == _T.UINT8 and b.is_constant and op.version >= 13:
        numbers_by_row = op.DequantizeLinear(numbers, scale, zero, axis=0)
    else:
        zero, scale = zero.cast(_T.FLOAT).reshape(-1, 1), scale.reshape(-1, 1)
        numbers_by_row = (numbers.cast(_T.FLOAT) - zero) * scale
    numbers_by_row = numbers_by_row.reshape(rows, blocks * block)
    return numbers_by_row if columns == blocks * block else op.Slice(numbers_by_row, [0], [columns], [1])


def _zero_points(op: Op, given: Value | None, shape: tuple[int, int], bits: int) -> Value:
    """Return the zero points, one for each block: numbers of uint8, or floats as they are given."""
    if given is None:
        return op.constant(np.full(bounded_dims(shape), 2 ** (bits - 1), np.uint8))
    if given.need_dtype() != _T.UINT8:
        return given
    zero = _unpacked_value(op, _shaped(op, given, shape[0], math.ceil(shape[1] * bits / 8)), bits)
    array = zero.constant
    if array is not None:
        return op.constant(array[:, : shape[1]])
    return zero if zero.shape == shape else op.Slice(zero, [0], [shape[1]], [1])


_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_FP4 = (
    0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25,
    -0.0, -5.208333333e-03, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25,
)  # fmt: skip


@formula("com.microsoft::MatMulBnb4", since=1, exactness=EQUIVALENT)
def matmul_bnb4(
    op: Op,
    a: Value,
    b: Value,
    absmax: Value,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    transB: int = 1,
    training_mode: int = 0,
) -> Value:
    """A is multiplied by the weights: numbers of a table of 16, times the largest of their block.

    What changes: the numbers of 4 bits, the high ones first, are unpacked into indices of the table, FP4 or NF4, which a Gather
    reads.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/blockwise_quant_block_bnb4.h. Bit for bit.
    """
    array = b.need_constant("weights").reshape(-1)
    indices = np.stack([array >> np.uint8(4), array & np.uint8(15)], -1).reshape(-1).astype(np.int32)
    table = op.constant(np.array(_FP4 if quant_type == 0 else _NF4, np.float32))
    blocks = math.ceil(N * K / block_size)
    indices = np.append(indices[: N * K], np.zeros(bounded(blocks * block_size - N * K), np.int32))
    dtype = a.need_dtype()
    rows = op.Gather(table, op.constant(indices.reshape(blocks, block_size)), axis=0)
    weights = (rows * absmax.cast(_T.FLOAT).reshape(blocks, 1)).reshape(-1)
    if blocks * block_size != N * K:
        weights = op.Slice(weights, [0], [N * K], [0])
    weights = weights.reshape(N, K).cast(dtype)
    return a @ (op.Transpose(weights, perm=[1, 0]) if transB else weights)


@formula("com.microsoft::GatherBlockQuantized", since=1)
def gather_block_quantized(
    op: Op,
    data: Value,
    indices: Value,
    scales: Value,
    zero_points: Value | None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Value:
    """Data, scales and zero points are gathered, and the difference of data and zero point is multiplied by the scale.

    What changes: numbers of a few bits are gathered as the bytes that hold them, and unpacked afterwards. A Gather repeats a
    scale and a zero point for each number of their block.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/gather_block_quantized.cc. Bit for bit.

    Limits: the shape of the data must be fixed.
    """
    dtype, shape = data.need_dtype(), data.need_static()
    gathered, blocked = gather_axis % len(shape), quantize_axis % len(shape)
    tensors = [data, scales, *([] if zero_points is None else [zero_points])]
    number, *parts = (_gathered(op, tensor, indices, gathered, bits) for tensor in tensors)
    size = shape[blocked] * (8 // bits if dtype == _T.UINT8 and blocked == len(shape) - 1 else 1)
    axis = blocked if blocked < gathered else blocked + indices.need_rank() - 1
    blocks = np.arange(bounded(size)) // block_size
    scale, *zero = (op.Gather(part, blocks, axis=axis).cast(_T.FLOAT) for part in parts)
    if zero or dtype == _T.UINT8:
        number = number.cast(_T.FLOAT) - (zero[0] if zero else 2.0 ** (bits - 1))
    return (number.cast(_T.FLOAT) * scale).cast(scales.need_dtype())


def _gathered(op: Op, value: Value, indices: Value, axis: int, bits: int) -> Value:
    """Return the Gather of a value; for numbers of a few bits, which have no kernel, it gathers and unpacks the bytes."""
    dtype = value.need_dtype()
    if dtype == _T.UINT8:
        return _unpacked_value(op, op.Gather(value, indices, axis=axis), bits)
    if dtype not in (_T.INT4, _T.UINT4):
        return op.Gather(value, indices, axis=axis)
    *before, last = value.need_static()
    scope, name = op.rw.scope, None
    if axis < len(before) and last % 2 == 0:
        name = scope.add_view(value.name, _T.UINT8, (*before, last // 2), f"{value.name}_bytes")
    if name is None:
        array = value.need_constant("integers of 4 bits")
        return op.Gather(op.constant(array.astype(np.int8)), indices, axis=axis)
    number = _unpacked_value(op, op.Gather(Value(op, name), indices, axis=axis), 4).cast(_T.FLOAT)
    return number if dtype == _T.UINT4 else op.Where(number < 8, number, number - 16)
