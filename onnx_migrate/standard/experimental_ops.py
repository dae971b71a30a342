"""Experimental operators that ai.onnx has removed, and that the installed onnx has no schema of.

Their attributes and arities are those of onnx/defs/experiments/defs.cc in onnx 1.2 to 1.4, all of version 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto, helper

from onnx_migrate.standard.runtime_operators import runtime_substitute

__all__ = ["EXPERIMENTAL_OPERATORS", "ExperimentalOperator", "crop_limits", "substitute_for_inference"]


@dataclass(frozen=True)
class ExperimentalOperator:
    """An experimental operator, valid up to opset `removed_in` - 1.

    From opset `removed_in` on the name is unknown, or is that of a standard operator with other attributes.
    """

    name: str
    removed_in: int
    attributes: dict[str, int] = field(default_factory=dict)
    inputs: tuple[int, int] = (1, 1)
    """The least and the greatest number of inputs."""
    outputs: int = 1
    """The greatest number of outputs."""
    unchecked: bool = False
    """Whether attributes of any name are allowed."""
    like_input: bool = True
    """Whether the output has the type and shape of the first input."""


_NUMBER, _NUMBERS = int(AttributeProto.FLOAT), int(AttributeProto.FLOATS)
_INT, _INTS = int(AttributeProto.INT), int(AttributeProto.INTS)
_FILL = {"shape": _INTS, "extra_shape": _INTS, "input_as_shape": _INT}
_MANY = 2**31 - 1

EXPERIMENTAL_OPERATORS = (
    ExperimentalOperator("ATen", 10, inputs=(1, _MANY), outputs=_MANY, unchecked=True, like_input=False),
    ExperimentalOperator("Affine", 10, {"alpha": _NUMBER, "beta": _NUMBER}),
    ExperimentalOperator(
        "ConstantFill", 9, {"value": _NUMBER, "dtype": _INT, **_FILL}, (0, 1), like_input=False
    ),
    ExperimentalOperator("Crop", 10, {"border": _INTS, "scale": _INTS}, like_input=False),
    ExperimentalOperator("DynamicSlice", 10, inputs=(3, 4), like_input=False),
    ExperimentalOperator("GRUUnit", 10, {"drop_states": _INT}, (4, 4), like_input=False),
    ExperimentalOperator("GivenTensorFill", 10, {"values": _NUMBERS, **_FILL}, (0, 1), like_input=False),
    ExperimentalOperator("ImageScaler", 10, {"scale": _NUMBER, "bias": _NUMBERS}),
    ExperimentalOperator(
        "MeanVarianceNormalization", 9, {"across_channels": _INT, "normalize_variance": _INT}
    ),
    ExperimentalOperator("ParametricSoftplus", 10, {"alpha": _NUMBER, "beta": _NUMBER}),
    ExperimentalOperator("Scale", 10, {"scale": _NUMBER}),
    ExperimentalOperator("ScaledTanh", 10, {"alpha": _NUMBER, "beta": _NUMBER}),
    ExperimentalOperator("ThresholdedRelu", 10, {"alpha": _NUMBER}),
)

_END = 2**63 - 1
_BY_NAME = {operator.name: operator for operator in EXPERIMENTAL_OPERATORS}


def substitute_for_inference(nodes: Iterable[onnx.NodeProto], opset: int) -> None:
    """Replace removed operators, and those of ONNX Runtime alone, by ones whose outputs have the same type and shape, in place.

    The results compute other numbers and serve shape inference alone, which ends at an operator without a schema.
    `nodes` are those of one body, without its sub-graphs, and `opset` is the body's. Operators without such a
    replacement are left unchanged.
    """
    for node in nodes:
        runtime_substitute(node, opset)
        operator = _BY_NAME.get(node.op_type)
        if operator is None or node.domain not in ("", "ai.onnx") or opset >= operator.removed_in:
            continue
        if operator.like_input:
            node.op_type = "Identity"
            del node.attribute[:]
        elif operator.name == "Crop":
            limits = _limits_of(node)
            if limits is None:
                continue
            node.op_type = "Slice"
            del node.attribute[:]
            for name, value in (("axes", [2, 3]), ("starts", limits[0]), ("ends", limits[1])):
                node.attribute.append(helper.make_attribute(name, value))


def _limits_of(node: onnx.NodeProto) -> tuple[list[int], list[int]] | None:
    if any(attribute.ref_attr_name for attribute in node.attribute):
        return None
    given = {attribute.name: list(attribute.ints) for attribute in node.attribute}
    return crop_limits(given.get("border", []), given.get("scale", []))


def crop_limits(border: list[int], scale: list[int]) -> tuple[list[int], list[int]] | None:
    """Return the starts and ends of a Slice of height and width that equals a Crop; None for invalid attributes.

    `border` is (left, top, right, bottom). With `scale`, which is (height, width) of the output, only left and top are
    read (onnxruntime/contrib_ops/cpu/crop.h). Either list may be empty.
    """
    if len(border) not in (0, 4) or len(scale) not in (0, 2) or min((*border, *scale), default=0) < 0:
        return None
    left, top, right, bottom = border or [0, 0, 0, 0]
    if scale:
        return [top, left], [top + scale[0], left + scale[1]]
    return [top, left], [-bottom or _END, -right or _END]
