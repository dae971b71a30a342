"""Steps of Upsample and Resize up to opset 13.

Scales become an input (9). Resize replaces Upsample (10). Coordinates and rounding become attributes (11). Unused inputs are
omitted (13).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.advice import FIX_DIMS, Advice
from onnx_migrate.messages import count_of
from onnx_migrate.plugins import Exactness, Rewriter, adapter, compatible
from onnx_migrate.rewrite.resize.inputs import (
    check_choice,
    check_count,
    check_scales_or_sizes,
    check_sizes,
    is_from_converter,
    read_scales,
)
from onnx_migrate.rewrite.resize.pairs import (
    ResizeOrigin,
    prevent_copy,
    split_at_run_time,
    split_by_constants,
    write_asymmetric,
)
from onnx_migrate.rewrite.resize.spec import CROP, ResizeSpec, emptiness, read_resize
from onnx_migrate.standard.resize import may_keep_all_lengths

compatible(
    "Resize",
    18,
    reason="antialias, axes and keep_aspect_ratio_policy were added; their defaults are the behaviour of older versions",
)
compatible("Resize", 19, reason="half_pixel_symmetric was added, and more types for the optional inputs")


@adapter("Upsample", to=7)
def upsample_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`height_scale` and `width_scale` of an NCHW image become a scale per axis, bilinear becomes linear."""
    rank = rw.rank(node.input[0])
    if rank not in (4, None):
        rw.refuse(
            f"its scales are of height and width, but its input has {count_of(rank, 'axis')}",
            code="bad-scales",
            hint="Upsample-1 needs an NCHW image, which has 4",
        )
    rw.set("mode", _mode(rw))
    rw.set("scales", _valid(rw, [1.0, 1.0, float(rw.pop("height_scale")), float(rw.pop("width_scale"))]))


@adapter("Upsample", to=9)
def upsample_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`scales` moves from an attribute to an input."""
    attribute = rw.attribute("scales")
    if attribute is not None and not attribute.ref_attr_name:
        scales, rank = _valid(rw, list(attribute.floats)), rw.rank(node.input[0])
        if rank not in (len(scales), None):
            rw.refuse(
                f"its scales have {count_of(len(scales), 'element')}, but its input has {count_of(rank, 'axis')}",
                code="bad-scales",
                hint="one is required for every axis",
            )
    rw.attribute_to_input("scales", 1)


@adapter("Upsample", to=10)
def upsample_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Upsample is a Resize with asymmetric coordinates that rounds down.

    What changes: the operator. From opset 11 on the node also gets coordinates and rounding, since the defaults there differ
    (half_pixel, round_prefer_floor).

    Why equal: ONNX Runtime computes both with one kernel, and Upsample with x_original = x / scale and floor (upsamplebase.h).
    Resize-10 rounds up on an axis that shrinks. A nearest Upsample therefore goes to Resize-11 in one step, and stays at opset
    10 only if no axis shrinks.
    """
    mode = _mode(rw)
    scales = read_scales(rw, node.input[1])
    rw.record_fact(ResizeOrigin(version=9, name=node.name, unchecked=rw.rank(node.input[0]) is None))
    rw.rename("Resize")
    rw.set("mode", mode)
    if rw.target >= 11:
        write_asymmetric(rw, node.input[1], "floor")
        return
    if mode == "nearest" and (scales is None or bool((scales < 1).any())):
        rw.refuse(
            "nearest Upsample rounds down on an axis that may shrink, and Resize-10 rounds up",
            code="no-equal",
            hint=Advice(
                "Resize of opset 11 and later can round down: choose one as the target", options={"opset": 11}
            ),
        )


