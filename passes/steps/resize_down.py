"""Resize and Upsample downwards: modes, axes and policies that older versions lack, empty inputs, scales as an attribute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import Op
from onnx_migrate.plugins import Exactness, LoweringRewriter, lowering
from onnx_migrate.standard.resize import scale_of_size, sizes_are_lengths

from ..resize.forms import scales_of_sizes, spread_axes
from ..resize.spec import CROP, Axis, ResizeSpec, Sampling, policy_of, read_sampling
from .resize_reading import read_lowered, resampled
from .resize_sampling import sampled_alike
from .resize_taps import axis_values, resampled_by_taps

_TAPS = "it is written as Gathers of the elements that it samples, with their weights"
_FROZEN = (
    "it is written as Gathers of the elements that it samples, with their weights, for these lengths alone"
)


@lowering("Resize", leaves=19)
def resize_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """half_pixel_symmetric does not exist; it is half_pixel where each length is a scale times the old one.

    What changes: half_pixel_symmetric becomes half_pixel with sizes, with scales that are powers of two, and where all
    lengths are known and both sample alike. Else the Resize is written as Gathers, see version 11.

    Why equal: half_pixel_symmetric moves half_pixel by half the input's length times 1 - size / (scale * length), which
    is 0 if the size is that product (onnx/defs/tensor/old.cc). Bit for bit but with sizes in modes linear and cubic,
    where 1.2e-7 of a coordinate was measured.

    Limits: the rank must be known, unless sizes or scales alone decide; with antialias all lengths, too.
    """
    sampling = read_sampling(rw)
    if sampling.coordinates != "half_pixel_symmetric":
        return
    scales = rw.known(rw.input(2))
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

    What changes: roi, scales and sizes are given for all axes. Sizes that are bounds become the scales, or the lengths,
    that the policy makes of them. With antialias, an axis that shrinks is written as Gathers of all that its filter
    reaches, with the weights.

    Why equal: ONNX Runtime's kernel sets scale 1 for the other axes and one scale for all under a policy
    (upsamplebase.h). Bit for bit, but antialias: 7e-6 of elements up to 9 measured, since its filter has coordinates of its own.

    With exclude_outside and lengths known only at run time, each axis is multiplied by a matrix of weights computed there;
    infinities and NaN then spread along it.

    Limits: a policy, and antialias without exclude_outside, need constant sizes or scales and fixed lengths. Antialias of
    integers is refused, since the kernel computes it in fixed point. The rank must be known for axes.
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
    """Return whether the scale of an axis is that which its size stands for."""
    if axis.length is None or axis.size is None:
        return False
    return bool(scale_of_size(axis.length, axis.size) == axis.scale)


@lowering("Resize", leaves=13)
def resize_13_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`roi` and `scales` cannot be left out: what is not given is an empty tensor.

    What changes: an empty float32 constant is written for each that is missing.

    Why equal: Resize-11 reads no roi but for tf_crop_and_resize, and takes sizes where scales are empty
    (onnx/defs/tensor/old.cc).

    Limits: none; for tf_crop_and_resize without a roi, which ONNX Runtime takes as the whole, the rank must be known.
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

    What changes: a Resize that samples so keeps its scales alone, with sizes those that give the same lengths. Any other
    is written as Gathers of the elements that it samples and, in modes linear and cubic, a sum by weights. Where
    lengths or scales are known only at run time, indices and weights are computed there.

    Why equal: a Resize treats each axis by itself, and lengths and scale decide what it samples. Indices and weights are
    computed in float32 as ONNX Runtime's kernel does (upsample.cc), and sums are in its order: bit for bit, but where
    an axis of unknown length stays as it is beside one that is resized, 2.4e-7 of the largest element. NaN and
    infinities reach what they reach in the kernel. Integers and halves are computed in float32, as in the kernel.

    Limits: the rank must be known. align_corners and tf_crop_and_resize with scales are refused where these give no whole
    length, since runtimes and the standard disagree then. Of four axes in linear and cubic of which nothing is known, all
    but the first are resampled. ONNX Runtime copies the input where no length changes although a scale is above 1; the
    Gathers of lengths that are unknown sample then, as the standard's text says.
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
        given = spec.scales if not spec.by_sizes else scales_of_sizes(spec.axes)
        if given is not None and not isinstance(given, str):
            _keep_scales(rw, rw.constant(given, "scales"))
            return
    _write(op, spec)


@np.errstate(all="ignore")
def _sampled_alike(op: Op, spec: ResizeSpec, new: Sampling) -> bool:
    """Return whether another way to sample is known to take the same elements with the same weights."""
    if not all(axis.fixed for axis in resampled(spec)):
        return False
    return all(sampled_alike(op, axis, spec.sampling, new) for axis in axis_values(op, spec))


def _refuse_parts_of_elements(rw: LoweringRewriter, spec: ResizeSpec) -> None:
    """Refuse scales that give no whole length, where coordinates depend on it.

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
        if abs(product - round(product)) > 1e-3:
            rw.refuse(
                f"coordinate_transformation_mode={kind} must be written otherwise below opset {rw.version + 1}, and"
                f" by the scale {scale:g} of {'an unknown length' if length is None else f'a length of {length}'} runtimes and"
                " the standard compute different coordinates, as no whole number of elements results",
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
    """Return whether Resize-10 samples alike by these scales, whatever the lengths are."""
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
    """Resize becomes Upsample, which computes the same, but takes no scale below 1.

    What changes: with constant scales of 1 and more the operator is called Upsample. Any other Resize is written as
    Gathers, see version 11; but linear with scales known only at run time becomes Upsample, too.

    Why equal: ONNX Runtime computes both with one kernel (upsample.cc), which refuses Upsample with a scale below 1.

    Limits: linear with scales known only at run time is assumed not to shrink; ONNX Runtime stops with an error if it does.
    """
    linear = rw.get("mode", "nearest") == "linear"
    scales = rw.known(rw.input(1))
    if scales is not None and bool((scales >= 1).all()):
        rw.rename("Upsample")
        return
    if scales is None and linear:
        rw.rename("Upsample")
        rw.note("Upsample takes no scale below 1, and its scales are computed at run time", Exactness.ASSUMED)
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
        index, what = (3, "sizes") if spec.by_sizes else (2, "scales")
        if any((axis.size if spec.by_sizes else axis.scale) is None for axis in axes):
            rw.need_constant(index, f"{what}, with antialias=1,")
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
    places = {axis.place for axis in axes}
    in_order = spec.sampling.mode == "nearest" or places in ({0, 1}, {1, 2}, {2, 3}, {0, 1, 2}, {2, 3, 4})
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
