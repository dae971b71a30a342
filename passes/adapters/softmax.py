"""Softmax, LogSoftmax and Hardmax: from a flattening axis to the one axis that is normalised."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.model.rewriter import Rewriter

for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    compatible(_name, 11, reason="negative axes are allowed")


@adapter("Softmax", "LogSoftmax", "Hardmax", to=13)
def softmax_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` no longer splits the tensor into two dimensions but names the one that is normalised.

    For the last axis both are the same. Otherwise the input is flattened at `axis`, normalised over the second
    of two dimensions and given its shape back, which asks for no shape before run time.
    """
    axis = rw.get("axis", 1)
    rank = rw.rank(node.input[0])
    rw.set("axis", -1)
    if axis == -1 or (rank is not None and axis % rank == rank - 1):
        return
    source = node.input[0]
    node.input[0] = rw.before("Flatten", [source], hint="flat", axis=axis)
    shape = rw.before("Shape", [source], hint="shape")
    name = node.output[0]
    rw.after("Reshape", [rw.detach_output(0, "flat_result"), shape], [name])
