"""The values that attributes may have, by version of the operator. No schema lists them: they are in the texts.

Source: the attribute texts of onnx.defs (`get_schema(operator, version, domain).attributes[name].description`), which
docs/Operators.md and docs/Changelog.md of onnx print.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from onnx import AttributeProto, NodeProto, TensorProto, defs

from onnx_migrate.standard.element_types import TYPE_ATTRIBUTES
from onnx_migrate.standard.schema import is_onnx, schema_cache, signature, versions

__all__ = [
    "READ_BY_RUNTIME",
    "UNCHECKED",
    "allowed_values",
    "restricted_attributes",
    "runtime_reading",
    "value_violation",
]

_AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_DIRECTION = ("forward", "reverse", "bidirectional")
_REDUCTION = ("none", "sum", "mean")
_POST = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
_ML = "ai.onnx.ml"
_COORDINATES_11 = (
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip
"""The standard has tf_half_pixel_for_nn at 11 and 12 only; ONNX Runtime takes it at any opset, and it can be kept."""

_COORDINATES_19 = (*_COORDINATES_11, "half_pixel_symmetric")

_VALUES: dict[tuple[str, str, str], dict[int, tuple[str, ...]]] = {
    **{
        ("", operator, "auto_pad"): {1: _AUTO_PAD}
        for operator in (
            "AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool", "QLinearConv",
        )
    },
    **{("", operator, "direction"): {3: _DIRECTION} for operator in ("GRU", "LSTM", "RNN")},
    **{
        ("", operator, "reduction"): {12: _REDUCTION}
        for operator in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    },
    **{
        ("", operator, "reduction"): {16: ("none", "add", "mul"), 18: ("none", "add", "mul", "max", "min")}
        for operator in ("ScatterElements", "ScatterND")
    },
    **{("", operator, "round_mode"): {24: ("up", "down", "nearest")} for operator in ("Cast", "CastLike")},
    ("", "BitShift", "direction"): {11: ("LEFT", "RIGHT")},
    ("", "DepthToSpace", "mode"): {11: ("DCR", "CRD")},
    ("", "Gelu", "approximate"): {20: ("none", "tanh")},
    ("", "GridSample", "mode"): {16: ("bilinear", "nearest", "bicubic"), 20: ("linear", "nearest", "cubic")},
    ("", "GridSample", "padding_mode"): {16: ("zeros", "border", "reflection")},
    ("", "ImageDecoder", "pixel_format"): {20: ("RGB", "BGR", "Grayscale")},
    ("", "Pad", "mode"): {1: ("constant", "reflect", "edge"), 19: ("constant", "reflect", "edge", "wrap")},
    ("", "Resize", "coordinate_transformation_mode"): {11: _COORDINATES_11, 19: _COORDINATES_19},
    ("", "Resize", "keep_aspect_ratio_policy"): {18: ("stretch", "not_larger", "not_smaller")},
    ("", "Resize", "mode"): {10: ("nearest", "linear"), 11: ("nearest", "linear", "cubic")},
    ("", "Resize", "nearest_mode"): {11: ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")},
    ("", "RoiAlign", "coordinate_transformation_mode"): {16: ("half_pixel", "output_half_pixel")},
    ("", "RoiAlign", "mode"): {10: ("avg", "max")},
    ("", "SpaceToDepth", "mode"): {28: ("DCR", "CRD")},
    ("", "StringNormalizer", "case_change_action"): {10: ("LOWER", "UPPER", "NONE")},
    ("", "TensorScatter", "mode"): {24: ("linear", "circular")},
    ("", "TfIdfVectorizer", "mode"): {9: ("TF", "IDF", "TFIDF")},
    (_ML, "CastMap", "cast_to"): {1: ("TO_FLOAT", "TO_STRING", "TO_INT64")},
    (_ML, "CastMap", "map_form"): {1: ("DENSE", "SPARSE")},
    (_ML, "LinearClassifier", "post_transform"): {1: _POST},
    (_ML, "LinearRegressor", "post_transform"): {1: _POST},
    (_ML, "Normalizer", "norm"): {1: ("MAX", "L1", "L2")},
    (_ML, "SVMClassifier", "kernel_type"): {1: _KERNELS},
    (_ML, "SVMClassifier", "post_transform"): {1: _POST},
    (_ML, "SVMRegressor", "kernel_type"): {1: _KERNELS},
    (_ML, "SVMRegressor", "post_transform"): {1: _POST},
    (_ML, "TreeEnsembleClassifier", "nodes_modes"): {1: _MODES},
    (_ML, "TreeEnsembleClassifier", "post_transform"): {1: _POST},
    (_ML, "TreeEnsembleRegressor", "aggregate_function"): {1: ("AVERAGE", "SUM", "MIN", "MAX")},
    (_ML, "TreeEnsembleRegressor", "nodes_modes"): {1: _MODES},
    (_ML, "TreeEnsembleRegressor", "post_transform"): {1: _POST},
}  # fmt: skip
"""By domain, operator and attribute: the values from each version on."""

_TAKEN_EARLIER = frozenset({("Pad", "mode", "wrap"), ("Resize", "mode", "cubic")})
"""Values of later versions that ONNX Runtime computes at every opset: measured with 1.21 and 1.32. A node keeps them."""

_READINGS: dict[tuple[str, str], Callable[[str], str]] = {
    **{
        (operator, "auto_pad"): lambda text: text or "NOTSET"
        for _, operator, attribute in _VALUES
        if attribute == "auto_pad"
    },
    **{
        (operator, "reduction"): lambda text: "sum"
        for operator in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    },
    **{(operator, "reduction"): lambda text: "none" for operator in ("ScatterElements", "ScatterND")},
    ("Resize", "nearest_mode"): lambda text: text or "floor",  # or "ceil": `mend_attributes` decides
    ("RoiAlign", "coordinate_transformation_mode"): lambda text: "output_half_pixel",
    ("RoiAlign", "mode"): str.lower,
}
"""How ONNX Runtime reads a text that no version of an operator of ai.onnx has: measured with 1.21 and 1.32."""

READ_BY_RUNTIME = frozenset(operator for operator, _ in _READINGS)
"""The operators of ai.onnx with an attribute for which ONNX Runtime supports texts that the standard does not have."""

UNCHECKED = dict.fromkeys(
    ("LayerNormalization", "SimplifiedLayerNormalization"), ("axis", "epsilon", "stash_type")
)
"""Operators of ai.onnx whose attributes ONNX Runtime does not check: any name is allowed, and it reads these.

