"""What the exporter meant: the module that was exported computed something else than the file says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from onnx_migrate.analysis.known_values import Producers
from onnx_migrate.analysis.scope import Scope
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.spec.resize import run_length, scale_of_size
from onnx_migrate.spec.schema import is_onnx

from .inputs import is_from_converter
from .node_context import ResizeNode
from .origin import ResizeOrigin
from .pairs import ResizePair, join_pair
from .scales_and_sizes import sizes_at_run_time, write_sizes

__all__ = [
    "as_before_converter",
    "as_pytorch",
    "converted",
    "meant_lengths",
]

Floats = npt.NDArray[np.float32]


def converted(node: ResizeNode) -> bool:
    """Return whether onnx's version converter made a Resize of an older one and lost its coordinates."""
    return is_from_converter(node.rw) or (node.origin is not None and node.origin.written_by_converter)


def _wanted_sizes(scope: Scope, producers: Producers, scales: str, source: str) -> tuple[int, str] | None:
    """Recognise the scales that PyTorch's exporter computes from a size.

    They are Concat([1, 1], Div(Cast(size), Cast(Slice(Shape(x), 2:)))), where the first Cast may be missing.
    Returns how many ones stand in front and the value that holds the wanted lengths (float or integer).
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


def meant_lengths(scales: Floats, shape: tuple[int | None, ...]) -> list[int | None] | None:
    """Return the lengths that constant scales were computed from, where they run as others; else None.

    k is meant if it is the length times the scale, rounded, and float32(k / length) is that scale to the bit.
    None stands for an axis of scale 1 whose length is not known.
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


def as_pytorch(node: ResizeNode, pair: ResizePair | None, origin: ResizeOrigin) -> tuple[set[str], bool]:
    """Write what PyTorch's interpolate computes; its exporter up to opset 10 had no word for it.

    Returns the outputs of nodes that are no longer needed, and whether lengths may have changed.
    """
    rw = node.rw
    gone: set[str] = set()
    if pair is not None:
        gone = join_pair(rw, pair, origin, "floor")
        rw.note("PyTorch's nearest rounds down on every axis", Exactness.ASSUMED)
    elif rw.get("mode", "nearest") == "nearest" and rw.get("nearest_mode") == "ceil":
        rw.set("nearest_mode", "floor")
        rw.note("PyTorch's nearest rounds down on every axis", Exactness.ASSUMED)
    elif rw.get("mode") == "linear" and rw.get("coordinate_transformation_mode") == "asymmetric":
        rw.set("coordinate_transformation_mode", "half_pixel")
        rw.note("PyTorch's linear interpolation is half_pixel without align_corners", Exactness.ASSUMED)
    return gone, _meant_sizes(node)


def _meant_sizes(node: ResizeNode) -> bool:
    rw, shape = node.rw, node.shape
    if not rw.input(2) or rw.input(3):
        return False
    wanted = _wanted_sizes(rw.scope, node.producers, rw.input(2), rw.input(0))
    if wanted is not None:
        ones, name = wanted
        lengths = node.known.value(name)
        if lengths is not None:
            sizes = [None] * ones + [int(length) for length in lengths]
            known = list(shape[:ones]) if shape is not None else [None] * ones
            write_sizes(rw, [*known, *sizes[ones:]], [1] * len(sizes), shape or (None,) * len(sizes))
        else:
            sizes_at_run_time(rw, ones, name)
        rw.note("the scales were computed from a size, and the size is what was meant", Exactness.ASSUMED)
        return True
    scales = node.known.value(rw.input(2))
    if scales is None or shape is None or len(scales) != len(shape):
        return False
    meant = meant_lengths(scales, shape)
    if meant is None:
        return False
    write_sizes(rw, meant, [1] * len(meant), shape)
    rw.note("the scales are a length over a length, and run to one less than that", Exactness.ASSUMED)
    return True


def as_before_converter(node: ResizeNode, *, pytorch: bool) -> None:
    """Write what a node computed before onnx's version converter, where its roi still tells."""
    rw = node.rw
    mode = rw.get("mode", "nearest")
    if mode not in ("nearest", "linear") or (mode == "linear" and pytorch):
        return  # PyTorch's linear is half_pixel: the converter put right what the exporter had lost
    if mode == "nearest":
        scales = node.known.value(rw.input(2)) if rw.input(2) else None
        down = scales is not None and bool((scales < 1).any()) and not pytorch
        if scales is None or (down and bool((scales > 1).any())):
            return  # two roundings, or nobody knows which: the older model is needed
        rw.set("nearest_mode", "ceil" if down else "floor")
    rw.set("coordinate_transformation_mode", "asymmetric")
    rw.set_input(1, "" if rw.version >= 13 else rw.constant(np.zeros(0, np.float32), "roi"))
    rw.note("computes again what it did before onnx's version converter", Exactness.ASSUMED)
    if node.origin is not None:
        rw.record_fact(replace(node.origin, written_by_converter=False))