@adapter("Resize", to=11)
def resize_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Coordinates and rounding are set: asymmetric, and for nearest up on a shrinking axis and down on a growing one.

    What changes: both are set, since the defaults from opset 11 on are half_pixel and round_prefer_floor. A node has one
    rounding for all axes. A nearest Resize becomes two if it shrinks one axis and grows another, or if its scales are computed
    at run time. The first one shrinks, the second one grows.

    Why equal: ONNX Runtime's Resize-10 kernel (upsamplebase.h, GetNearestPixelFromOriginal: ceil for scale < 1). An axis with a
    scale below 1 always gets shorter. One with a scale above 1 may keep its length (scale below 1 + 1/length). If all axes keep
    theirs, ONNX Runtime copies the input without computing coordinates. To prevent that, the growing node doubles an additional
    first axis, and a Gather selects its first slice. No shape needs to be known.
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
    origin = ResizeOrigin(version=10, name=node.name, unchecked=unchecked)
    if not split:
        rw.record_fact(origin)
        shrinks = scales is not None and bool((scales < 1).any())
        write_asymmetric(rw, node.input[1], "ceil" if shrinks else "floor")
    elif scales is None:
        split_at_run_time(rw, origin)
    else:
        split_by_constants(rw, origin, scales)


@adapter("Resize", to=13)
def resize_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`roi`, `scales` and `sizes` are omitted if they are not used, which opset 13 allows.

    What changes: a roi is kept for tf_crop_and_resize only, the one mode that uses it. `scales` is omitted if `sizes` is given,
    and an empty `sizes` is omitted, because from opset 13 on a runtime may refuse both. The mode tf_half_pixel_for_nn was
    removed; other modes replace it.

    Why equal: Resize-11 requires empty scales beside sizes (onnx/defs/tensor/old.cc), and Resize-13 omitted ones. ONNX Runtime
    reads the roi for tf_crop_and_resize only, and refuses scales beside sizes (upsamplebase.h).

    Limits: tf_half_pixel_for_nn with scales or sizes that are computed at run time becomes half_pixel, which may round a tie
    differently (equivalent). With nearest_mode ceil or round_prefer_ceil, onnx-migrate refuses the node.
    """
    check_choice(rw, "mode")
    coordinates = check_choice(rw, "coordinate_transformation_mode")
    rounding = check_choice(rw, "nearest_mode")
    converted = is_from_converter(rw)
    unchecked = rw.rank(rw.input(0)) is None
    rw.record_fact(
        ResizeOrigin(version=11, name=node.name, written_by_converter=converted, unchecked=unchecked)
    )
    if coordinates == CROP:
        check_count(rw, rw.input(1), "roi", code="bad-roi")
    elif rw.input(1):
        rw.note("its roi is omitted, since only tf_crop_and_resize uses it")
        if converted:
            rw.note(
                "its roi [0…, 1…] without coordinates shows that onnx's version converter wrote it for an older Resize"
            )
        rw.set_input(1, "")
    no_scales, no_sizes = emptiness(rw, rw.input(2)), emptiness(rw, rw.input(3))
    check_scales_or_sizes(rw, neither=bool(no_scales and no_sizes), both=no_scales is False and not no_sizes)
    if no_sizes:
        rw.set_input(3, "")
        read_scales(rw, rw.input(2))
    else:
        rw.set_input(2, "")
        rw.note("its scales are omitted, since sizes are given")
        check_sizes(rw, rw.input(3))
    if coordinates in rw.keep:
        rw.note(f"{coordinates} is kept (--keep-resize-mode), although the standard removed it with opset 13")
    elif coordinates == "tf_half_pixel_for_nn":
        if rw.get("mode", "nearest") != "nearest":
            rw.refuse("tf_half_pixel_for_nn is defined for the mode nearest only", code="no-equal")
        _half_pixel_for_nn(rw, rounding, read_resize(rw, rw.constant_value))


def _half_pixel_for_nn(rw: Rewriter, rounding: str, spec: ResizeSpec | None) -> None:
    """Write tf_half_pixel_for_nn, which samples at (x + 0.5) / scale, with the modes of opset 13.

    With floor it is half_pixel, (x + 0.5) / scale - 0.5, with round_prefer_ceil; with round_prefer_floor it is half_pixel
    with ceil. The subtraction can round a float across a tie, but not if the scale is an integer or a power of two.
    With every rounding it equals, bit for bit, asymmetric at position 2x + 1 with twice the scale.
    """
    scales = None if spec is None else spec.scales
    new = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(rounding)
    plain = scales is not None and bool(((scales == np.round(scales)) | (np.frexp(scales)[0] == 0.5)).all())
    copied = None if spec is None or scales is None else _copies(spec, scales)
    if new and (plain or copied is None):
        rw.set("coordinate_transformation_mode", "half_pixel")
        rw.set("nearest_mode", new)
        reason = f"half_pixel with {new} computes what tf_half_pixel_for_nn with {rounding} did"
        rw.note(reason, None if plain else Exactness.EQUIVALENT)
    elif spec is None or scales is None or copied is None:
        unknown = "its scales" if scales is None else "the lengths of its input"
        rw.refuse(
            f"tf_half_pixel_for_nn with {rounding} was removed with opset 13, and to replace it {unknown} must be known"
            " before run time",
            code="needs-value" if scales is None else "needs-shape",
            hint=(
                FIX_DIMS,
                Advice("stay at opset 12", options={"opset": 12}),
                Advice(
                    "keep it with --keep-resize-mode tf_half_pixel_for_nn",
                    options={"keep_resize_mode": ("tf_half_pixel_for_nn",)},
                ),
            ),
        )
    elif copied:
        rw.rename("Identity")
        rw.drop(*(attribute.name for attribute in list(rw.node.attribute)))
        del rw.node.input[1:]
        rw.note("no length changes, so ONNX Runtime copies the input, which Identity does")
    else:
        _write_twice_as_long(rw, spec, scales)


def _copies(spec: ResizeSpec, scales: npt.NDArray[np.float32]) -> bool | None:
    """Return whether no length changes, so that ONNX Runtime copies the input; None if unknown lengths decide."""
    if bool((scales == 1).all()):
        return True
    if bool((scales < 1).any()) or not may_keep_all_lengths(scales):
        return False
    return None if any(axis.length is None for axis in spec.axes) else spec.copies


def _write_twice_as_long(rw: Rewriter, spec: ResizeSpec, scales: npt.NDArray[np.float32]) -> None:
    """Write an asymmetric Resize by twice the scales or sizes, and a Slice of the elements at odd indices."""
    changed = np.flatnonzero(scales != 1)
    factor = np.where(scales != 1, 2, 1)
    rw.set("coordinate_transformation_mode", "asymmetric")
    twice = scales * factor.astype(np.float32)
    # ONNX Runtime copies its input, and samples nothing, if no length changes.
    guarded = bool((twice >= 1).all()) and may_keep_all_lengths(twice)
    wide = np.array([axis.size for axis in spec.named]) * factor if spec.by_sizes else twice
    if guarded:
        wide = np.concatenate([np.array([2], wide.dtype), wide])
    rw.set_input(3 if spec.by_sizes else 2, rw.constant(wide, "twice"))
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
    rw.note("resized to twice the lengths; the elements at odd indices are those of tf_half_pixel_for_nn")


def _mode(rw: Rewriter) -> str:
    mode = {"bilinear": "linear"}.get(rw.get("mode", "nearest"), rw.get("mode", "nearest"))
    if mode not in (
        "nearest",
        "linear",
        "cubic",
    ):  # ONNX Runtime runs cubic, though the standard came to it later.
        rw.refuse(
            f"attribute mode has the unknown value {mode!r}",
            code="no-such-mode",
            hint="the standard has nearest and linear",
        )
    return str(mode)


def _valid(rw: Rewriter, scales: list[float]) -> list[float]:
    if not all(0 < scale < math.inf for scale in scales):
        rw.refuse(f"its scales are {scales}", code="bad-scales", hint="each must be finite and above 0")
    return scales
