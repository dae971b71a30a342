"""What the exporter of a Resize intended, where the file computes something else than the exported module did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.analysis.known_values import Producers
from onnx_migrate.analysis.scope import Scope
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.spec.resize import run_length, scale_of_size
from onnx_migrate.spec.schema import is_onnx

from ..inputs import is_from_converter
from ..node_context import ResizeNode
from ..origin import ResizeOrigin
from ..pairs import ResizePair, join_pair
from ..scales_and_sizes import sizes_at_run_time, write_sizes

__all__ = [
    "intended_lengths",
    "is_asymmetric",
    "is_converted",
    "restore_before_converter",
    "restore_coordinates",
    "restore_pytorch",
]

Floats = npt.NDArray[np.float32]


def is_converted(node: ResizeNode) -> bool:
    """Return whether onnx's version converter made a Resize of an older one and lost its coordinates."""
    return is_from_converter(node.rw) or (node.origin is not None and node.origin.written_by_converter)


def _sizes_behind(scope: Scope, producers: Producers, scales: str, source: str) -> tuple[int, str] | None:
    """Return the sizes that PyTorch's exporter computed `scales` from, if it did.

    The scales are Concat([1, 1], Div(Cast(sizes), Cast(Slice(Shape(x), 2:)))), where the first Cast may be missing.
    Returns the number of ones in front, and the name of the sizes, which are float or integer.
    """
    concat = producers.find(scope, scales)
    if concat is None or concat.op_type != "Concat" or len(concat.input) != 2:
        return None
    ones = scope.constant(concat.input[0])
    division = producers.find(scope, concat.input[1])
    if ones is None or bool((ones != 1).any()) or division is None or division.op_type != "Div":
        return None
    cast = producers.find(scope, division.input[1])
    cut = producers.find(scope, cast.input[0]) if cast is not None and cast.op_type == "Cast" else None
    shape = producers.find(scope, cut.input[0]) if cut is not None and cut.op_type == "Slice" else None
    if shape is None or shape.op_type != "Shape" or shape.input[0] != source:
        return None
    wanted = division.input[0]
    cast = producers.find(scope, wanted)
    if cast is not None and cast.op_type == "Cast" and is_onnx(cast.domain):
        wanted = cast.input[0]
    return ones.size, wanted


def intended_lengths(scales: Floats, shape: tuple[int | None, ...]) -> list[int | None] | None:
    """Return the lengths that constant scales were computed from, if one is not the length that runs; else None.

    The intended length k is the length times the scale, rounded, if float32(k / length) is that scale bit for bit.
    None in the list stands for an axis of scale 1 whose length is not known.
    """
    found: list[int | None] = []
    differs = False
    for scale, length in zip(scales, shape, strict=True):
        if length is None:
            if scale != 1:
                return None
            found.append(None)
            continue
        out = run_length(length, scale)
        near = int(np.rint(np.float64(scale) * length))
        if near != out and scale_of_size(length, near) == scale:
            differs, out = True, near
        found.append(out)
    return found if differs else None


def restore_pytorch(node: ResizeNode, pair: ResizePair | None, origin: ResizeOrigin) -> bool:
    """Write what PyTorch's interpolate computes, which its exporter could not express up to opset 10.

    Returns whether output lengths may have changed.
    """
    rw = node.rw
    if pair is not None:
        join_pair(rw, pair, origin, "floor")
        rw.note("PyTorch's nearest interpolation rounds down on every axis", Exactness.ASSUMED)
    elif rw.get("mode", "nearest") == "nearest" and rw.get("nearest_mode") == "ceil":
        rw.set("nearest_mode", "floor")
        rw.note("PyTorch's nearest interpolation rounds down on every axis", Exactness.ASSUMED)
    else:
        restore_coordinates(node)
    return _write_intended_sizes(node)


def is_asymmetric(node: onnx.NodeProto) -> bool:
    """Return whether a node of opset 11 or newer is a linear Resize with asymmetric coordinates."""
    values = {attribute.name: attribute.s for attribute in node.attribute}
    return values.get("mode") == b"linear" and values.get("coordinate_transformation_mode") == b"asymmetric"


def restore_coordinates(node: ResizeNode) -> None:
    """Write half_pixel for a linear Resize that PyTorch's exporter could only write as asymmetric."""
    if is_asymmetric(node.rw.node):
        node.rw.set("coordinate_transformation_mode", "half_pixel")
        node.rw.note("PyTorch's linear interpolation is half_pixel without align_corners", Exactness.ASSUMED)


def _write_intended_sizes(node: ResizeNode) -> bool:
    """Write the sizes that the scales were computed from, if these are recognised; return whether they were."""
    rw, shape = node.rw, node.shape
    if not rw.input(2) or rw.input(3):
        return False
    wanted = _sizes_behind(rw.scope, node.producers, rw.input(2), rw.input(0))
    if wanted is not None:
        ones, name = wanted
        lengths = node.known.value(name)
        if lengths is not None:
            front = shape[:ones] if shape is not None else (None,) * ones
            sizes = [*front, *map(int, lengths)]
            write_sizes(rw, sizes, [1] * len(sizes), shape or (None,) * len(sizes))
        else:
            sizes_at_run_time(rw, ones, name)
        rw.note("its scales were computed from sizes, which are written instead", Exactness.ASSUMED)
        return True
    scales = node.known.value(rw.input(2))
    if scales is None or shape is None or len(scales) != len(shape):
        return False
    intended = intended_lengths(scales, shape)
    if intended is None:
        return False
    write_sizes(rw, intended, [1] * len(intended), shape)
    rw.note(
        "its scales are quotients of lengths that run to one element less, so the lengths are written instead",
        Exactness.ASSUMED,
    )
    return True


def restore_before_converter(node: ResizeNode, *, from_pytorch: bool) -> None:
    """Write what a node computed before onnx's version converter, if that follows from its scales."""
    rw = node.rw
    mode = rw.get("mode", "nearest")
    if mode not in ("nearest", "linear") or (mode == "linear" and from_pytorch):
        return  # PyTorch's linear is half_pixel, which the node computes again by accident
    if mode == "nearest":
        scales = node.known.value(rw.input(2)) if rw.input(2) else None
        down = scales is not None and bool((scales < 1).any()) and not from_pytorch
        if scales is None or (down and bool((scales > 1).any())):
            return  # it rounded up on some axes and down on others, or the scales are not known
        rw.set("nearest_mode", "ceil" if down else "floor")
    rw.set("coordinate_transformation_mode", "asymmetric")
    rw.set_input(1, "" if rw.version >= 13 else rw.constant(np.zeros(0, np.float32), "roi"))
    rw.note("the asymmetric coordinates that onnx's version converter lost are restored", Exactness.ASSUMED)
    if node.origin is not None:
        rw.record_fact(replace(node.origin, written_by_converter=False))
