"""Softmax, LogSoftmax and Hardmax: from opset 13 on they normalise one axis, before all axes from `axis` on."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    compatible(_name, 11, reason="negative axes are allowed")


@adapter("Softmax", "LogSoftmax", "Hardmax", to=13)
def softmax_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` is the one axis that is normalised, in place of the first of those that are normalised together.

    What changes: the default of `axis` was 1 and became -1, so it is set. Where more than one axis was normalised
    together, the input is flattened at `axis`, normalised along its second axis and reshaped back; no shape needs to be
    known before run time.

    Why equal: all axes after `axis` have length 1, or Flatten produces the matrix whose rows version 11 normalises
    (onnx/defs/math/old.cc).

    An empty tensor has nothing to normalise, and keeps the axis.

    Limits: a tensor that is empty at run time alone may fail at target 13, whose Reshape has no allowzero to restore dims of 0.
    """
    source = node.input[0]
    given = rw.attribute("axis")
    if not (given and given.ref_attr_name):
        axis, shape = rw.get("axis", 1), rw.shape(source)
        if shape is not None and 0 in shape and -len(shape) <= axis < len(shape):
            rw.set("axis", axis)
            rw.note("its input is empty, so nothing is normalised")
            return
        alone = _alone(shape, axis)
        if alone is not None:
            rw.set("axis", alone)
            rw.note("all axes after the axis have length 1, so only that axis is normalised")
            return
    node.input[0] = rw.before("Flatten", [source], hint="flat")
    if given:
        rw.preceding[-1].attribute.add().CopyFrom(given)
    rw.set("axis", -1)
    dims = rw.before("Shape", [source], hint="shape")
    if rw.target >= 14:
        rw.version = 14
    name = node.output[0]
    rw.after(
        "Reshape",
        [rw.detach_output(0, "flat_result"), dims],
        [name],
        allowzero=1 if rw.target >= 14 else None,
    )
    rw.note("the input is flattened at the axis, normalised along the second axis and reshaped back")


def _alone(shape: tuple[int | None, ...] | None, axis: int) -> int | None:
    """Return the only axis from `axis` on whose length is not 1, None if there may be several."""
    if axis == -1:
        return -1
    if shape is not None and -len(shape) <= axis < len(shape) and all(dim == 1 for dim in shape[axis:][1:]):
        return axis
    return None
