"""Resize: coordinates and rounding become attributes (11), inputs that are not read are left out (13)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.resize import may_keep_all_lengths, run_length, scale_of_size

from ..resize.asymmetric import prevent_copy, split_at_run_time, split_by_constants, write_asymmetric
from ..resize.inputs import (
    check_choice,
    check_roi,
    check_scales_or_sizes,
    emptiness,
    is_from_converter,
    read_scales,
    read_sizes,
)
from ..resize.origin import ResizeOrigin

Floats = npt.NDArray[np.float32]

compatible(
    "Resize",
    18,
    reason="antialias, axes and keep_aspect_ratio_policy were added; their defaults are the behaviour of older versions",
)
compatible("Resize", 19, reason="half_pixel_symmetric was added, and more types for the optional inputs")


@adapter("Resize", to=11)
def resize_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Coordinates and rounding are set: asymmetric, and for nearest up on a shrinking axis and down on a growing one.

    What changes: both are set, since the defaults from opset 11 on are half_pixel and round_prefer_floor. A node has one
    rounding for all axes, so a nearest Resize that shrinks one axis and grows another, or whose scales are computed at
    run time, becomes two: the first shrinks, the second grows.

    Why equal: ONNX Runtime's Resize-10 kernel (upsamplebase.h, GetNearestPixelFromOriginal: ceil for scale < 1). An
    axis with a scale below 1 always gets shorter. One with a scale above 1 may keep its length (scale below
    1 + 1/length), and where all axes do, ONNX Runtime copies the input without computing coordinates. To prevent that,
    the growing node doubles an additional first axis, of which the first slice is taken; no shape needs to be known.
    """
    mode = check_choice(rw, "mode")
    scales = read_scales(rw, node.input[1])
    if scales is not None and not scales.size:
        if rw.rank(node.input[0]) != 0:
            rw.refuse(
                "its scales are empty", code="bad-scales", hint="a Resize needs one scale for each axis"
            )
        rw.rename("Identity")  # of a scalar: empty scales would say from opset 11 on that there are none
        rw.drop("mode")
        rw.set_input(1, "")
        return
    one_way = scales is not None and bool((scales >= 1).all() or (scales <= 1).all())
    split = mode == "nearest" and not one_way
    unchecked = rw.rank(node.input[0]) is None
    rw.record_fact(ResizeOrigin(version=10, name=node.name, split_in_two=split, unchecked=unchecked))
    if not split:
        shrinks = scales is not None and bool((scales < 1).any())
        write_asymmetric(rw, node.input[1], "ceil" if shrinks else "floor")
    elif scales is None:
        split_at_run_time(rw)
    else:
        split_by_constants(rw, scales)


