"""DepthToSpace and SpaceToDepth: the older versions have one order of channels, DCR."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.errors import InvalidModel
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import integers, slice_axes

_MOST_CHANNELS = 2**20
"""The most channels whose order becomes a constant."""


@lowering("DepthToSpace", leaves=11)
def depth_to_space_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`mode` does not exist: the channels are ordered as with DCR.

    What changes: the mode is dropped. For CRD the channels are put into the order of DCR in front: by one Gather where
    their number is known, else by Reshape and Transpose.

    Why equal: CRD reads channel c * b * b + i where DCR reads i * C + c (onnx/defs/tensor/defs.cc). Values are moved.

    Limits: none; where the number of channels is unknown, an empty batch is refused by Reshape when the model runs.
    """
    if rw.pop("mode", "DCR") != "CRD":
        return
    square = int(rw.get("blocksize")) ** 2
    node.input[0] = _reordered(rw, rw.input(0), [-1, square], square)
    rw.note("the channels are put into the order of mode DCR")


@lowering("SpaceToDepth", leaves=28)
def space_to_depth_28_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`mode` does not exist: the channels are ordered as with DCR.

    What changes: the mode is dropped. For CRD the channels are put into its order behind: by one Gather where their number
    is known, else by Reshape and Transpose.

    Why equal: CRD writes channel c * b * b + i where DCR writes i * C + c (onnx/defs/tensor/defs.cc). Values are moved.

    Limits: none; where the number of channels is unknown, an empty batch is refused by Reshape when the model runs.
    """
    if rw.pop("mode", "DCR") != "CRD":
        return
    square = int(rw.get("blocksize")) ** 2
    shape = rw.shape(rw.input(0))
    channels = shape[1] if shape is not None and len(shape) == 4 else None
    name = rw.output(0)
    raw = rw.detach_output(0, "dcr")
    if channels is not None and square * channels <= _MOST_CHANNELS:
        order = np.arange(square * channels).reshape(square, channels).T.reshape(-1)
        rw.after("Gather", [raw, rw.constant(order.astype(np.int64), "order")], [name], axis=1)
    else:
        whole, apart, back, split = (rw.fresh(hint) for hint in ("shape", "apart", "exchanged", "split"))
        lengths = rw.fresh("lengths")
        rw.after("Shape", [raw], [whole])
        rw.after("Slice", [whole, integers(rw, 2), integers(rw, 4), integers(rw, 0)], [lengths])
        rw.after("Concat", [integers(rw, 0, square, -1), lengths], [split], axis=0)
        rw.after("Reshape", [raw, split], [apart])
        rw.after("Transpose", [apart], [back], perm=[0, 2, 1, 3, 4])
        rw.after("Reshape", [back, whole], [name])
    rw.note("the channels are put into the order of mode CRD")


def _reordered(rw: LoweringRewriter, value: str, split: list[int], square: int) -> str:
    """Exchange the two factors of the channels, whose sizes are `split`."""
    shape = rw.shape(value)
    channels = shape[1] if shape is not None and len(shape) == 4 else None
    if channels is not None and channels % square:
        raise InvalidModel(
            f"has {channels} channels, which are not a multiple of {square}", code="invalid-node"
        )
    if channels is not None and channels <= _MOST_CHANNELS:
        order = np.arange(channels).reshape(-1, square).T.reshape(-1)
        return rw.before(
            "Gather", [value, rw.constant(order.astype(np.int64), "order")], hint="ordered", axis=1
        )
    whole = rw.before("Shape", [value], hint="shape")
    lengths = slice_axes(rw, whole, [2], [4], [0])
    parts = rw.before("Concat", [integers(rw, 0, *split), lengths], hint="split", axis=0)
    apart = rw.before("Reshape", [value, parts], hint="apart")
    exchanged = rw.before("Transpose", [apart], hint="exchanged", perm=[0, 2, 1, 3, 4])
    return rw.before("Reshape", [exchanged, whole], hint="ordered")
