"""GroupNormalization, LayerNormalization, LRN, MeanVarianceNormalization, LpNormalization and RMSNormalization."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("LRN", 13, reason="more types are allowed")
compatible("LpNormalization", 22, reason="more types are allowed")
compatible(
    "LayerNormalization",
    17,
    reason="before 17 the operator is ONNX Runtime's own, which computes both with one kernel",
)


@adapter("SimplifiedLayerNormalization", to=23)
def simplified_layer_normalization_23(node: onnx.NodeProto, rw: Rewriter) -> None:
    """SimplifiedLayerNormalization, which is ONNX Runtime's own, is written as RMSNormalization of the standard.

    What changes: the name. A node whose second output is there stays, as RMSNormalization has none.

    Why equal: attributes and defaults are the same, and ONNX Runtime computes both with one kernel
    (onnxruntime/core/providers/cpu/nn/layer_norm_impl.cc).
    """
    if len(node.output) < 2 or not node.output[1]:
        del node.output[1:]
        rw.rename("RMSNormalization")


@adapter("MeanVarianceNormalization", to=13)
def mean_variance_normalization_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axes` is set to its default if it was omitted.

    What changes: no number. onnx's strict shape inference expands the operator's function, which does not contain the
    default, and refuses the model without it (onnx 1.23).
    """
    if rw.attribute("axes") is None:
        rw.set("axes", [0, 2, 3])


@adapter("GroupNormalization", to=21)
def group_normalization_21(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`scale` and `bias` are repeated, since they have one value per channel in place of one per group.

    What changes: constants are repeated by the migration, other values by Expand at run time. For doubles `stash_type`
    is set to double, since its default is float.

    Why equal: the function bodies of both versions (onnx/defs/nn). For half floats version 18 leaves the precision
    open, and ONNX Runtime computes in float, the default from version 21 on.
    """
    if rw.need_dtype(node.input[0]) == TensorProto.DOUBLE:
        rw.set("stash_type", int(TensorProto.DOUBLE))
    shape = rw.shape(node.input[0])
    channels = shape[1] if shape is not None else None
    sizes = ""
    for index, hint in ((1, "scale"), (2, "bias")):
        value = rw.constant_value(node.input[index])
        if value is not None and channels is not None:
            node.input[index] = rw.constant(np.repeat(value, channels // value.size), hint)
            continue
        sizes = sizes or _group_sizes(rw)
        column = rw.before(
            "Unsqueeze", [node.input[index], rw.constant(np.array([1]), "column")], hint=f"{hint}_column"
        )
        matrix = rw.before("Expand", [column, sizes], hint=f"{hint}_matrix")
        node.input[index] = rw.before("Reshape", [matrix, rw.constant(np.array([-1]), "flat")], hint=hint)


def _group_sizes(rw: Rewriter) -> str:
    """Return the value [groups, channels per group]."""
    groups = rw.before("Shape", [rw.node.input[1]], hint="groups")
    channels = rw.before("Shape", [rw.node.input[0]], hint="channels", start=1, end=2)
    return rw.before("Concat", [groups, rw.before("Div", [channels, groups])], hint="group_sizes", axis=0)
