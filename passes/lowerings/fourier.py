"""DFT and STFT: below opset 17 products with constant cosines and sines."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, iota, size_of, slice_axes, unsqueeze

_LONGEST = 4096
"""Of a transform: the cosines and sines of a longer one would take more than 128 MB."""

Array = np.ndarray[Any, Any]


@lowering("DFT", leaves=20)
def dft_20_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axis` moves from an input to an attribute, and is set to its default -2 if it was left out; the old one is 1.

    Limits: the axis must be a constant.
    """
    axis = int(rw.need_number(2, "axis")) if rw.input(2) else -2
    rw.set_input(2, "")
    rw.set("axis", axis)


@lowering("DFT", leaves=17, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def dft_17_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no DFT: a MatMul multiplies the signal by a constant of cosines and sines.

    What changes: the axis moves in front of that of the complex parts, both become one, and the MatMul computes the parts of
    all frequencies at once. A signal is cut or padded with zeros where dft_length differs from the size of the axis.

    Why equal: it is the sum by which the standard defines the transform. float16 and bfloat16 compute in float32. Of a signal
    of 1,024 samples the largest difference from ONNX Runtime's kernel was 6e-5, of results up to 105.

    Limits: dft_length, or the size of the axis where that is left out, must be known, and at most 4,096; the rank and the last
    dim of the input too.
    """
    inverse, onesided = bool(rw.get("inverse", 0)), bool(rw.get("onesided", 0))
    source = rw.input(0)
    rank, parts = rw.need_rank(source), _parts(rw, source)
    axis = int(rw.get("axis", 1)) % rank
    shape = rw.shape(source)
    given = shape[axis] if shape else None
    real = inverse and onesided
    length = _length(rw, source, given, real)
    used = length // 2 + 1 if real else length
    dtype, wide = _types(rw, source)
    value = cast(rw, source, wide, hint="wide")
    if given is None:
        # At least as long as is used, then cut.
        pads = [0] * rank + [used if at == axis else 0 for at in range(rank)]
        value = rw.before("Pad", [value, integers(rw, *pads)], hint="padded")
    if given is None or given > used:
        value = slice_axes(rw, value, [0], [used], [axis])
    used = used if given is None else min(used, given)
    perm = [at for at in range(rank) if at not in (axis, rank - 1)]
    perm += [axis, rank - 1]
    if axis != rank - 2:
        value = rw.before("Transpose", [value], hint="axis_last", perm=perm)
    kept = [0] * (rank - 2)
    table = _inverse_real(length, used, parts) if real else _transform(length, used, parts, inverse)
    if onesided and not inverse:
        table = table[:, : 2 * (length // 2 + 1)]
    table = table.astype(np.float64 if wide == TensorProto.DOUBLE else np.float32)
    value = rw.before("Reshape", [value, integers(rw, *kept, used * parts)], hint="signal")
    value = rw.before("MatMul", [value, rw.constant(table, "waves")], hint="parts")
    of_output = 1 if real else 2
    value = rw.before(
        "Reshape", [value, integers(rw, *kept, table.shape[1] // of_output, of_output)], hint="spectrum"
    )
    if axis != rank - 2:
        value = rw.before("Transpose", [value], hint="axis_back", perm=[perm.index(at) for at in range(rank)])
    _finish(rw, value, dtype)


@lowering("STFT", leaves=17, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def stft_17_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no STFT: a Conv multiplies each frame of the signal by cosines and sines, times the window.

    What changes: the kernels of the Conv are the window times the waves of one frequency, its stride is frame_step. For double,
    which ONNX Runtime's Conv does not take, the frames are gathered and multiplied by MatMul.

    Why equal: it is the sum by which the standard defines the transform of a frame, and a Conv without pads has as many frames.
    float16 and bfloat16 compute in float32. Of frames of 400 samples and results up to 39 the result was 1.8e-5
    off the exact one, ONNX Runtime's kernel 1.3e-3.

    Limits: frame_step and frame_length, or the length of the window or signal in place of it, must be known; the length at most
    4,096.
    """
    source, window = rw.input(0), rw.input(2)
    flat = rw.need_rank(source) == 2  # real, as ONNX Runtime takes it
    parts = 1 if flat else _parts(rw, source)
    step = int(rw.need_number(1, "frame_step"))
    length = _frame_length(rw, source, window)
    dtype, wide = _types(rw, source)
    value = cast(rw, source, wide, hint="wide")
    value = unsqueeze(rw, value, [2]) if flat else value
    table = _transform(length, length, parts, inverse=False)
    if rw.get("onesided", 1):
        table = table[:, : 2 * (length // 2 + 1)]
    double = wide == TensorProto.DOUBLE
    rows = table.reshape(length, parts, -1).transpose(
        2, 1, 0
    )  # [frequency and part, part of the signal, sample]
    waves = rw.constant(rows.astype(np.float64 if double else np.float32), "waves")
    if window:
        waves = rw.before("Mul", [waves, cast(rw, window, wide, hint="window")], hint="kernels")
    if double:
        value = _by_matmul(rw, value, waves, length, step, parts)
    else:
        value = rw.before("Transpose", [value], hint="parts_first", perm=[0, 2, 1])
        value = rw.before("Conv", [value, waves], hint="frames", strides=[step], kernel_shape=[length])
        value = rw.before("Transpose", [value], hint="frames_first", perm=[0, 2, 1])
    value = rw.before("Reshape", [value, integers(rw, 0, 0, table.shape[1] // 2, 2)], hint="spectrum")
    _finish(rw, value, dtype)


def _by_matmul(rw: LoweringRewriter, signal: str, waves: str, length: int, step: int, parts: int) -> str:
    """Return the products of each frame of a signal with each of the waves."""
    span = rw.before("Sub", [size_of(rw, signal, 1), integers(rw, length)], hint="span")
    count = rw.before("Div", [span, integers(rw, step)], hint="steps")
    count = rw.before("Add", [count, integers(rw, 1)], hint="frames")
    starts = rw.before("Mul", [iota(rw, count), integers(rw, step)], hint="starts")
    within = rw.constant(np.arange(length, dtype=np.int64), "samples")
    places = rw.before("Add", [unsqueeze(rw, starts, [1]), within], hint="places")
    frames = rw.before("Gather", [signal, places], hint="frames", axis=1)  # [batch, frame, sample, part]
    frames = rw.before("Transpose", [frames], hint="frames", perm=[0, 1, 3, 2])
    frames = rw.before("Reshape", [frames, integers(rw, 0, 0, parts * length)], hint="frames")
    flat = rw.before("Reshape", [waves, integers(rw, 0, parts * length)], hint="waves")
    return rw.before("MatMul", [frames, rw.before("Transpose", [flat], perm=[1, 0])], hint="parts")


def _frame_length(rw: LoweringRewriter, signal: str, window: str) -> int:
    if rw.input(3):
        return _checked(rw, int(rw.need_number(3, "frame_length")))
    value, axis = (window, 0) if window else (signal, 1)
    shape = rw.shape(value)
    size = shape[axis] if shape else None
    if size is None:
        _refuse_size(rw, value, "frame_length")
    return _checked(rw, size)


def _length(rw: LoweringRewriter, source: str, given: int | None, real: bool) -> int:
    """Return the length of a transform: dft_length, or what follows from the size of the axis."""
    if rw.input(1):
        return _checked(rw, int(rw.need_number(1, "dft_length")))
    if given is None:
        _refuse_size(rw, source, "dft_length")
    return _checked(rw, 2 * (given - 1) if real else given)


def _refuse_size(rw: LoweringRewriter, value: str, name: str) -> NoReturn:
    rw.refuse(
        f"the length of the transform must be known below opset 17: it has no {name}, and the shape of {value!r} is"
        f" {list(rw.shape(value) or ())}",
        code="needs-shape",
        hint=f"fix the dims of the model's inputs with --fix, or set {name} to a constant",
    )


def _checked(rw: LoweringRewriter, length: int) -> int:
    if not 0 < length <= _LONGEST:
        rw.refuse(
            f"the length of the transform is {length}, and at most {_LONGEST} can be written as a product below opset 17",
            code="no-equal",
        )
    return length


def _parts(rw: LoweringRewriter, value: str) -> int:
    """Return 1 for a real signal, 2 for a complex one: the last dim, which must be known."""
    rw.need_rank(value)
    parts = (rw.shape(value) or (None,))[-1]
    if parts is None:
        rw.refuse(
            f"the last dim of {value!r}, 1 for real and 2 for complex signals, must be known below opset 17",
            code="needs-shape",
            hint="fix the last dim in the model's inputs or value_info",
        )
    return parts


def _types(rw: LoweringRewriter, value: str) -> tuple[int, int]:
    """Return the element type of a value, and the one to compute in."""
    dtype = rw.need_dtype(value)
    return dtype, dtype if dtype == TensorProto.DOUBLE else TensorProto.FLOAT


def _finish(rw: LoweringRewriter, value: str, dtype: int) -> None:
    rw.preceding[-1].output[0] = value = rw.fresh("result") if rw.dtype(value) != dtype else rw.output(0)
    if value != rw.output(0):
        rw.after("Cast", [value], [rw.output(0)], to=dtype)
    rw.remove()


def _angles(length: int, samples: int, frequencies: int) -> Array:
    # Reduced modulo the length before the division, for the last bits of the cosines.
    turns = np.outer(np.arange(samples), np.arange(frequencies)) % length
    return 2 * np.pi * turns / length


def _transform(length: int, samples: int, parts: int, inverse: bool) -> Array:
    """Return the factors of each part of each sample (rows) in each part of each frequency (columns)."""
    angles = _angles(length, samples, length)
    cosine, sine = np.cos(angles), np.sin(angles) if inverse else -np.sin(angles)
    table = np.empty((samples, parts, length, 2))
    table[:, 0, :, 0], table[:, 0, :, 1] = cosine, sine
    if parts == 2:
        table[:, 1, :, 0], table[:, 1, :, 1] = -sine, cosine
    return table.reshape(samples * parts, 2 * length) / (length if inverse else 1)


def _inverse_real(length: int, frequencies: int, parts: int) -> Array:
    """Return the factors of each part of each frequency (rows) in each sample (columns) of a real signal."""
    angles = _angles(length, frequencies, length)
    weight = np.full(
        (frequencies, 1), 2.0
    )  # Each frequency stands for its negative, but for 0 and the highest.
    weight[0] = 1
    if length % 2 == 0 and frequencies > length // 2:
        weight[length // 2] = 1
    table = np.empty((frequencies, parts, length))
    table[:, 0] = weight * np.cos(angles)
    if parts == 2:
        table[:, 1] = -weight * np.sin(angles)
    return table.reshape(frequencies * parts, length) / length