@adapter("Resize", to=13)
def resize_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`roi`, `scales` and `sizes` are omitted where they are not used, which opset 13 allows.

    What changes: a roi is kept for tf_crop_and_resize only, the one mode that uses it. `scales` is omitted if `sizes` is
    given, and an empty `sizes` is omitted, because from opset 13 on a runtime may refuse both. The mode
    tf_half_pixel_for_nn was removed and is written with other modes.

    Why equal: Resize-11 requires empty scales where sizes are given (onnx/defs/tensor/old.cc), and Resize-13 omitted
    ones; ONNX Runtime reads the roi for tf_crop_and_resize only, and refuses scales beside sizes (upsamplebase.h).

    Limits: tf_half_pixel_for_nn with scales or sizes that are computed at run time is written as half_pixel, which may
    round a tie differently (equivalent), and is refused with nearest_mode ceil or round_prefer_ceil.
    """
    check_choice(rw, "mode")
    coordinates = check_choice(rw, "coordinate_transformation_mode")
    rounding = check_choice(rw, "nearest_mode")
    converted = is_from_converter(rw)
    unchecked = rw.rank(rw.input(0)) is None
    rw.record_fact(
        ResizeOrigin(version=11, name=node.name, written_by_converter=converted, unchecked=unchecked)
    )
    if coordinates == "tf_crop_and_resize":
        check_roi(rw, rw.input(1))
    elif rw.input(1):
        rw.note("its roi is omitted, since only tf_crop_and_resize uses it")
        if converted:
            rw.note(
                "its roi [0…, 1…] without coordinates shows that onnx's version converter wrote it for an older Resize"
            )
        rw.set_input(1, "")
    scales = sizes = None
    no_scales, no_sizes = emptiness(rw, rw.input(2)), emptiness(rw, rw.input(3))
    check_scales_or_sizes(rw, neither=bool(no_scales and no_sizes), both=no_scales is False and not no_sizes)
    if no_sizes:
        rw.set_input(3, "")
        scales = read_scales(rw, rw.input(2))
    else:
        rw.set_input(2, "")
        rw.note("its scales are omitted, since sizes are given")
        sizes = read_sizes(rw, rw.input(3))
    if coordinates in rw.keep:
        rw.note(f"{coordinates} is kept (--keep), although the standard removed it with opset 13")
    elif coordinates == "tf_half_pixel_for_nn":
        if rw.get("mode", "nearest") != "nearest":
            rw.refuse("tf_half_pixel_for_nn is defined for the mode nearest only", code="no-equal")
        if sizes is not None:
            scales = _scales_of(sizes, rw.shape(rw.input(0)))
        _half_pixel_for_nn(rw, rounding, scales, sizes)


def _scales_of(sizes: npt.NDArray[np.int64], shape: tuple[int | None, ...] | None) -> Floats | None:
    """Return the scales that ONNX Runtime computes from sizes; None if a length is unknown."""
    if shape is None or None in shape:
        return None
    pairs = zip(shape, sizes.tolist(), strict=True)
    return np.array([scale_of_size(length or 0, size) for length, size in pairs], np.float32)


def _half_pixel_for_nn(
    rw: Rewriter, rounding: str, scales: Floats | None, sizes: npt.NDArray[np.int64] | None
) -> None:
    """Write tf_half_pixel_for_nn, which samples at (x + 0.5) / scale, with the modes of opset 13.

    With floor it is half_pixel, (x + 0.5) / scale - 0.5, with round_prefer_ceil; with round_prefer_floor it is half_pixel
    with ceil. The subtraction can round a float across a tie, but not if the scale is an integer or a power of two.
    With every rounding it equals, bit for bit, asymmetric at position 2x + 1 with twice the scale.
    """
    new = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(rounding)
    plain = scales is not None and bool(((scales == np.round(scales)) | (np.frexp(scales)[0] == 0.5)).all())
    copied = None if scales is None else _copies(rw, scales, sizes)
    if new and (plain or copied is None):
        rw.set("coordinate_transformation_mode", "half_pixel")
        rw.set("nearest_mode", new)
        reason = f"half_pixel with {new} computes what tf_half_pixel_for_nn with {rounding} did"
        rw.note(reason, None if plain else Exactness.EQUIVALENT)
    elif scales is None or copied is None:
        unknown = "its scales" if scales is None else "the lengths of its input"
        rw.refuse(
            f"tf_half_pixel_for_nn with {rounding} was removed with opset 13, and to replace it {unknown} must be known"
            " before run time",
            code="needs-value" if scales is None else "needs-shape",
            hint="fix the model's input dims, stay at opset 12, or keep it with --keep tf_half_pixel_for_nn",
        )
    elif copied:
        rw.rename("Identity")
        rw.drop(*(attribute.name for attribute in list(rw.node.attribute)))
        del rw.node.input[1:]
        rw.note("no length changes, so ONNX Runtime copies the input, which Identity does")
    else:
        _write_twice_as_long(rw, scales, sizes)


def _copies(rw: Rewriter, scales: Floats, sizes: npt.NDArray[np.int64] | None) -> bool | None:
    """Return whether no length changes, so that ONNX Runtime copies the input; None if unknown lengths decide."""
    if bool((scales == 1).all()):
        return True
    if bool((scales < 1).any()) or not may_keep_all_lengths(scales):
        return False
    shape = rw.shape(rw.input(0))
    if shape is None or None in shape:
        return None
    if sizes is not None:
        return bool((sizes == np.array(shape)).all())
    return all(run_length(length or 0, scale) == length for length, scale in zip(shape, scales, strict=True))


def _write_twice_as_long(rw: Rewriter, scales: Floats, sizes: npt.NDArray[np.int64] | None) -> None:
    """Write an asymmetric Resize by twice the scales or sizes, and a Slice that takes the elements at odd indices."""
    changed = np.flatnonzero(scales != 1)
    factor = np.where(scales != 1, 2, 1)
    rw.set("coordinate_transformation_mode", "asymmetric")
    rw.version = max(rw.version, 13)
    twice = scales * factor.astype(np.float32)
    guarded = bool((twice >= 1).all()) and may_keep_all_lengths(twice)
    if sizes is None:
        wide: npt.NDArray[np.float32] | npt.NDArray[np.int64] = twice
    else:
        wide = sizes * factor
    if guarded:
        wide = np.concatenate([np.array([2], wide.dtype), wide])
    rw.set_input(2 if sizes is None else 3, rw.constant(wide, "twice"))
    if guarded:
        prevent_copy(rw)
        output, inner = rw.following[-1].output[0], rw.fresh("wide")
        rw.following[-1].output[0] = inner
    else:
        output, inner = rw.node.output[0], rw.detach_output(0, "wide")
    ones = np.ones(len(changed), np.int64)
    slices = (
        ("starts", ones),
        ("ends", ones * np.iinfo(np.int64).max),
        ("axes", changed.astype(np.int64)),
        ("steps", ones * 2),
    )
    rw.after("Slice", [inner, *(rw.constant(array, hint) for hint, array in slices)], [output])
    rw.note(
        "resized to twice the lengths, of which the elements at odd indices are those of tf_half_pixel_for_nn"
    )
