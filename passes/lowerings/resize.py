"""Resize downwards: modes, axes and policies that older versions lack, and the empty inputs that version 11 requires."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.spec.resize import scale_of_size

from ..resize.lowered.given import Given, modes_of, read_given, sampled_alike, spread_axes, write_scales
from ..resize.lowered.sampling import Axis, Modes
from ..resize.lowered.taps import end_with, write_taps
from .folding import Folding

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
    modes = modes_of(rw)
    if modes.coordinates != "half_pixel_symmetric":
        return
    scales = rw.known(rw.input(2))
    if scales is not None and scales.size and bool(((np.frexp(scales)[0] == 0.5) & (scales >= 1)).all()):
        rw.set("coordinate_transformation_mode", "half_pixel")
        return
    by_sizes = rw.input(3) and not rw.input(2) and not rw.get("keep_aspect_ratio_policy")
    if by_sizes and modes.mode != "nearest" and rw.rank(rw.input(0)) is None:
        _write_half_pixel(rw)
        return
    f = Folding(rw)
    given = read_given(rw, modes)
    axes = given.axes(f)
    half_pixel = replace(modes, coordinates="half_pixel")
    if given.copies or (
        all(axis.fixed for axis in axes) and all(sampled_alike(f, axis, modes, half_pixel) for axis in axes)
    ):
        rw.set("coordinate_transformation_mode", "half_pixel")
        return
    if by_sizes and modes.mode != "nearest":
        _write_half_pixel(rw)
        return
    _write(rw, f, given, axes)


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
    modes = modes_of(rw)
    policy = str(rw.get("keep_aspect_ratio_policy", "stretch"))
    f = Folding(rw)
    if modes.antialias and not _grows(rw, modes):
        _write_antialiased(rw, f, read_given(rw, modes))
        return
    if modes.antialias:
        rw.note("antialias changes nothing where no axis shrinks", Exactness.EQUIVALENT)
    rw.drop("antialias")
    if policy != "stretch" and rw.input(3):
        given = read_given(rw, modes)
        if write_scales(given):
            scales = [given.scales[place] for place in given.places]
            rw.set_input(2, rw.constant(np.array(scales, np.float32), "scales"))
            rw.set_input(3, "")
        elif all(
            kept or (length is not None and size is not None and scale_of_size(length, size) == scale)
            for kept, length, size, scale in zip(
                given.kept, given.shape, given.sizes, given.scales, strict=True
            )
        ):
            sizes = [given.sizes[place] for place in given.places]
            rw.set_input(3, rw.constant(np.array(sizes, np.int64), "sizes"))
        else:
            _write(rw, f, given, given.axes(f))
            return
    rw.drop("keep_aspect_ratio_policy")
    spread_axes(rw)


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
    modes = modes_of(rw)
    rw.drop(
        "coordinate_transformation_mode",
        "nearest_mode",
        "cubic_coeff_a",
        "exclude_outside",
        "extrapolation_value",
    )
    old = replace(modes, coordinates="asymmetric", rounding="simple")
    scales = rw.known(rw.input(2))
    by_scales = scales is not None and scales.size > 0
    if by_scales and scales is not None and _is_old(modes, scales.astype(np.float32)):
        _keep_scales(rw, rw.input(2))
        return
    if (
        not by_scales
        and modes.mode == "linear"
        and modes.coordinates == "asymmetric"
        and not rw.input(3)
        and rw.input(2)
    ):
        _keep_scales(rw, rw.input(2))
        return
    f = Folding(rw)
    given = read_given(rw, modes)
    if given.copies:
        end_with(rw, rw.input(0))
        rw.note("no length changes, so it copies its input")
        return
    _refuse_parts_of_elements(given)
    axes = given.axes(f)
    if (
        modes.mode != "cubic"
        and all(axis.fixed for axis in axes)
        and all(sampled_alike(f, axis, modes, old) for axis in axes)
        and write_scales(given)
    ):
        _keep_scales(rw, rw.input(1))
        return
    _write(rw, f, given, axes)


def _refuse_parts_of_elements(given: Given) -> None:
    """Refuse scales that give no whole length, where coordinates depend on it.

    ONNX Runtime computes with the length rounded down, and the standard's reference with the product.
    """
    rw, kind = given.rw, given.modes.coordinates
    if given.by_sizes or kind not in ("align_corners", "tf_crop_and_resize"):
        return
    for kept, length, scale in zip(given.kept, given.shape, given.scales, strict=True):
        if kept:
            continue
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
    del rw.node.input[1:]
    rw.set_input(1, scales)


def _is_old(modes: Modes, scales: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> bool:
    """Return whether Resize-10 samples alike by these scales, whatever the lengths are."""
    if modes.mode == "linear":
        return modes.coordinates == "asymmetric" or bool((scales == 1).all())
    if modes.mode != "nearest":
        return False
    whole = bool((scales == np.round(scales)).all()) and bool((scales <= 64).all())
    if modes.coordinates == "asymmetric":
        if modes.rounding == "floor":
            return bool((scales >= 1).all())
        if modes.rounding == "ceil":
            return bool((scales <= 1).all())
        return modes.rounding == "round_prefer_floor" and whole and bool((scales <= 2).all())
    half = modes.coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
    return half and whole and modes.rounding in ("round_prefer_floor", "round_prefer_ceil")


@lowering("Resize", leaves=10)
def resize_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Resize becomes Upsample, which computes the same, but takes no scale below 1.

    What changes: with constant scales of 1 and more the operator is called Upsample. Any other Resize is written as
    Gathers, see version 11; but linear with scales known only at run time becomes Upsample, too.

    Why equal: ONNX Runtime computes both with one kernel (upsample.cc), which refuses Upsample with a scale below 1.

    Limits: linear with scales known only at run time is assumed not to shrink; ONNX Runtime stops with an error if it does.
    """
    modes = Modes(str(rw.get("mode", "nearest")), "asymmetric", "simple", -0.75, False, 0.0, False)
    scales = rw.known(rw.input(1))
    if scales is not None and bool((scales >= 1).all()):
        rw.rename("Upsample")
        return
    if scales is None and modes.mode == "linear":
        rw.rename("Upsample")
        rw.note("Upsample takes no scale below 1, and its scales are computed at run time", Exactness.ASSUMED)
        return
    f = Folding(rw)
    given = read_given(rw, modes)
    if given.copies:
        end_with(rw, rw.input(0))
        return
    _write(rw, f, given, given.axes(f))


