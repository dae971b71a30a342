"""Resize and Upsample downwards: modes, axes and policies that older versions lack, empty inputs, scales as an attribute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import Op
from onnx_migrate.plugins import Exactness, LoweringRewriter, lowering
from onnx_migrate.rewrite.resize.forms import scales_of_sizes, spread_axes
from onnx_migrate.rewrite.resize.spec import CROP, Axis, ResizeSpec, Sampling, policy_of, read_sampling
from onnx_migrate.standard.resize import scale_of_size, sizes_are_lengths

from .resize_reading import read_lowered, resampled
from .resize_sampling import sampled_alike
from .resize_taps import axis_values, resampled_by_taps

_TAPS = "it is written as Gathers of the elements that it samples, with their weights"
_FROZEN = (
    "it is written as Gathers of the elements that it samples, with their weights, for these lengths alone"
)


@lowering("Resize", leaves=19)
def resize_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """half_pixel_symmetric does not exist; it equals half_pixel if each length is a scale times the old one.

    What changes: half_pixel_symmetric becomes half_pixel with sizes, and with scales that are powers of two. It also becomes
    half_pixel if all lengths are known and both sample alike. Otherwise Gathers replace the Resize, see version 11.

    Why equal: half_pixel_symmetric moves half_pixel by half the input's length times 1 - size / (scale * length). That is 0 if
    the size is that product (onnx/defs/tensor/old.cc). Bit for bit, except with sizes in modes linear and cubic, where
    coordinates differed by 1.2e-7 in measurements.

    Limits: the rank must be known, unless sizes or scales alone decide. Antialias also needs all lengths.
    """
    sampling = read_sampling(rw)
    if sampling.coordinates != "half_pixel_symmetric":
        return
    scales = rw.known(rw.input(2))
    # With a power of two of at least 1, the size is exactly the length times the scale.
    if scales is not None and scales.size and bool(((np.frexp(scales)[0] == 0.5) & (scales >= 1)).all()):
        rw.set("coordinate_transformation_mode", "half_pixel")
        return
    by_sizes = rw.input(3) and not rw.input(2) and not rw.get("keep_aspect_ratio_policy")
    if by_sizes and sampling.mode != "nearest" and rw.rank(rw.input(0)) is None:
        _write_half_pixel(rw)
        return
    op, spec = Op(rw), read_lowered(rw)
    if spec.copies or _sampled_alike(op, spec, replace(sampling, coordinates="half_pixel")):
        rw.set("coordinate_transformation_mode", "half_pixel")
        return
    if by_sizes and sampling.mode != "nearest":
        _write_half_pixel(rw)
        return
    _write(op, spec)


def _write_half_pixel(rw: LoweringRewriter) -> None:
    rw.set("coordinate_transformation_mode", "half_pixel")
    rw.note("half_pixel computes the coordinates of half_pixel_symmetric by sizes", Exactness.EQUIVALENT)


@lowering("Resize", leaves=18)
def resize_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`antialias`, `axes` and `keep_aspect_ratio_policy` do not exist.

    What changes: roi, scales and sizes are given for all axes. Sizes that are bounds become the scales or lengths that the
    policy computes from them. With antialias, an axis that shrinks becomes Gathers of all elements that its filter reaches,
    with the weights.

    Why equal: ONNX Runtime's kernel sets scale 1 for the other axes and one scale for all under a policy (upsamplebase.h). Bit
    for bit, except for antialias: 7e-6 of elements up to 9 measured, since its filter has coordinates of its own.

    With exclude_outside and lengths known only at run time, nodes compute a matrix of weights and multiply each axis by it. The
    matrix lets infinities and NaN reach all elements along the axis.

    Limits: a policy, and antialias without exclude_outside, need constant sizes or scales and fixed lengths. onnx-migrate
    refuses antialias of integers, since the kernel computes it in fixed point. The rank must be known for axes.
    """
    sampling, op = read_sampling(rw), Op(rw)
    if sampling.antialias and not _grows(rw, sampling):
        _write_antialiased(op, read_lowered(rw))
        return
    if sampling.antialias:
        rw.note("antialias changes nothing where no axis shrinks", Exactness.EQUIVALENT)
    rw.drop("antialias")
    if not sizes_are_lengths(policy_of(rw)) and rw.input(3):
        spec = read_lowered(rw)
        scales = scales_of_sizes(spec.axes)
        if not isinstance(scales, str):
            rw.set_input(3, "")
            spread_axes(rw, rw.known)
            rw.set_input(2, rw.constant(scales, "scales"))
        elif all(axis.kept or _is_of_size(axis) for axis in spec.named):
            rw.set_input(3, rw.constant(np.array([axis.size for axis in spec.named], np.int64), "sizes"))
        else:
            _write(op, spec)
            return
    rw.drop("keep_aspect_ratio_policy")
    spread_axes(rw, rw.known)


