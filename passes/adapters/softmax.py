"""Softmax, LogSoftmax and Hardmax: from a flattening axis to the one axis that is normalised."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    compatible(_name, 11, reason="negative axes are allowed")


@adapter("Softmax", "LogSoftmax", "Hardmax", to=13)
def softmax_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` no longer splits the tensor into two dimensions but names the one that is normalised.

    What changes: the default was 1 and became -1, so the axis is written out. Where more than one axis was
    normalised together, the input is flattened there, normalised along its second dimension and given its
    shape back; that needs no shape before run time.

    Why equal: every axis behind `axis` has one element, or Flatten makes the very matrix whose rows version
    11 normalised (onnx/defs/math/old.cc).

    Limits: a tensor without elements may fail at target 13, whose Reshape cannot write every dim of 0.
    """
    source = node.input[0]
    given = rw.attribute("axis")
    if not (given and given.ref_attr_name):
        axis = rw.get("axis", 1)
        alone = _alone(rw.shape(source), axis)
        if alone is not None:
            rw.set("axis", alone)
            rw.note("nothing is behind the axis but dims of 1, so it is the one that is normalised")
            return
    node.input[0] = rw.before("Flatten", [source], hint="flat")
    if given:
        rw.preceding[-1].attribute.add().CopyFrom(given)
    rw.set("axis", -1)
    shape = rw.before("Shape", [source], hint="shape")
    if rw.target >= 14:
        rw.version = 14
    name = node.output[0]
    rw.after(
        "Reshape",
        [rw.detach_output(0, "flat_result"), shape],
        [name],
        allowzero=1 if rw.target >= 14 else None,
    )
    rw.note("flattened at the axis, normalised along the second dimension and shaped back")


def _alone(shape: tuple[int | None, ...] | None, axis: int) -> int | None:
    """Return the one axis that normalising all from `axis` on comes to, None if there may be several."""
    if axis == -1:
        return -1
    if shape is not None and -len(shape) <= axis < len(shape) and all(dim == 1 for dim in shape[axis:][1:]):
        return axis
    return None