def _grows(rw: LoweringRewriter, modes: Modes) -> bool:
    """Return whether no axis shrinks, so that antialias changes nothing."""
    scales = rw.known(rw.input(2))
    if scales is None or not scales.size or (modes.exclude_outside and modes.mode == "linear"):
        return False
    return bool((scales >= 1).all())


def _write_antialiased(rw: LoweringRewriter, f: Folding, given: Given) -> None:
    _refuse_parts_of_elements(given)
    axes = given.axes(f)
    if not given.modes.exclude_outside and not all(axis.fixed for axis in axes):
        unknown = given.sizes if given.by_sizes else given.scales
        if any(unknown[axis.place] is None for axis in axes):
            index = 3 if given.by_sizes else 2
            rw.need_constant(index, ("sizes" if given.by_sizes else "scales") + ", with antialias=1,")
        rw.refuse(
            "antialias=1 does not exist below opset 18, and its filter depends on lengths known only at run time",
            code="needs-shape",
            hint="fix the dims of the model's inputs with --fix",
        )
    dtype = rw.need_dtype(rw.input(0))
    if dtype not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE):
        rw.refuse(
            "antialias=1 does not exist below opset 18, and of integers it is computed in fixed point",
            code="no-equal",
            hint="cast its input to float in the model",
        )
    _write(rw, f, given, axes)


def _write(rw: LoweringRewriter, f: Folding, given: Given, axes: list[Axis]) -> None:
    write_taps(rw, f, axes, given.modes)
    fixed = all(axis.fixed for axis in axes)
    places = {axis.place for axis in axes}
    in_order = given.modes.mode == "nearest" or places in ({0, 1}, {1, 2}, {2, 3}, {0, 1, 2}, {2, 3, 4})
    exact = in_order and not given.modes.antialias
    rw.note(_FROZEN if fixed else _TAPS, None if exact else Exactness.EQUIVALENT)
