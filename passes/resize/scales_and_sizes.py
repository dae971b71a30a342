"""Rewrites scales as sizes and sizes as scales, where the numbers stay the same bit for bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnx_migrate.plural import count_of
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.resize import (
    lengths_differ,
    run_length,
    samples_alike,
    scale_of_size,
    sizes_are_lengths,
)

from .node_context import axes_of

__all__ = [
    "any_length_differs",
    "scales_to_sizes",
    "sizes_at_run_time",
    "sizes_to_scales",
    "write_sizes",
]

Floats = npt.NDArray[np.float32]
Shape = tuple[int | None, ...]


def any_length_differs(rw: Rewriter, scales: Floats, shape: Shape) -> bool:
    """Return whether onnx infers another length for an axis of known length than ONNX Runtime computes."""
    axes = axes_of(rw.node, len(shape))
    if len(axes) != len(scales):
        rw.refuse(
            f"its scales have {count_of(len(scales), 'element')} for {count_of(len(axes), 'axis')}",
            code="bad-scales",
            hint="one is required for every axis",
        )
    known = [(shape[axis], scale) for axis, scale in zip(axes, scales, strict=True)]
    return any(length is not None and lengths_differ(length, scale) for length, scale in known)


def scales_to_sizes(rw: Rewriter, scales: Floats, shape: Shape) -> str | None:
    """Write the node by sizes if that is exact and return None; else return what prevents it.

    A length that is not known is multiplied at run time if its scale is a whole number.
    """
    axes = axes_of(rw.node, len(shape))
    coordinates = rw.get("coordinate_transformation_mode", "half_pixel")
    sizes: list[int | None] = []
    for axis, scale in zip(axes, scales, strict=True):
        length = shape[axis]
        if length is None:
            if scale != np.round(scale):
                return f"axis {axis} has no fixed length, and a scale of {scale:g} is no ratio of whole lengths at each"
            sizes.append(None)
            continue
        out = run_length(length, scale)
        if not samples_alike(length, scale, coordinates):
            return f"axis {axis} of length {length} becomes {out}, and {out} / {length} is not its scale {scale:g}"
        sizes.append(out)
    write_sizes(rw, sizes, [int(scale) if scale == np.round(scale) else 0 for scale in scales], shape)
    return None


def write_sizes(rw: Rewriter, sizes: list[int | None], factors: list[int], shape: Shape) -> None:
    """Replace the node's scales by sizes, which are a constant if all are known.

    A size of None is the length at run time times its factor. If all of these factors are 1, and the opset has the
    attribute `axes`, it names the other axes; else shape arithmetic is written before the node.
    """
    axes = axes_of(rw.node, len(shape))
    open_axes = [index for index, size in enumerate(sizes) if size is None]
    known = [(axis, size) for axis, size in zip(axes, sizes, strict=True) if size is not None]
    if not open_axes:
        value = rw.constant(np.array(sizes, np.int64), "sizes")
    elif rw.version >= 18 and known and all(factors[index] == 1 for index in open_axes) and not rw.input(1):
        rw.set("axes", [axis for axis, _ in known])
        value = rw.constant(np.array([size for _, size in known], np.int64), "sizes")
    else:
        value = _arithmetic(rw, axes, sizes, factors)
    rw.set_input(2, "" if rw.version >= 13 else rw.constant(np.zeros(0, np.float32), "no_scales"))
    rw.set_input(3, value)


def _arithmetic(rw: Rewriter, axes: list[int], sizes: list[int | None], factors: list[int]) -> str:
    """Write the computation of the sizes at run time before the node, and return their name."""
    lengths = rw.before("Shape", [rw.input(0)], hint="lengths")
    if axes != list(range(len(axes))) or (_none_known(sizes) and len(axes) < (rw.rank(rw.input(0)) or 0)):
        lengths = rw.before(
            "Gather", [lengths, rw.constant(np.array(axes, np.int64), "axes")], hint="lengths", axis=0
        )
    if _none_known(sizes):
        if all(factor == 1 for factor in factors):
            return lengths
        return rw.before("Mul", [lengths, rw.constant(np.array(factors, np.int64), "factors")], hint="sizes")
    pieces: list[str] = []
    index = 0
    while index < len(sizes):
        end = index
        while end < len(sizes) and (sizes[end] is None) == (sizes[index] is None):
            end += 1
        if sizes[index] is None:
            bounds = [rw.constant(np.array([edge], np.int64), "bound") for edge in (index, end)]
            piece = rw.before("Slice", [lengths, *bounds], hint="lengths")
            if any(factor != 1 for factor in factors[index:end]):
                whole = rw.constant(np.array(factors[index:end], np.int64), "factors")
                piece = rw.before("Mul", [piece, whole], hint="lengths")
            pieces.append(piece)
        else:
            pieces.append(rw.constant(np.array(sizes[index:end], np.int64), "sizes"))
        index = end
    return rw.before("Concat", pieces, hint="sizes", axis=0)


def _none_known(sizes: list[int | None]) -> bool:
    """Return whether no size is known."""
    return all(size is None for size in sizes)


def sizes_to_scales(rw: Rewriter, sizes: npt.NDArray[np.int64], shape: Shape) -> str | None:
    """Write the node by scales if that is exact and return None; else return what prevents it."""
    if not sizes_are_lengths(rw.get("keep_aspect_ratio_policy", "stretch")):
        return "its sizes are bounds under its keep_aspect_ratio_policy"
    axes = axes_of(rw.node, len(shape))
    scales: list[float] = []
    for axis, size in zip(axes, sizes.tolist(), strict=True):
        length = shape[axis]
        if length is None:
            return f"axis {axis} has no fixed length, but always becomes {size}"
        scale = float(scale_of_size(length, size))
        if run_length(length, scale) != size:
            return (
                f"axis {axis} of length {length} by {scale:g} becomes {run_length(length, scale)}, not {size}"
            )
        if lengths_differ(length, scale):
            return f"for axis {axis}, onnx infers another length than {size} from {length} × {scale:g}"
        scales.append(scale)
    rw.set_input(2, rw.constant(np.array(scales, np.float32), "scales"))
    rw.set_input(3, "")
    return None


def sizes_at_run_time(rw: Rewriter, ones: int, wanted: str) -> None:
    """Replace the node's scales by sizes: the first `ones` lengths of its input, then the value `wanted`."""
    lengths = rw.before("Shape", [rw.input(0)], hint="lengths")
    bounds = [rw.constant(np.array([edge], np.int64), "bound") for edge in (0, ones)]
    kept = rw.before("Slice", [lengths, *bounds], hint="kept")
    whole = rw.before("Cast", [wanted], hint="wanted", to=TensorProto.INT64)
    rw.set_input(2, "" if rw.version >= 13 else rw.constant(np.zeros(0, np.float32), "no_scales"))
    rw.set_input(3, rw.before("Concat", [kept, whole], hint="sizes", axis=0))