def _is_of_size(axis: Axis) -> bool:
    """Return whether an axis has the scale that follows from its size."""
    if axis.length is None or axis.size is None:
        return False
    return bool(scale_of_size(axis.length, axis.size) == axis.scale)


@lowering("Resize", leaves=13)
def resize_13_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`roi` and `scales` must be there: an empty tensor replaces an omitted one.

    What changes: an empty float32 constant is written for each that is missing.

    Why equal: Resize-11 reads no roi except for tf_crop_and_resize, and uses sizes if scales are empty
    (onnx/defs/tensor/old.cc).

    Limits: none, except for tf_crop_and_resize without a roi. ONNX Runtime reads that as the whole input; the rank must be
    known.
    """
    if not rw.input(1):
        whole = np.zeros(0, np.float32)
        if rw.get("coordinate_transformation_mode") == "tf_crop_and_resize":
            rank = rw.need_rank(rw.input(0))
            whole = np.array([0] * rank + [1] * rank, np.float32)
        rw.set_input(1, rw.constant(whole, "roi"))
    if not rw.input(2):
        rw.set_input(2, rw.constant(np.zeros(0, np.float32), "scales"))


@lowering("Resize", leaves=11)
def resize_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Resize-10 computes asymmetric coordinates and rounds down where an axis grows, up where it shrinks; it has no sizes.

    What changes: a Resize that samples so keeps its scales alone; sizes become scales that give the same lengths. Gathers of
    the sampled elements replace any other Resize, and in modes linear and cubic a sum by weights. If lengths or scales are
    known only at run time, nodes compute indices and weights there.

    Why equal: a Resize treats each axis separately, and lengths and scale decide which elements it samples. Indices and weights
    are computed in float32 as ONNX Runtime's kernel does (upsample.cc), and sums are in its order. The result is equal bit for
    bit, with one exception. If an axis of unknown length stays beside one that is resized, it differs by 2.4e-7 of the largest
    element. NaN and infinities reach the same elements as in the kernel. Integers and halves are computed in float32, as in the
    kernel.

    Limits: the rank must be known. onnx-migrate refuses align_corners and tf_crop_and_resize with scales that give no whole
    length, since runtimes and the standard disagree then. If nothing is known of the four axes of a linear or cubic Resize, all
    axes but the first are resampled. ONNX Runtime copies the input if no length changes although a scale is above 1. The
    Gathers for unknown lengths sample then, as the standard's text says.
    """
    sampling = read_sampling(rw)
    scales = rw.known(rw.input(2))
    if scales is not None and scales.size:
        as_it_is = _is_old(sampling, scales.astype(np.float32))
    else:
        as_it_is = sampling.mode == "linear" and sampling.coordinates == "asymmetric" and not rw.input(3)
    if as_it_is and rw.input(2):
        _keep_scales(rw, rw.input(2))
        return
    op, spec = Op(rw), read_lowered(rw)
    if spec.copies:
        rw.become("Identity", [rw.input(0)])
        rw.note("no length changes, so it copies its input")
        return
    _refuse_parts_of_elements(rw, spec)
    old = replace(sampling, coordinates="asymmetric", rounding="simple")
    if sampling.mode != "cubic" and _sampled_alike(op, spec, old):
        constant_scales = spec.scales if not spec.by_sizes else scales_of_sizes(spec.axes)
        if constant_scales is not None and not isinstance(constant_scales, str):
            _keep_scales(rw, rw.constant(constant_scales, "scales"))
            return
    _write(op, spec)


@np.errstate(all="ignore")
def _sampled_alike(op: Op, spec: ResizeSpec, new: Sampling) -> bool:
    """Return whether another way to sample is known to read the same elements with the same weights."""
    if not all(axis.fixed for axis in resampled(spec)):
        return False
    return all(sampled_alike(op, axis, spec.sampling, new) for axis in axis_values(op, spec))


def _refuse_parts_of_elements(rw: LoweringRewriter, spec: ResizeSpec) -> None:
    """Refuse scales that give no whole length if coordinates depend on it.

    ONNX Runtime computes with the length rounded down, and the standard's reference with the product.
    """
    kind = spec.sampling.coordinates
    if spec.by_sizes or kind not in ("align_corners", CROP):
        return
    for axis in spec.axes:
        if axis.kept:
            continue
        length, scale = axis.length, axis.scale
        if scale is None:
            rw.need_constant(2, f"scales, with coordinate_transformation_mode={kind},")
            continue
        product = float(scale) * (1 if length is None else length)
        # A float32 scale such as 4/3 hardly ever gives an exact product.
        if abs(product - round(product)) > 1e-3:
            rw.refuse(
                f"coordinate_transformation_mode={kind} has no equal below opset {rw.version + 1}. The scale"
                f" {scale:g} of {'an unknown length' if length is None else f'a length of {length}'} gives no whole number of"
                " elements, so runtimes and the standard compute different coordinates",
                code="needs-shape" if length is None else "no-equal",
                hint="give sizes in place of scales",
            )


