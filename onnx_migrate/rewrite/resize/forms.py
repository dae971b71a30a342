"""Writes a Resize by scales, by sizes, or for all axes, if the numbers stay the same bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from onnx_migrate.rewrite.resize.spec import CROP, Axis, Known, ResizeSpec, axes_of, policy_of
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.resize import lengths_differ, run_length, samples_alike, sizes_are_lengths

__all__ = [
    "any_length_differs",
    "leave_out",
    "name_all_axes",
    "scales_of_sizes",
    "scales_to_sizes",
    "sizes_at_run_time",
    "sizes_to_scales",
    "spread_axes",
    "write_sizes",
]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]


def any_length_differs(spec: ResizeSpec) -> bool:
    """Return whether onnx infers another length for an axis of known length and scale than ONNX Runtime computes."""
    return any(
        axis.length is not None and axis.scale is not None and lengths_differ(axis.length, axis.scale)
        for axis in spec.named
    )


def leave_out(rw: Rewriter, hint: str) -> str:
    """Return the value of a roi or of scales that nothing reads: "" from opset 13 on, before that an empty constant."""
    return "" if rw.version >= 13 else rw.constant(np.zeros(0, np.float32), hint)


# Sizes for scales


def scales_to_sizes(rw: Rewriter, spec: ResizeSpec) -> str | None:
    """Write the node, whose scales are known, by sizes if that is exact and return None; else return what prevents it.

    A length that is not known is multiplied at run time if its scale is a whole number.
    """
    for axis in spec.named:
        scale = axis.scale
        if scale is None:
            return "its scales are computed at run time"
        if axis.length is None and scale != np.round(scale):
            return f"axis {axis.place} has no fixed length, and a scale of {scale:g} is no ratio of whole lengths at each"
        if axis.length is not None and not samples_alike(axis.length, scale, spec.sampling.coordinates):
            return (
                f"axis {axis.place} of length {axis.length} becomes {axis.size}, and {axis.size} / {axis.length} is not"
                f" its scale {scale:g}"
            )
    write_sizes(rw, spec.named)
    return None


def write_sizes(rw: Rewriter, axes: Sequence[Axis]) -> None:
    """Replace the node's scales by the sizes of `axes`, those that it names, which are a constant if all are known.

    A size that is not known is the length at run time times its scale, a whole number. If all of these scales are 1, and the
    opset has the attribute `axes`, the attribute names the other axes. Otherwise nodes before it compute the sizes.
    """
    sized_axes = [axis for axis in axes if axis.size is not None]
    multiplied = any(axis.size is None and axis.scale != 1 for axis in axes)
    if len(sized_axes) == len(axes):
        value = _sizes(rw, axes)
    elif rw.version >= 18 and sized_axes and not multiplied and not rw.input(1):
        rw.set("axes", [axis.place for axis in sized_axes])
        value = _sizes(rw, sized_axes)
    else:
        value = _sizes_of_lengths(rw, axes, multiplied=multiplied)
    # Resize accepts either scales or sizes, so this removes the scales.
    rw.set_input(2, leave_out(rw, "no_scales"))
    rw.set_input(3, value)


def _sizes_of_lengths(rw: Rewriter, axes: Sequence[Axis], *, multiplied: bool) -> str:
    """Write the computation of the sizes at run time before the node, and return their name."""
    axis_indices = [axis.place for axis in axes]
    # The lengths are known only at run time.
    lengths = rw.before("Shape", [rw.input(0)], hint="lengths")
    none_known = all(axis.size is None for axis in axes)
    if axis_indices != list(range(len(axes))) or (none_known and len(axes) < (rw.rank(rw.input(0)) or 0)):
        chosen = rw.constant(np.array(axis_indices, np.int64), "axes")
        lengths = rw.before("Gather", [lengths, chosen], hint="lengths", axis=0)
    if none_known:
        return rw.before("Mul", [lengths, _factors(rw, axes)], hint="sizes") if multiplied else lengths
    pieces: list[str] = []
    start = 0
    # Neighbouring axes of one kind need one Slice or one constant.
    for is_open, group in groupby(axes, lambda axis: axis.size is None):
        run = list(group)
        if is_open:
            bounds = [rw.constant(np.array([edge], np.int64), "bound") for edge in (start, start + len(run))]
            piece = rw.before("Slice", [lengths, *bounds], hint="lengths")
            if any(axis.scale != 1 for axis in run):
                piece = rw.before("Mul", [piece, _factors(rw, run)], hint="lengths")
            pieces.append(piece)
        else:
            pieces.append(_sizes(rw, run))
        start += len(run)
    return rw.before("Concat", pieces, hint="sizes", axis=0)


def _sizes(rw: Rewriter, axes: Sequence[Axis]) -> str:
    return rw.constant(np.array([axis.size for axis in axes], np.int64), "sizes")


def _factors(rw: Rewriter, axes: Sequence[Axis]) -> str:
    return rw.constant(np.array([axis.scale for axis in axes]).astype(np.int64), "factors")


def sizes_at_run_time(rw: Rewriter, ones: int, wanted: str) -> None:
    """Replace the node's scales by sizes: the first `ones` lengths of its input, then the value `wanted`."""
    lengths = rw.before("Shape", [rw.input(0)], hint="lengths")
    bounds = [rw.constant(np.array([edge], np.int64), "bound") for edge in (0, ones)]
    leading_lengths = rw.before("Slice", [lengths, *bounds], hint="kept")
    # The wanted sizes may have another integer type, and Concat needs one type.
    whole = rw.before("Cast", [wanted], hint="wanted", to=TensorProto.INT64)
    rw.set_input(2, leave_out(rw, "no_scales"))
    rw.set_input(3, rw.before("Concat", [leading_lengths, whole], hint="sizes", axis=0))


