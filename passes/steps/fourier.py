"""Operators on signals, introduced in opset 17: DFT and STFT become products with waves, windows and mel weights constants."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.advice import FIX_DIMS, Advice
from onnx_migrate.engine.steps.formula import (
    EQUIVALENT,
    FLOATS,
    Array,
    LostTypes,
    Op,
    TensorProto,
    Value,
    formula,
)
from onnx_migrate.plugins import LoweringRewriter, Rewriter, adapter, lowering
from onnx_migrate.rewrite.bounded_arrays import bounded, bounded_dims

_LONGEST = 4096
"""The longest transform, in samples. The cosines and sines of a longer one would take more than 128 MB."""


@adapter("DFT", to=20)
def dft_20(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` moves from an attribute to an input. An omitted one is set to its old default 1, because the new default is -2."""
    if rw.attribute("axis") is None:
        rw.set_input(2, rw.constant(np.array(1, np.int64), "axis"))
    rw.attribute_to_input("axis", 2)


@lowering("DFT", leaves=20)
def dft_20_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axis` moves from an input to an attribute. An omitted one is set to its default -2, because the old default is 1.

    Limits: the axis must be a constant.
    """
    axis = int(rw.need_number(2, "axis")) if rw.input(2) else -2
    rw.set_input(2, "")
    rw.set("axis", axis)


@formula("DFT", since=17, exactness=EQUIVALENT, types=LostTypes.OWN)
def dft(op: Op, x: Value, dft_length: Value | None, *, axis: int, inverse: int, onesided: int) -> Value:
    """DFT begins with opset 17, so a MatMul multiplies the signal by a constant of cosines and sines.

    What changes: the transformed axis moves next to the axis of the complex parts, and a Reshape merges both axes. One MatMul
    then computes the parts of all frequencies. If dft_length differs from the size of the axis, the signal is cut or padded
    with zeros.

    Why equal: the MatMul computes the sum in the standard's definition. float16 and bfloat16 are computed in float32. For a
    signal of 1,024 samples the largest difference from ONNX Runtime's kernel was 6e-5, with results up to 105.

    Limits: dft_length must be known, or the size of the axis if dft_length is omitted. It may be at most 4,096. The rank and
    the last dim of the input must be known too.
    """
    rank, parts = x.need_rank(), _parts(op, x)
    axis %= rank
    own_length = (x.shape or ())[axis]
    real = bool(inverse and onesided)
    length = _length(op, x, dft_length, own_length, real)
    used = length // 2 + 1 if real else length
    dtype, wide = _types(x)
    value = x.cast(wide)
    if own_length is None:
        # The length is unknown: pad by the full length, then cut.
        pads = [0] * rank + [used if at == axis else 0 for at in range(rank)]
        value = op.write("Pad", value, pads)
    if own_length is None or own_length > used:
        value = op.Slice(value, [0], [used], [axis])
    used = used if own_length is None else min(used, own_length)
    perm = [at for at in range(rank) if at not in (axis, rank - 1)] + [axis, rank - 1]
    if axis != rank - 2:
        value = op.Transpose(value, perm=perm)
    lead = [0] * (rank - 2)
    table = _inverse_real(length, used, parts) if real else _transform(length, used, parts, bool(inverse))
    if onesided and not inverse:
        table = table[:, : 2 * (length // 2 + 1)]
    value = value.reshape(*lead, used * parts) @ op.constant(table, value)
    of_output = 1 if real else 2
    value = value.reshape(*lead, table.shape[1] // of_output, of_output)
    if axis != rank - 2:
        value = op.Transpose(value, perm=[perm.index(at) for at in range(rank)])
    return value.cast(dtype)


@formula("STFT", since=17, exactness=EQUIVALENT, types=LostTypes.OWN)
def stft(
    op: Op,
    signal: Value,
    frame_step: Value,
    window: Value | None,
    frame_length: Value | None,
    *,
    onesided: int,
) -> Value:
    """STFT begins with opset 17, so a Conv multiplies each frame of the signal by cosines and sines, times the window.

    What changes: each kernel of the Conv is the window times the waves of one frequency. The stride is frame_step. ONNX
    Runtime's Conv does not support double, so for double a Gather collects the frames and a MatMul multiplies them.

    Why equal: the Conv computes the sum in the standard's definition of the transform of a frame. A Conv without pads has the
    same number of frames. float16 and bfloat16 are computed in float32. For frames of 400 samples and results up to 39, the
    error was 1.8e-5. The error of ONNX Runtime's kernel was 1.3e-3.

    Limits: frame_step must be known, and one of frame_length, the length of the window and that of the signal. The length may
    be at most 4,096.
    """
    flat = signal.need_rank() == 2  # real, in the form that ONNX Runtime supports
    parts = 1 if flat else _parts(op, signal)
    step = int(op.rw.need_number(1, "frame_step"))
    length = _frame_length(op, signal, window)
    dtype, wide = _types(signal)
    value = signal.cast(wide)
    value = op.Unsqueeze(value, [2]) if flat else value
    table = _transform(length, length, parts, inverse=False)
    if onesided:
        table = table[:, : 2 * (length // 2 + 1)]
    # [frequency and part, part of the signal, sample]
    waves = op.constant(table.reshape(length, parts, -1).transpose(2, 1, 0), value)
    if window is not None:
        waves = waves * window.cast(wide)
    if wide == TensorProto.DOUBLE:
        value = _by_matmul(op, value, waves, length, step, parts)
    else:
        value = op.Transpose(value, perm=[0, 2, 1])
        value = op.Conv(value, waves, strides=[step], kernel_shape=[length])
        value = op.Transpose(value, perm=[0, 2, 1])
    return value.reshape(0, 0, table.shape[1] // 2, 2).cast(dtype)


def _by_matmul(op: Op, signal: Value, waves: Value, length: int, step: int, parts: int) -> Value:
    """Return the products of each frame of a signal with each wave."""
    span = op.Sub(op.size_of(signal, 1).as_written(), [length])
    count = op.Add(op.Div(span, [step]), [1])
    starts = op.Mul(op.iota(count).as_written(), [step])
    indices = op.Unsqueeze(starts, [1]) + np.arange(bounded(length), dtype=np.int64)
    frames = op.Gather(signal, indices, axis=1)  # [batch, frame, sample, part]
    frames = op.Transpose(frames, perm=[0, 1, 3, 2]).reshape(0, 0, parts * length)
    return frames @ op.Transpose(waves.as_written().reshape(0, parts * length), perm=[1, 0])


def _frame_length(op: Op, signal: Value, window: Value | None) -> int:
    if op.rw.input(3):
        return _checked(op, int(op.rw.need_number(3, "frame_length")))
    value, axis = (signal, 1) if window is None else (window, 0)
    size = value.shape[axis] if value.shape else None
    return _refuse_size(op, value, "frame_length") if size is None else _checked(op, size)


def _length(op: Op, x: Value, dft_length: Value | None, given: int | None, real: bool) -> int:
    """Return the length of a transform: dft_length, or else the length that the size of the axis implies."""
    if dft_length is not None:
        return _checked(op, int(op.rw.need_number(1, "dft_length")))
    if given is None:
        _refuse_size(op, x, "dft_length")
    return _checked(op, 2 * (given - 1) if real else given)


def _refuse_size(op: Op, value: Value, name: str) -> NoReturn:
    op.refuse(
        f"the length of the transform must be known below opset 17: it has no {name}, and the shape of {value.name!r} is"
        f" {list(value.shape or ())}",
        code="needs-shape",
        hint=(FIX_DIMS, Advice(f"set {name} to a constant")),
    )


def _checked(op: Op, length: int) -> int:
    if not 0 < length <= _LONGEST:
        op.refuse(
            f"the length of the transform is {length}, and at most {_LONGEST} can be written as a product below opset 17",
            code="no-equal",
        )
    return length


def _parts(op: Op, value: Value) -> int:
    """Return 1 for a real signal, 2 for a complex one: the last dim, which must be known."""
    value.need_rank()
    parts = (value.shape or (None,))[-1]
    if parts is None:
        op.refuse(
            f"the last dim of {value.name!r}, 1 for real and 2 for complex signals, must be known below opset 17",
            code="needs-shape",
            hint="fix the last dim in the model's inputs or value_info",
        )
    return parts


def _types(value: Value) -> tuple[int, int]:
    """Return the element type of a value, and the type for computations with it."""
    dtype = value.need_dtype()
    return dtype, dtype if dtype == TensorProto.DOUBLE else TensorProto.FLOAT


def _angles(length: int, samples: int, frequencies: int) -> Array:
    # Reduce modulo the length before the division, so that the last bits of the cosines are right.
    bounded(samples * frequencies)
    turns = np.outer(np.arange(samples), np.arange(frequencies)) % length
    return 2 * np.pi * turns / length


def _transform(length: int, samples: int, parts: int, inverse: bool) -> Array:
    """Return a matrix of factors: a row for each part of each sample, a column for each part of each frequency."""
    angles = _angles(length, samples, length)
    cosine, sine = np.cos(angles), np.sin(angles) if inverse else -np.sin(angles)
    table = np.empty((samples, parts, length, 2))
    table[:, 0, :, 0], table[:, 0, :, 1] = cosine, sine
    if parts == 2:
        table[:, 1, :, 0], table[:, 1, :, 1] = -sine, cosine
    return table.reshape(samples * parts, 2 * length) / (length if inverse else 1)


def _inverse_real(length: int, frequencies: int, parts: int) -> Array:
    """Return the factors for a real signal: a row for each part of each frequency, a column for each sample."""
    angles = _angles(length, frequencies, length)
    # Each frequency counts twice, for its negative too, except 0 and the highest.
    weight = np.full((frequencies, 1), 2.0)
    weight[0] = 1
    if length % 2 == 0 and frequencies > length // 2:
        weight[length // 2] = 1
    table = np.empty((frequencies, parts, length))
    table[:, 0] = weight * np.cos(angles)
    if parts == 2:
        table[:, 1] = -weight * np.sin(angles)
    return table.reshape(frequencies * parts, length) / length


_COSINES = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""The factors of cos(0), cos(t), cos(2t) in each window (onnx/defs/math/defs.cc)."""

_LONGEST_WINDOW, _LARGEST = 2**20, 2**24
"""The most elements of a window, and the most of a matrix, that become a constant."""


@formula("HannWindow", "HammingWindow", "BlackmanWindow", since=17, exactness=EQUIVALENT)
def window(op: Op, size: Value, *, periodic: int, output_datatype: int) -> Value:
    """A window of known size up to a million becomes a constant, any other a sum of cosines of counted samples.

    Why equal: the standard defines the windows by these sums of cosines. For 1,024 samples the largest difference from ONNX
    Runtime's kernel was 6e-8 for constants, and 2.4e-7 for computed windows.
    """
    factors, array = _COSINES[op.operator], size.constant
    count = _LONGEST_WINDOW + 1 if array is None else int(array.reshape(-1)[0])
    if count <= _LONGEST_WINDOW:
        # A window of one sample that is not periodic divides 0 by 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            angles = 2 * np.pi * np.arange(count) / np.float64(count if periodic else count - 1)
        values = sum(factor * np.cos(number * angles) for number, factor in enumerate(factors))
        return op.constant(_as_type(np.asarray(values), output_datatype))
    wide = TensorProto.DOUBLE if output_datatype == TensorProto.DOUBLE else TensorProto.FLOAT
    samples = size.reshape(1).cast(TensorProto.INT64)
    positions, span = op.iota(samples).cast(wide), samples.cast(wide)
    turns = positions / (span if periodic else span - 1)
    first, *others = (
        op.Cos(turns * (2 * np.pi * number)) * factor for number, factor in enumerate(factors[1:], 1)
    )
    return op.Cast(sum(others, first) + factors[0], to=output_datatype)


@formula("MelWeightMatrix", since=17, exactness=EQUIVALENT)
def mel_weight_matrix(
    op: Op,
    num_mel_bins: Value,
    dft_length: Value,
    sample_rate: Value,
    lower_edge_hertz: Value,
    upper_edge_hertz: Value,
    *,
    output_datatype: int,
) -> Value:
    """MelWeightMatrix begins with opset 17, so a constant replaces the matrix.

    Why equal: the points between bands are equally spaced on the mel scale, and each is rounded down to a bin of the
    spectrum. Each band is a triangle between its two neighbouring points. The sources are onnx/defs/math/defs.cc and
    onnxruntime/core/providers/cpu/signal/window_functions.cc.

    Limits: all five inputs must be constants, and the matrix must have at most 16 million elements.
    """
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    bands, length, rate, lower, upper = (op.rw.need_number(index, name) for index, name in enumerate(names))
    edges = [2595 * np.log10(1 + np.float64(edge) / 700) for edge in (lower, upper)]
    count, bins = int(bands), int(length) // 2 + 1
    if not (0 <= count <= _LARGEST and 0 < bins * count <= _LARGEST and rate > 0 and 0 <= lower < upper):
        op.refuse(
            f"a matrix of {bins} by {count} for frequencies from {lower} to {upper} at {rate} samples a second cannot be written",
            code="no-equal",
        )
    mels = edges[0] + np.arange(bounded(count + 2)) * ((edges[1] - edges[0]) / (count + 2))
    hertz = 700 * (10 ** (mels / 2595) - 1)
    points = np.floor((int(length) + 1) * hertz / int(rate)).astype(np.int64)
    # An edge above half the sample rate lies behind the last bin, in rows that the result drops.
    matrix = np.zeros(bounded_dims((max(bins, int(points.max()) + 1), count)))
    for band, (left, middle, right) in enumerate(zip(points, points[1:], points[2:], strict=False)):
        rising = np.arange(middle - left + 1)
        matrix[left : middle + 1, band] = rising / (middle - left) if middle > left else 1
        if right > middle:
            matrix[middle:right, band] = (right - np.arange(middle, right)) / (right - middle)
    return op.constant(_as_type(matrix[:bins], output_datatype))


def _as_type(values: Array, dtype: int) -> Array:
    return (values if dtype in FLOATS else np.trunc(values)).astype(helper.tensor_dtype_to_np_dtype(dtype))
