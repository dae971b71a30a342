"""What the exporter meant: the module that was exported computed something else than the file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.model.change import Change
from onnx_migrate.model.schema import is_onnx
from onnx_migrate.model.scope import Scope

from .known import Producers
from .lengths import run_length

__all__ = ["Pair", "find_pair", "from_before_11", "meant_lengths", "wanted_sizes"]

Floats = npt.NDArray[np.float32]


def from_before_11(changes: Mapping[tuple[str, str], Change], scope: Scope, node: onnx.NodeProto) -> bool:
    """Tell whether a node's output came from an Upsample, or from a Resize of version 10."""
    change = changes.get((scope.path, node.output[0]))
    if change is None:
        return False
    operator = change.before.op_type
    return operator == "Upsample" or (operator == "Resize" and change.version_before == 10)


@dataclass(frozen=True)
class Pair:
    """The nodes that a nearest Resize-10 became whose scales shrink and grow, last first; what it read."""

    nodes: tuple[onnx.NodeProto, ...]
    source: str
    scales: str | Floats
    """The value it took its scales from, or the scales, where they were constant."""


def find_pair(scope: Scope, producers: Producers, last: onnx.NodeProto) -> Pair | None:
    """Return the pair that ends in `last`: a Resize, or the Gather behind one that is kept from copying."""
    nodes = [last]
    if last.op_type == "Gather":
        _append(nodes, producers.find(scope, last.input[0]))
    grow = nodes[-1]
    if grow.op_type != "Resize" or _text(grow, "nearest_mode") != "floor":
        return None
    guarded = len(nodes) == 2
    if guarded:
        _append(nodes, producers.find(scope, grow.input[0]))
        if nodes[-1].op_type != "Unsqueeze":
            return None
    small = producers.find(scope, nodes[-1].input[0])
    if small is None or small.op_type != "Resize" or _text(small, "nearest_mode") != "ceil":
        return None
    nodes.append(small)
    shrink, growth = scope.constant(small.input[2]), scope.constant(grow.input[2])
    if shrink is not None and growth is not None:
        # One factor of each product is 1.
        return Pair(tuple(nodes), small.input[0], shrink * growth[1 if guarded else 0 :])
    least = producers.find(scope, small.input[2])
    if least is None or least.op_type != "Min":
        return None
    return Pair(tuple(nodes), small.input[0], least.input[0])


def _append(nodes: list[onnx.NodeProto], node: onnx.NodeProto | None) -> None:
    if node is not None:
        nodes.append(node)


def _text(node: onnx.NodeProto, name: str) -> str:
    return next((attribute.s.decode() for attribute in node.attribute if attribute.name == name), "")


def wanted_sizes(scope: Scope, producers: Producers, scales: str, source: str) -> tuple[int, str] | None:
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
        if near != out and length and np.float32(near) / np.float32(length) == scale:
            differs, out = True, near
        found.append(out)
    return found if differs else None
