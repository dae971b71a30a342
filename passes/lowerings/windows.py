"""HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: below opset 17 constants, or a sum of cosines."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, cast, iota

_COSINES = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (25 / 46, -21 / 46),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""The factors of cos(0), cos(t), cos(2t) in each window (onnx/defs/math/defs.cc)."""

_LONGEST, _LARGEST = 2**20, 2**24
"""The most elements of a window, and of a matrix, that become a constant."""


@lowering("HannWindow", "HammingWindow", "BlackmanWindow", leaves=17, exactness=Exactness.EQUIVALENT)
def window_17_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no windows: a known size up to a million gives a constant, another one a sum of cosines of counted samples.

    Why equal: the sums of cosines are those by which the standard defines the windows. Of 1,024 samples the largest
    difference from ONNX Runtime's kernel was 6e-8 for constants, 2.4e-7 for computed windows.
    """
    factors, periodic = _COSINES[node.op_type], bool(rw.get("periodic", 1))
    dtype = int(rw.get("output_datatype", TensorProto.FLOAT))
    size = rw.known(rw.input(0))
    count = _LONGEST + 1 if size is None else int(size.reshape(-1)[0])
    if count <= _LONGEST:
        with np.errstate(invalid="ignore", divide="ignore"):
            angles = 2 * np.pi * np.arange(count) / np.float64(count if periodic else count - 1)
        values = sum(factor * np.cos(number * angles) for number, factor in enumerate(factors))
        _replace(node, rw, np.asarray(values), dtype)
        return
    wide = TensorProto.DOUBLE if dtype == TensorProto.DOUBLE else TensorProto.FLOAT
    plain = np.float64 if dtype == TensorProto.DOUBLE else np.float32
    samples = rw.before("Reshape", [rw.input(0), rw.constant(np.array([1], np.int64), "one")], hint="size")
    samples = cast(rw, samples, TensorProto.INT64)
    places = rw.before("Cast", [iota(rw, samples)], hint="places", to=wide)
    span = rw.before("Cast", [samples], hint="span", to=wide)
    if not periodic:
        span = rw.before("Sub", [span, rw.constant(np.array(1, plain), "one")], hint="span")
    turns = rw.before("Div", [places, span], hint="turns")
    total = ""
    for number, factor in enumerate(factors[1:], 1):
        angle = rw.before(
            "Mul", [turns, rw.constant(np.array(2 * np.pi * number, plain), "turn")], hint="angle"
        )
        wave = rw.before("Cos", [angle], hint="wave")
        wave = rw.before("Mul", [wave, rw.constant(np.array(factor, plain), "factor")], hint="wave")
        total = rw.before("Add", [total, wave], hint="sum") if total else wave
    base = rw.constant(np.array(factors[0], plain), "base")
    total = rw.before("Add", [total, base], hint="window")
    _become(node, rw, "Cast", total)
    rw.set("to", dtype)


@lowering("MelWeightMatrix", leaves=17, exactness=Exactness.EQUIVALENT)
def mel_weight_matrix_17_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no MelWeightMatrix: the matrix becomes a constant.

    Why equal: each band is a triangle between neighbours of points that are equally spaced on the mel scale, each rounded
    down to a bin of the spectrum (onnx/defs/math/defs.cc, onnxruntime/core/providers/cpu/signal/window_functions.cc).

    Limits: all five inputs must be constants, and the matrix must have at most 16 million elements.
    """
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    bands, length, rate, lower, upper = (rw.need_number(index, name) for index, name in enumerate(names))
    edges = [2595 * np.log10(1 + np.float64(edge) / 700) for edge in (lower, upper)]
    count, bins = int(bands), int(length) // 2 + 1
    if not (0 <= count <= _LARGEST and 0 < bins * count <= _LARGEST and rate > 0 and 0 <= lower < upper):
        raise CannotMigrate(
            f"a matrix of {bins} by {count} for frequencies from {lower} to {upper} at {rate} samples a second cannot be written",
            code="no-equal",
        )
    mels = edges[0] + np.arange(count + 2) * ((edges[1] - edges[0]) / (count + 2))
    hertz = 700 * (10 ** (mels / 2595) - 1)
    points = np.floor((int(length) + 1) * hertz / int(rate)).astype(np.int64)
    matrix = np.zeros((max(bins, int(points.max()) + 1), count))
    for band, (left, middle, right) in enumerate(zip(points, points[1:], points[2:], strict=False)):
        matrix[left : middle + 1, band] = (
            np.arange(middle - left + 1) / (middle - left) if middle > left else 1
        )
        if right > middle:
            matrix[middle:right, band] = (right - np.arange(middle, right)) / (right - middle)
    _replace(node, rw, matrix[:bins], int(rw.get("output_datatype", TensorProto.FLOAT)))


def _replace(
    node: onnx.NodeProto,
    rw: LoweringRewriter,
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    dtype: int,
) -> None:
    """Let the node output a constant."""
    if dtype not in FLOATS:
        values = np.trunc(values)
    array = values.astype(helper.tensor_dtype_to_np_dtype(dtype))
    _become(node, rw, "Identity", rw.constant(array, "values"))


def _become(node: onnx.NodeProto, rw: LoweringRewriter, operator: str, value: str) -> None:
    """Make the node an operator with one input and no attributes."""
    rw.rename(operator)
    del node.attribute[:], node.input[:]
    node.input.append(value)
