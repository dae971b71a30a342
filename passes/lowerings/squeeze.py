"""Squeeze and Unsqueeze: below opset 13 the axes are an attribute."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Squeeze", "Unsqueeze", leaves=13, types=LostTypes.EXACT)
def axes_13_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axes` moves from an input to an attribute.

    What changes: constant axes become the attribute. Without axes, or with an empty list of them, Squeeze removes every
    axis of length 1 before and after. With axes that are computed at run time, the new shape is computed and the node
    becomes a Reshape.

    Why equal: the changelog of version 13 moves the attribute and changes nothing else. ONNX Runtime reads an empty list as
    no list.

    Limits: a Reshape to a computed shape takes a 0 in it for the input's length at the same place, so axes at run time
    are taken under the assumption that no tensor is empty.
    """
    axes = rw.known(rw.input(1)) if rw.input(1) else None
    if rw.input(1) and axes is None:
        rw.use_at_run_time(1, "axes")
        (_squeeze if node.op_type == "Squeeze" else _unsqueeze)(node, rw)
        empty = "" if _never_empty(rw) else ", if the tensor is not empty"
        rw.note(
            f"axes at run time: a Reshape to the computed shape{empty}",
            Exactness.ASSUMED if empty else None,
        )
        return
    rw.set_input(1, "")
    if axes is not None and axes.size:
        rw.set("axes", [int(axis) for axis in axes.reshape(-1)])
    elif node.op_type == "Unsqueeze":
        rw.rename("Identity")


def _never_empty(rw: LoweringRewriter) -> bool:
    return all(rw.shape(rw.input(0)) or (0,)) or rw.shape(rw.input(0)) == ()


def _marks(rw: LoweringRewriter, count: str) -> str:
    """Write a vector of `count` zeros (a shape) with ones at the places that the axes name."""
    import numpy as np

    axes = rw.before("Reshape", [rw.input(1), rw.constant(np.array([-1]), "line")], hint="axes")
    zeros = rw.before("ConstantOfShape", [count], hint="zeros", value=_tensor(0))
    ones = rw.before(
        "ConstantOfShape", [rw.before("Shape", [axes], hint="count")], hint="ones", value=_tensor(1)
    )
    return rw.before("ScatterElements", [zeros, axes, ones], hint="marks")


def _tensor(value: int) -> TensorProto:
    return onnx.helper.make_tensor("", TensorProto.INT64, [1], [value])


def _squeeze(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The new shape has the lengths that are not marked."""
    shape = rw.before("Shape", [rw.input(0)], hint="shape")
    marks = _marks(rw, rw.before("Shape", [shape], hint="rank"))
    kept = rw.before("Not", [rw.before("Cast", [marks], to=TensorProto.BOOL)], hint="kept")
    rw.set_input(1, rw.before("Compress", [shape, kept], hint="kept_shape", axis=0))
    rw.rename("Reshape")


def _unsqueeze(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The new shape has 1 at the marked places, and the lengths one after another at the others."""
    import numpy as np

    one = rw.constant(np.array([1]), "one")
    shape = rw.before("Shape", [rw.input(0)], hint="shape")
    flat = rw.before("Reshape", [rw.input(1), rw.constant(np.array([-1]), "line")], hint="axes")
    added = rw.before("Shape", [flat], hint="added")
    rank = rw.before("Add", [rw.before("Shape", [shape], hint="rank"), added], hint="new_rank")
    free = rw.before("Sub", [one, _marks(rw, rank)], hint="free")
    axis = rw.constant(np.array(0), "axis")
    # Counts the free places from 1; a marked one is 0, the place of the 1 in front of the lengths.
    place = rw.before("Mul", [rw.before("CumSum", [free, axis], hint="count"), free], hint="place")
    lengths = rw.before("Concat", [one, shape], hint="lengths", axis=0)
    rw.set_input(1, rw.before("Gather", [lengths, place], hint="new_shape", axis=0))
    rw.rename("Reshape")
