"""Tile: from the number of copies along one axis to one number per axis (opset 6)."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.plural import count_of
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Tile", 13, reason="more types are allowed")


@adapter("Tile", to=6)
def tile_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`tiles` and `axis`, scalars of the data's type, become `repeats`, one number per axis.

    What changes: where the rank, `tiles` or `axis` is known only at run time, OneHot (opset 9) computes `repeats`.
    """
    data, tiles, axis = node.input
    rank, count, place = rw.rank(data), rw.constant_value(tiles), rw.constant_value(axis)
    if rank is not None and count is not None and place is not None:
        if count.size != 1 or place.size != 1 or not -rank <= place.item() < rank:
            rw.refuse(
                f"its tiles are {count.tolist()} and its axis is {place.tolist()}, for an input of {count_of(rank, 'axis')}",
                code="invalid-node",
                hint="each is one number",
            )
        repeats = np.ones(rank, np.int64)
        repeats[int(place.item())] = int(count.item())
        rw.set_input(2, "")
        rw.set_input(1, rw.constant(repeats, "repeats"))
        return
    if rw.target < 9:
        rw.refuse(
            "the rank of its input, `tiles` or `axis` is known only at run time, and computing `repeats` takes opset 9",
            code="needs-rank",
            hint="target opset 9 or newer",
        )
    rw.version = 9
    flat = rw.constant(np.array([-1]), "flat")
    count_1d, place_1d = (
        rw.before("Reshape", [rw.before("Cast", [value], hint=hint, to=TensorProto.INT64), flat], hint=hint)
        for value, hint in ((tiles, "tiles"), (axis, "axis"))
    )
    values = rw.before("Concat", [rw.constant(np.array([1]), "one"), count_1d], hint="values", axis=0)
    depth = rw.before("Shape", [rw.before("Shape", [data], hint="shape")], hint="rank")
    hot = rw.before("OneHot", [place_1d, depth, values], hint="hot")
    rw.set_input(2, "")
    rw.set_input(1, rw.before("Reshape", [hot, flat], hint="repeats"))
