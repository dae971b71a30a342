"""Operators of ai.onnx without a schema in the installed onnx: removed experiments, and operators of ONNX Runtime.

The attributes and arities of the experiments are those of onnx/defs/experiments/defs.cc in onnx 1.2 to 1.4, all of
version 1. The list of operators that ONNX Runtime adds is complete, and says how onnx-migrate treats each.

Source: `get_all_operator_schema()` of onnxruntime 1.31, less the schemas of onnx.defs. ONNX Runtime registers these
operators in onnxruntime/core/graph/contrib_ops/contrib_defs.cc. It registers the experiments too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto, helper

__all__ = [
    "EXPERIMENTAL_OPERATORS",
    "RUNTIME_OPERATORS",
    "UnlistedOperator",
    "crop_limits",
    "is_runtime_operator",
    "substitute_for_inference",
]


@dataclass(frozen=True)
class UnlistedOperator:
    """An operator of version 1 that is valid up to the opset before `removed_in` or `standard_from`, or at all without these.

    From `removed_in` on its name is unknown, or is that of a standard operator with other attributes. From
    `standard_from` on it is that of a standard operator with the same attributes. `step_at` is an opset at which an
    adapter may replace the node by an operator of the standard; the node is valid there too.
    """

    name: str
    attributes: dict[str, int] = field(default_factory=dict)
    inputs: tuple[int, int] = (1, 1)
    outputs: tuple[int, int] = (1, 1)
    """The least and the greatest number of outputs."""
    required: bool = False
    """Whether all attributes are required."""
    unchecked: bool = False
    """Whether attributes of any name are allowed."""
    like_input: bool = False
    """Whether the first output has the type and shape of the first input."""
    removed_in: int | None = None
    standard_from: int | None = None
    step_at: int | None = None


_F, _FS, _I, _IS, _S = (
    int(getattr(AttributeProto, kind)) for kind in ("FLOAT", "FLOATS", "INT", "INTS", "STRING")
)
_FILL = {"shape": _IS, "extra_shape": _IS, "input_as_shape": _I}
_MANY = 2**31 - 1
_NORMALIZATION = {"axis": _I, "epsilon": _F, "stash_type": _I}
_NMS = {
    "score_threshold": _F, "plugin_version": _S, "max_output_boxes": _I, "score_activation": _I, "box_coding": _I,
    "iou_threshold": _F, "background_class": _I,
}  # fmt: skip
_CROPS = {"plugin_version": _S, "pooled_size": _I}

EXPERIMENTAL_OPERATORS = (
    UnlistedOperator("ATen", inputs=(1, _MANY), outputs=(1, _MANY), unchecked=True, removed_in=10),
    UnlistedOperator("Affine", {"alpha": _F, "beta": _F}, like_input=True, removed_in=10),
    UnlistedOperator("ConstantFill", {"value": _F, "dtype": _I, **_FILL}, (0, 1), removed_in=9),
    UnlistedOperator("Crop", {"border": _IS, "scale": _IS}, removed_in=10),
    UnlistedOperator("DynamicSlice", inputs=(3, 4), removed_in=10),
    UnlistedOperator("GRUUnit", {"drop_states": _I}, (4, 4), removed_in=10),
    UnlistedOperator("GivenTensorFill", {"values": _FS, **_FILL}, (0, 1), removed_in=10),
    UnlistedOperator("ImageScaler", {"scale": _F, "bias": _FS}, like_input=True, removed_in=10),
    UnlistedOperator(
        "MeanVarianceNormalization",
        {"across_channels": _I, "normalize_variance": _I},
        like_input=True,
        removed_in=9,
    ),
    UnlistedOperator("ParametricSoftplus", {"alpha": _F, "beta": _F}, like_input=True, removed_in=10),
    UnlistedOperator("Scale", {"scale": _F}, like_input=True, removed_in=10),
    UnlistedOperator("ScaledTanh", {"alpha": _F, "beta": _F}, like_input=True, removed_in=10),
    UnlistedOperator("ThresholdedRelu", {"alpha": _F}, like_input=True, removed_in=10),
)

RUNTIME_OPERATORS = (
    # The same kernel as RMSNormalization, which the standard has from opset 23 on.
    UnlistedOperator(
        "SimplifiedLayerNormalization", _NORMALIZATION, (2, 2), (1, 2), like_input=True, step_at=23
    ),
    # The same kernel as the standard's, which began at opset 17.
    UnlistedOperator("LayerNormalization", _NORMALIZATION, (2, 3), (1, 3), like_input=True, standard_from=17),
    # Copies between devices, in models that were saved after optimisation: kept.
    UnlistedOperator("MemcpyFromHost", like_input=True),
    UnlistedOperator("MemcpyToHost", like_input=True),
    # Plugins of TensorRT, which ONNX Runtime passes on: kept.
    UnlistedOperator("DisentangledAttention_TRT", {"factor": _F, "span": _I}, (3, 3), required=True),
    UnlistedOperator("EfficientNMS_TRT", _NMS, (2, 3), (4, 4), required=True),
    UnlistedOperator("MultilevelCropAndResize_TRT", {**_CROPS, "image_size": _IS}, (5, 5), required=True),
    UnlistedOperator("PyramidROIAlign_TRT", _CROPS, (5, 5), required=True),
)

_END = 2**63 - 1
_BY_NAME = {operator.name: operator for operator in (*EXPERIMENTAL_OPERATORS, *RUNTIME_OPERATORS)}


def _unlisted(node: onnx.NodeProto, opset: int) -> UnlistedOperator | None:
    """Return the operator of a node that is valid at an opset and has no schema there; None for any other."""
    operator = _BY_NAME.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if operator is None:
        return None
    end = operator.removed_in or operator.standard_from
    return operator if end is None or opset < end else None


def is_runtime_operator(node: onnx.NodeProto, opset: int) -> bool:
    """Return whether a node of ai.onnx is of an operator that at this opset only ONNX Runtime has."""
    operator = _unlisted(node, opset)
    return operator is not None and operator.removed_in is None


def substitute_for_inference(nodes: Iterable[onnx.NodeProto], opset: int) -> None:
    """Replace such operators by ones whose outputs have the same type and shape, in place.

    The results compute other numbers. They serve shape inference alone, which ends at an operator without a schema.
    `nodes` are those of one body, without its sub-graphs, and `opset` is the body's. Operators without such a
    replacement stay unchanged.
    """
    for node in nodes:
        operator = _unlisted(node, opset)
        if operator is not None and operator.like_input:
            node.op_type = "Identity"
            del node.attribute[:], node.input[1:], node.output[1:]
        elif operator is not None and operator.name == "Crop":
            limits = _limits_of(node)
            # Without readable limits, the output's shape is unknown.
            if limits is None:
                continue
            node.op_type = "Slice"
            del node.attribute[:]
            for name, value in (("axes", [2, 3]), ("starts", limits[0]), ("ends", limits[1])):
                node.attribute.append(helper.make_attribute(name, value))


def _limits_of(node: onnx.NodeProto) -> tuple[list[int], list[int]] | None:
    if any(attribute.ref_attr_name for attribute in node.attribute):
        return None
    values_by_name = {attribute.name: list(attribute.ints) for attribute in node.attribute}
    return crop_limits(values_by_name.get("border", []), values_by_name.get("scale", []))


def crop_limits(border: list[int], scale: list[int]) -> tuple[list[int], list[int]] | None:
    """Return the starts and ends of a Slice of height and width that equals a Crop; None for invalid attributes.

    `border` is (left, top, right, bottom). With `scale`, which is (height, width) of the output, only left and top are
    read (onnxruntime/contrib_ops/cpu/crop.h). Either list may be empty.
    """
    if len(border) not in (0, 4) or len(scale) not in (0, 2) or min((*border, *scale), default=0) < 0:
        return None
    left_border, top, right, bottom = border or [0, 0, 0, 0]
    # With a scale, the right and bottom borders are not read.
    if scale:
        return [top, left_border], [top + scale[0], left_border + scale[1]]
    return [top, left_border], [-bottom or _END, -right or _END]