# Scales for sizes


def scales_of_sizes(axes: Sequence[Axis]) -> Floats | str:
    """Return the scales that give the sizes of `axes`, in ONNX Runtime and as onnx infers; else what prevents them."""
    for axis in axes:
        axis_index, length, size, scale = axis.place, axis.length, axis.size, axis.scale
        # An axis that stays has the scale 1.
        if axis.kept:
            continue
        if length is None or size is None or scale is None:
            return f"axis {axis_index} has no fixed length, but always becomes {size}"
        if run_length(length, scale) != size:
            return f"axis {axis_index} of length {length} by {scale:g} becomes {run_length(length, scale)}, not {size}"
        # onnx computes lengths in float64, and ONNX Runtime in float32.
        if lengths_differ(length, scale):
            return f"for axis {axis_index}, onnx infers another length than {size} from {length} × {scale:g}"
    return np.array([axis.scale for axis in axes], np.float32)


def sizes_to_scales(rw: Rewriter, spec: ResizeSpec) -> str | None:
    """Write the node, whose sizes are known, by scales if that is exact and return None; else return what prevents it."""
    if not sizes_are_lengths(policy_of(rw)):
        return "its sizes are bounds under its keep_aspect_ratio_policy"
    scales = scales_of_sizes(spec.named)
    if isinstance(scales, str):
        return scales
    rw.set_input(2, rw.constant(scales, "scales"))
    rw.set_input(3, "")
    return None


# All axes for some (attribute `axes`, since opset 18)


def name_all_axes(rw: Rewriter) -> str | None:
    """Remove the attribute `axes` and return None; else return what prevents it."""
    if rw.rank(rw.input(0)) is None:
        return "the rank of its input is not known"
    if rw.input(1):
        return "its roi is for these axes only"
    if not sizes_are_lengths(policy_of(rw)):
        return "its sizes are bounds under its keep_aspect_ratio_policy"
    spread_axes(rw, rw.constant_value)
    return None


def spread_axes(rw: Rewriter, known: Known) -> None:
    """Write roi, scales and sizes of some axes as those of all, and remove the attribute `axes`.

    The other axes get the scale 1, or their own length as size, which leaves them unchanged, and the whole as roi. Nodes put
    values that are not `known` in order at run time. Refuses with `needs-rank`.
    """
    if not rw.get("axes", []):
        rw.drop("axes")
        return
    source = rw.input(0)
    rank = rw.need_rank(source)
    # The order of `axes` is the order of the scales, so it is read before the attribute goes.
    resized_axes = axes_of(rw, rank)
    rw.drop("axes")
    if rw.get("coordinate_transformation_mode", "half_pixel") != CROP:
        rw.set_input(1, "")  # nothing reads it, so it may be of any length
    if rw.input(1):
        # A roi from 0 to 1 is the whole axis.
        ends = np.array([0, 1], helper.tensor_dtype_to_np_dtype(rw.need_dtype(rw.input(1))))
        order = [
            2 + half * len(resized_axes) + resized_axes.index(axis) if axis in resized_axes else half
            for half in (0, 1)
            for axis in range(rank)
        ]
        _put_in_order(rw, 1, known, ends, order)
    by_axis = [rank + resized_axes.index(axis) if axis in resized_axes else axis for axis in range(rank)]
    if rw.input(2):
        _put_in_order(rw, 2, known, np.ones(rank, np.float32), by_axis)
    if rw.input(3):
        shape = rw.shape(source) or ()
        others = [length for axis, length in enumerate(shape) if axis not in resized_axes]
        fixed = None not in others and known(rw.input(3)) is not None
        lengths = np.array([length or 0 for length in shape], np.int64) if fixed else None
        _put_in_order(rw, 3, known, lengths, by_axis)


def _put_in_order(rw: Rewriter, index: int, known: Known, front: Array | None, order: list[int]) -> None:
    """Give the node, at input `index`, the elements at `order` of `front` followed by the input.

    None for `front` stands for the lengths of the node's input.
    """
    first, hint = {1: ("whole", "roi"), 2: ("ones", "scales"), 3: ("lengths", "sizes")}[index]
    values = known(rw.input(index))
    if values is not None and front is not None:
        rw.set_input(index, rw.constant(np.concatenate([front, values.reshape(-1)])[order], hint))
        return
    others = rw.constant(front, first) if front is not None else rw.before("Shape", [rw.input(0)], hint=first)
    every = rw.before("Concat", [others, rw.input(index)], hint="every", axis=0)
    chosen = rw.constant(np.array(order, np.int64), "order")
    rw.set_input(index, rw.before("Gather", [every, chosen], hint=hint, axis=0))
