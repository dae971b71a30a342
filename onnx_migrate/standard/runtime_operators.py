"""Operators that ONNX Runtime registers in ai.onnx beside the standard: the whole list, and how each is treated.

Source: `get_all_operator_schema()` of onnxruntime 1.31, less the schemas of onnx.defs; they are registered in
onnxruntime/core/graph/contrib_ops/contrib_defs.cc. The experimental operators that onnx has removed, which ONNX Runtime
registers too, are in `experimental_ops`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto

__all__ = ["RUNTIME_OPERATORS", "RuntimeOperator", "is_runtime_operator", "runtime_substitute"]


@dataclass(frozen=True)
class RuntimeOperator:
    """An operator of ONNX Runtime in ai.onnx, valid at every opset up to `standard_from`, if that is given.

    `step_at` is an opset at which an adapter may write the node with an operator of the standard; the node is valid
    there too.
    """

    name: str
    attributes: dict[str, int] = field(default_factory=dict)
    required: bool = False
    """Whether all attributes are required."""
    inputs: tuple[int, int] = (1, 1)
    outputs: tuple[int, int] = (1, 1)
    """The least and the greatest number."""
    standard_from: int | None = None
    step_at: int | None = None
    like_input: bool = False
    """Whether the first output has the type and shape of the first input."""


_F, _I, _S, _IS = (
    int(kind)
    for kind in (AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING, AttributeProto.INTS)
)
_NORMALIZATION = {"axis": _I, "epsilon": _F, "stash_type": _I}
_NMS = {
    "score_threshold": _F, "plugin_version": _S, "max_output_boxes": _I, "score_activation": _I, "box_coding": _I,
    "iou_threshold": _F, "background_class": _I,
}  # fmt: skip

RUNTIME_OPERATORS = (
    # The same kernel as RMSNormalization, which the standard has from opset 23 on.
    RuntimeOperator(
        "SimplifiedLayerNormalization", _NORMALIZATION, False, (2, 2), (1, 2), step_at=23, like_input=True
    ),
    # The same kernel as the standard's, which began at opset 17.
    RuntimeOperator(
        "LayerNormalization", _NORMALIZATION, False, (2, 3), (1, 3), standard_from=17, like_input=True
    ),
    # Copies between devices, in models that were saved after optimisation: kept.
    RuntimeOperator("MemcpyFromHost", like_input=True),
    RuntimeOperator("MemcpyToHost", like_input=True),
    # Plugins of TensorRT, which ONNX Runtime passes on: kept.
    RuntimeOperator("DisentangledAttention_TRT", {"factor": _F, "span": _I}, True, (3, 3)),
    RuntimeOperator("EfficientNMS_TRT", _NMS, True, (2, 3), (4, 4)),
    RuntimeOperator(
        "MultilevelCropAndResize_TRT",
        {"plugin_version": _S, "pooled_size": _I, "image_size": _IS},
        True,
        (5, 5),
    ),
    RuntimeOperator("PyramidROIAlign_TRT", {"plugin_version": _S, "pooled_size": _I}, True, (5, 5)),
)

_BY_NAME = {operator.name: operator for operator in RUNTIME_OPERATORS}


def is_runtime_operator(node: onnx.NodeProto, opset: int) -> bool:
    """Return whether a node of ai.onnx is of an operator that at this opset only ONNX Runtime has."""
    operator = _BY_NAME.get(node.op_type)
    if operator is None or node.domain not in ("", "ai.onnx"):
        return False
    return operator.standard_from is None or opset < operator.standard_from


def runtime_substitute(node: onnx.NodeProto, opset: int) -> None:
    """Replace a node by an Identity of the same inferred type and shape, in place, if it is of such an operator.

    onnx's inference ends at an operator that it does not know; the result serves inference alone.
    """
    if is_runtime_operator(node, opset) and _BY_NAME[node.op_type].like_input:
        node.op_type = "Identity"
        del node.attribute[:], node.input[1:], node.output[1:]
