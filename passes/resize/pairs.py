"""The two nodes that an adapter wrote for one nearest Resize-10: recognises them, and joins them again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.analysis.known_values import Producers
from onnx_migrate.analysis.scope import Scope
from onnx_migrate.rewrite.rewriter import Rewriter

from .node_context import ResizeNode
from .origin import ResizeOrigin

__all__ = ["ResizePair", "join_pair", "pair_of"]


@dataclass(frozen=True)
class ResizePair:
    """The nodes that a nearest Resize-10 became whose scales shrink and grow, and what it read."""

    nodes: tuple[onnx.NodeProto, ...]
    """From the last to the first: Gather and Unsqueeze (see `prevent_copy`), if any, around the two Resizes."""
    data: str
    scales: str | npt.NDArray[np.float32]
    """The scales of the Resize-10, or their name, if they are computed at run time."""


def pair_of(node: ResizeNode) -> ResizePair | None:
    """Return the pair that the adapter wrote for one node, if `node` is its last one."""
    if node.origin is None or not node.origin.split_in_two:
        return None  # two in a row may be the model's own
    return _find_pair(node.rw.scope, node.producers, node.rw.node)


def join_pair(rw: Rewriter, pair: ResizePair, origin: ResizeOrigin, nearest_mode: str) -> None:
    """Make the last node of a pair the one Resize that it came from, with this nearest_mode; drop the other nodes."""
    roi = pair.nodes[-1].input[1]
    rw.drop(*(attribute.name for attribute in list(rw.node.attribute)))
    rw.rename("Resize")
    rw.node.name = origin.name
    rw.where = replace(rw.where, node=origin.name or rw.first_output)
    rw.record_fact(replace(origin, split_in_two=False))
    scales = pair.scales if isinstance(pair.scales, str) else rw.constant(pair.scales, "scales")
    del rw.node.input[:]
    rw.node.input.extend([pair.data, roi, scales])
    rw.set("coordinate_transformation_mode", "asymmetric")
    rw.set("mode", "nearest")
    rw.set("nearest_mode", nearest_mode)
    rw.supersede(*(output for node in pair.nodes[1:] for output in node.output))


def _find_pair(scope: Scope, producers: Producers, last: onnx.NodeProto) -> ResizePair | None:
    """Follow the first inputs upwards from `last`, the growing Resize or the Gather behind it."""
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
        # On each axis one of the two scales is 1, so the product is the original scale.
        return ResizePair(tuple(nodes), small.input[0], shrink * growth[1 if guarded else 0 :])
    least = producers.find(scope, small.input[2])
    if least is None or least.op_type != "Min":
        return None
    return ResizePair(tuple(nodes), small.input[0], least.input[0])


def _append(nodes: list[onnx.NodeProto], node: onnx.NodeProto | None) -> None:
    if node is not None:
        nodes.append(node)


def _text(node: onnx.NodeProto, name: str) -> str:
    return next((attribute.s.decode() for attribute in node.attribute if attribute.name == name), "")