Measured with 1.32.
"""


@cache
def runtime_reading(operator: str, attribute: str, text: str) -> str | None:
    """Return the value as which ONNX Runtime reads a text that no version of an operator of ai.onnx has.

    None for one that a version has, and for one that it refuses.
    """
    reading = _READINGS.get((operator, attribute))
    if reading is None:
        return None
    allowed = {value for values in _VALUES["", operator, attribute].values() for value in values}
    read = reading(text)
    return read if text not in allowed and read in allowed else None


_UNSET_TYPE = {"DequantizeLinear": 0, "QuantizeLinear": 0}
"""Operators whose attribute of 0 means that the type follows from the inputs."""


@cache
def allowed_values(domain: str, operator: str, attribute: str, version: int) -> tuple[str, ...] | None:
    """Return the values that an attribute of text may have at an opset; None if any is allowed."""
    table = _VALUES.get(("" if is_onnx(domain) else domain, operator, attribute))
    if table is None:
        return None
    first = max((since for since in table if since <= version), default=None)
    return None if first is None else table[first]


@schema_cache
def restricted_attributes(domain: str, operator: str) -> frozenset[str]:
    """Return the attributes of an operator that may not have every value, by any of its versions."""
    name = "" if is_onnx(domain) else domain
    attribute_names = {key[2] for key in _VALUES if key[:2] == (name, operator)}
    if not name and defs.has(operator):
        attributes_by_version = (
            signature("", operator, version).attributes for version in versions("", operator)
        )
        attribute_names |= {
            attribute
            for attributes in attributes_by_version
            for attribute in attributes
            if attribute in TYPE_ATTRIBUTES
        }
    return frozenset(attribute_names)


def value_violation(node: NodeProto, version: int) -> str | None:
    """Return how an attribute's value is not allowed at an opset, as a message without subject; None if all are."""
    restricted = restricted_attributes(node.domain, node.op_type)
    if not restricted:
        return None
    for attribute in node.attribute[:]:
        if attribute.name not in restricted or attribute.ref_attr_name:
            continue
        if attribute.type == AttributeProto.INT:
            # Some operators have a number that means "not set".
            if attribute.i == _UNSET_TYPE.get(node.op_type):
                continue
            if attribute.i not in TensorProto.DataType.values() or not attribute.i:
                return f"has {attribute.name}={attribute.i}, which is not an element type"
            continue
        allowed = allowed_values(node.domain, node.op_type, attribute.name, version)
        if allowed is None:
            continue
        texts = [attribute.s] if attribute.type == AttributeProto.STRING else set(attribute.strings)
        for text in texts:
            value = text.decode(errors="replace")
            if value not in allowed and (node.op_type, attribute.name, value) not in _TAKEN_EARLIER:
                return (
                    f"has {attribute.name}={value!r}, which {node.op_type} does not have at version {version}:"
                    f" it has {', '.join(allowed)}"
                )
    return None