def _keep_scales(rw: LoweringRewriter, scales: str) -> None:
    """Write a Resize-10 by these scales."""
    rw.drop(
        "coordinate_transformation_mode",
        "nearest_mode",
        "cubic_coeff_a",
        "exclude_outside",
        "extrapolation_value",
    )
    del rw.node.input[1:]
    rw.set_input(1, scales)


def _is_old(sampling: Sampling, scales: npt.NDArray[np.float32]) -> bool:
    """Return whether Resize-10 samples alike by these scales, for any lengths."""
    if sampling.mode == "linear":
        return sampling.coordinates == "asymmetric" or bool((scales == 1).all())
    if sampling.mode != "nearest":
        return False
    whole = bool((scales == np.round(scales)).all()) and bool((scales <= 64).all())
    if sampling.coordinates == "asymmetric":
        if sampling.rounding == "floor":
            return bool((scales >= 1).all())
        if sampling.rounding == "ceil":
            return bool((scales <= 1).all())
        return sampling.rounding == "round_prefer_floor" and whole and bool((scales <= 2).all())
    half = sampling.coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
    return half and whole and sampling.rounding in ("round_prefer_floor", "round_prefer_ceil")


@lowering("Resize", leaves=10)
def resize_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Resize becomes Upsample, which computes the same, but supports no scale below 1.

    What changes: with constant scales of 1 and more the operator becomes Upsample. A linear Resize with scales known only at
    run time becomes Upsample, too. Gathers replace any other Resize, see version 11.

    Why equal: ONNX Runtime computes both with one kernel (upsample.cc), which refuses Upsample with a scale below 1.

    Limits: onnx-migrate assumes that linear with scales known only at run time does not shrink. ONNX Runtime stops with an
    error if it does.
    """
    linear = rw.get("mode", "nearest") == "linear"
    scales = rw.known(rw.input(1))
    if scales is not None and bool((scales >= 1).all()):
        rw.rename("Upsample")
        return
    if scales is None and linear:
        rw.rename("Upsample")
        rw.note(
            "Upsample needs scales of at least 1, and its scales are computed at run time", Exactness.ASSUMED
        )
        return
    op, spec = Op(rw), read_lowered(rw)
    if spec.copies:
        rw.become("Identity", [rw.input(0)])
        return
    _write(op, spec)


def _grows(rw: LoweringRewriter, sampling: Sampling) -> bool:
    """Return whether no axis shrinks, so that antialias changes nothing."""
    scales = rw.known(rw.input(2))
    if scales is None or not scales.size or (sampling.exclude_outside and sampling.mode == "linear"):
        return False
    return bool((scales >= 1).all())


def _write_antialiased(op: Op, spec: ResizeSpec) -> None:
    rw = op.rw
    _refuse_parts_of_elements(rw, spec)
    axes = resampled(spec)
    if not spec.sampling.exclude_outside and not all(axis.fixed for axis in axes):
        index, name = (3, "sizes") if spec.by_sizes else (2, "scales")
        if any((axis.size if spec.by_sizes else axis.scale) is None for axis in axes):
            rw.need_constant(index, f"{name}, with antialias=1,")
        rw.refuse(
            "antialias=1 does not exist below opset 18, and its filter depends on lengths known only at run time",
            code="needs-shape",
            hint=FIX_DIMS,
        )
    dtype = rw.need_dtype(rw.input(0))
    if dtype not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
        rw.refuse(
            "antialias=1 does not exist below opset 18, and of integers it is computed in fixed point",
            code="no-equal",
            hint="cast its input to float in the model",
        )
    _write(op, spec)


def _write(op: Op, spec: ResizeSpec) -> None:
    """Write the Resize as Gathers."""
    axes = resampled(spec)
    op.end(resampled_by_taps(op, spec))
    fixed = all(axis.fixed for axis in axes)
    axis_numbers = {axis.place for axis in axes}
    in_order = spec.sampling.mode == "nearest" or axis_numbers in (
        {0, 1},
        {1, 2},
        {2, 3},
        {0, 1, 2},
        {2, 3, 4},
    )
    exact = in_order and not spec.sampling.antialias
    op.note(_FROZEN if fixed else _TAPS, None if exact else Exactness.EQUIVALENT)


@lowering("Upsample", leaves=9)
def upsample_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`scales` move from an input to an attribute.

    Why equal: the changelog of version 9 moves them and changes nothing else.

    Limits: they must be constants.
    """
    scales = rw.need_constant(1, "scales")
    if not scales.size:
        rw.refuse("its scales are empty", code="bad-scales", hint="one is required for every axis")
    rw.set_input(1, "")
    rw.set("scales", [float(scale) for scale in scales.reshape(-1)])
