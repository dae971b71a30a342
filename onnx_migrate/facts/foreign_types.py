"""Types and dims of the outputs of nodes of ai.onnx.ml and com.microsoft, from attributes and input shapes.

For most of these operators onnx's inference knows only the element type, or nothing. The dims of ai.onnx.ml are those
of ONNX Runtime's kernels (onnxruntime/core/providers/cpu/ml). An operator of com.microsoft gets the dims of a node of
ai.onnx that replaces it for the inference, and that computes other numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.node_inference import infer_types
from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.facts.value_types import ValueType

__all__ = ["foreign_types"]

Types = list["ValueType | None"]

_STAND_INS_OPSET = 20
"""The opset of the nodes of ai.onnx that replace others; it has all operators that the rules use."""

_FLOAT, _INT64, _STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


@dataclass(frozen=True)
class Foreign:
    """A node of another domain, with its attributes and the known types of its inputs."""

    node: onnx.NodeProto
    attributes: dict[str, Any]
    inputs: Sequence[ValueType]

    def dims(self, place: int) -> tuple[int | None, ...] | None:
        """Return the dims of an input; None if the node leaves it out, or its rank is not known."""
        return self.inputs[place].shape if place < len(self.inputs) else None

    def rows(self) -> int | None:
        """Return how many rows an operator of ai.onnx.ml reads: a vector is one row."""
        shape = self.dims(0)
        if not shape:
            return None
        return 1 if len(shape) == 1 else shape[0]

    def labels(self) -> tuple[int, int]:
        """Return the number of the classes that the attributes name, and the type of their labels."""
        for name, dtype in (
            ("classlabels_strings", _STRING),
            ("classlabels_int64s", _INT64),
            ("classlabels_ints", _INT64),
            ("cats_strings", _STRING),
            ("cats_int64s", _INT64),
        ):
            # The first attribute that is set holds the labels.
            if self.attributes.get(name):
                return len(self.attributes[name]), dtype
        return 0, _INT64


def foreign_types(node: onnx.NodeProto, inputs: Sequence[ValueType]) -> Types:
    """Return the types of the outputs of a node of another domain; None for each output without a known type."""
    rule = _BY_DOMAIN.get(node.domain, {}).get(node.op_type)
    # A reference to a function's attribute has no value before the call, so no rule can read it.
    if rule is None or not inputs or any(attribute.ref_attr_name for attribute in node.attribute):
        return [None] * len(node.output)
    output_types = rule(Foreign(node, attributes_of(node), inputs))
    # Missing outputs at the end count as unknown, so that the result has one type for each output.
    return [*output_types, *[None] * len(node.output)][: len(node.output)]


# ai.onnx.ml


def _classifier(of: Foreign) -> Types:
    """A classifier returns a label for each row, and a score for each row and class."""
    count, dtype = of.labels()
    return [ValueType(dtype, (of.rows(),)), ValueType(_FLOAT, (of.rows(), count if count > 1 else None))]


def _svm_classifier(of: Foreign) -> Types:
    """Scores are of classes if there are probabilities, else of pairs of classes, which two of them have in both orders."""
    label, scores = _classifier(of)
    assert scores is not None
    count, _ = of.labels()
    if not of.attributes.get("prob_a") and of.attributes.get("vectors_per_class") and count != 2:
        scores = replace(scores, shape=(of.rows(), count * (count - 1) // 2))
    return [label, scores]


def _regressor(of: Foreign) -> Types:
    count = of.attributes.get("n_targets", of.attributes.get("targets", 1))
    return [ValueType(_FLOAT, (of.rows(), count))]


def _tree_ensemble(of: Foreign) -> Types:
    return [ValueType(of.inputs[0].dtype, (of.rows(), of.attributes.get("n_targets")))]


def _svm_regressor(of: Foreign) -> Types:
    return [ValueType(_FLOAT, (of.rows(), 1))]


def _like_input(of: Foreign) -> Types:
    return [of.inputs[0]]


def _floats_like_input(of: Foreign) -> Types:
    return [ValueType(_FLOAT, of.dims(0))]


def _category_mapper(of: Foreign) -> Types:
    dtype = _INT64 if of.inputs[0].dtype == _STRING else _STRING
    return [ValueType(dtype if of.inputs[0].dtype else None, of.dims(0))]


def _one_hot(of: Foreign) -> Types:
    shape, (count, _) = of.dims(0), of.labels()
    return [ValueType(_FLOAT, None if shape is None else (*shape, count))]


def _feature_vectorizer(of: Foreign) -> Types:
    sizes = of.attributes.get("inputdimensions")
    return [ValueType(_FLOAT, (of.rows(), sum(sizes) if sizes else None))]


def _dict_vectorizer(of: Foreign) -> Types:
    names = of.attributes.get("string_vocabulary") or of.attributes.get("int64_vocabulary") or ()
    return [ValueType(None, (1, len(names)))]


def _feature_extractor(of: Foreign) -> Types:
    """The last axis has one element for each index, and there are two axes at least."""
    shape, indices = of.dims(0), of.inputs[1].size if len(of.inputs) > 1 else None
    has_index_shape = len(of.inputs) > 1 and of.inputs[1].shape is not None
    return [
        ValueType(of.inputs[0].dtype, (*(shape[:-1] or (1,)), indices)) if shape and has_index_shape else None
    ]


_LABELS = {"values_floats": _FLOAT, "values_int64s": _INT64, "values_strings": _STRING}
"""Attributes of LabelEncoder that list its output values, with their element type."""


def _label_encoder(of: Foreign) -> Types:
    """The shape of the input, and the element type of the values that the attributes list."""
    dtype: int | None = next((_LABELS[name] for name in of.attributes if name in _LABELS), None)
    if "values_tensor" in of.attributes:
        dtype = of.attributes["values_tensor"].data_type
    elif "classes_strings" in of.attributes and of.inputs[0].dtype is not None:
        # Of version 1, which maps both ways.
        dtype = _INT64 if of.inputs[0].dtype == _STRING else _STRING
    return [replace(of.inputs[0], dtype=dtype)]


def _zip_map(of: Foreign) -> Types:
    key = "string" if of.attributes.get("classlabels_strings") else "int64"
    return [ValueType(container=f"seq(map({key},tensor(float)))")]


_ML: dict[str, Callable[[Foreign], Types]] = {
    "ArrayFeatureExtractor": _feature_extractor,
    "Binarizer": _like_input,
    "CategoryMapper": _category_mapper,
    "DictVectorizer": _dict_vectorizer,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _like_input,
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
    "Normalizer": _floats_like_input,
    "OneHotEncoder": _one_hot,
    "SVMClassifier": _svm_classifier,
    "SVMRegressor": _svm_regressor,
    "Scaler": _floats_like_input,
    "TreeEnsemble": _tree_ensemble,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
    "ZipMap": _zip_map,
}


# com.microsoft


def _as(
    operator: str, *picked: int, like: tuple[int, ...] = (0,), dtype_of: int | None = None
) -> Callable[[Foreign], Types]:
    """Return a rule that uses a node of ai.onnx with the inputs `picked`, and with those attributes that its operator has.

    Outputs `like` have the node's dims. Their elements have the type of the input `dtype_of`, by default of the first
    picked input.
    """

    def rule(of: Foreign) -> Types:
        indices = [index for index in picked if index < len(of.inputs) and of.node.input[index]]
        source = indices[0] if indices and dtype_of is None else dtype_of
        # The dims of ai.onnx operators are those of channels-first data, so they would be wrong here.
        if source is None or not indices or source >= len(of.inputs) or of.attributes.get("channels_last"):
            return []
        accepted_attributes = onnx.defs.get_schema(operator, _STAND_INS_OPSET).attributes
        schema_attributes = {
            name: value for name, value in of.attributes.items() if name in accepted_attributes
        }
        inferred_types = infer_types(
            helper.make_node(operator, [f"x{index}" for index in indices], ["y"], **schema_attributes),
            _STAND_INS_OPSET,
            # The stand-in computes dims alone; a type such as int8 may not be allowed by its signature.
            [replace(of.inputs[index], dtype=_FLOAT) for index in indices],
        )
        shape = inferred_types[0].shape if inferred_types and inferred_types[0] is not None else None
        known_type = ValueType(of.inputs[source].dtype, shape)
        return [known_type if index in like else None for index in range(len(of.node.output))]

    return rule


def _sized(of: Foreign, size: Any, dtype: int | None = None) -> Types:
    """Return the type of the first input with another last axis."""
    shape = of.dims(0)
    if not shape or not size:
        return []
    return [ValueType(dtype or of.inputs[0].dtype, (*shape[:-1], int(size)))]


def _fused_matmul(of: Foreign) -> Types:
    # These attributes move the batch axes, which MatMul cannot express.
    if of.attributes.get("transBatchA") or of.attributes.get("transBatchB") or len(of.inputs) < 2:
        return []
    sides = []
    for name, value in zip(("transA", "transB"), of.inputs, strict=False):
        turned = of.attributes.get(name) and value.shape is not None and len(value.shape) > 1
        shape = value.shape
        # The types of a product are those of a MatMul of the turned matrices.
        if turned and shape is not None:
            shape = (*shape[:-2], shape[-1], shape[-2])
        sides.append(ValueType(value.dtype, shape))
    return _as("MatMul", 0, 1)(Foreign(of.node, {}, sides))


def _attention(of: Foreign) -> Types:
    """The output has the dims of the input, but the feature size of the value projection, the last of three in one matrix."""
    weights, sizes = of.dims(1), of.attributes.get("qkv_hidden_sizes")
    if sizes:
        return _sized(of, sizes[2], of.inputs[3].dtype if of.node.op_type == "QAttention" else None)
    if weights is None or len(weights) != 2 or weights[1] is None:
        return []
    return _sized(of, weights[1] // 3, of.inputs[3].dtype if of.node.op_type == "QAttention" else None)


def _heads(of: Foreign) -> Types:
    """The output has the dims of the query, but the feature size of the values.

    If one tensor holds all three, its features without those of keys and values remain.
    """
    query, value = of.dims(0), of.dims(2)
    if query is None or len(query) != 3 or query[2] is None:
        return []
    size: int | None = query[2]
    heads, kv_heads = of.attributes.get("num_heads", 0), of.attributes.get("kv_num_heads", 0)
    # One packed tensor holds query, keys and values side by side.
    if len(of.inputs) < 2 or not of.node.input[1]:
        # The packed tensor has the heads of the query, and the shared heads of keys and values twice.
        size = query[2] // (heads + 2 * kv_heads) * heads if heads and kv_heads else None
    elif value is not None and not kv_heads:
        size = value[1] * value[3] if len(value) == 4 and value[1] and value[3] else value[-1]
    return _sized(of, size)


def _skip_layer(of: Foreign) -> Types:
    """All outputs of the size of the input; the means and deviations have a last axis of 1."""
    whole = of.inputs[0]
    if whole.shape is None or len(whole.shape) < 2:
        return []
    statistics_type = ValueType(_FLOAT, (*whole.shape[:-1], 1))
    return [whole, statistics_type, statistics_type, whole]


def _concat(of: Foreign) -> Types:
    # The inputs are a scale and a zero point, and then a tensor, a scale and a zero point for each part.
    data_indices = range(2, len(of.inputs), 3)
    return _as("Concat", *data_indices)(of) if of.inputs[2:] else []


def _q_gemm(of: Foreign) -> Types:
    output_types = _as("Gemm", 0, 3)(of)
    # Input 7 is the output's zero point; without it the node returns floats.
    requantized = len(of.node.input) > 7 and of.node.input[7]
    return (
        output_types
        if requantized or not output_types or output_types[0] is None
        else [replace(output_types[0], dtype=_FLOAT)]
    )


_MICROSOFT: dict[str, Callable[[Foreign], Types]] = {
    **dict.fromkeys(
        (
            "BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "Gelu", "GroupNorm", "Inverse", "QLinearLeakyRelu",
            "QLinearSigmoid", "QLinearSoftmax", "QuickGelu", "RotaryEmbedding",
        ),
        _like_input,
    ),
    "Attention": _attention,
    "DequantizeLinear": _as("Identity", 0, dtype_of=1),
    "DynamicQuantizeMatMul": _as("MatMul", 0, 1),
    "EmbedLayerNormalization": _as("Gather", 2, 0),
    "FusedConv": _as("Conv", 0, 1, 2),
    "FusedGemm": _as("Gemm", 0, 1, 2),
    "FusedMatMul": _fused_matmul,
    "GroupQueryAttention": _heads,
    "LayerNormalization": _like_input,
    "MatMulIntegerToFloat": _as("MatMul", 0, 1, dtype_of=2),
    "MatMulNBits": lambda of: _sized(of, of.attributes.get("N")),
    "MultiHeadAttention": _heads,
    "QAttention": _attention,
    "QGemm": _q_gemm,
    "QLinearAdd": _as("Add", 0, 3),
    "QLinearAveragePool": _as("AveragePool", 0),
    "QLinearConcat": _concat,
    "QLinearGlobalAveragePool": _as("GlobalAveragePool", 0),
    "QLinearMul": _as("Mul", 0, 3),
    "QLinearWhere": _as("Where", 0, 1, 4, dtype_of=1),
    "QuantizeLinear": _as("Identity", 0, dtype_of=2),
    "SimplifiedLayerNormalization": _like_input,
    "SkipLayerNormalization": _skip_layer,
    "SkipSimplifiedLayerNormalization": _skip_layer,
    "TransposeMatMul": _fused_matmul,
}  # fmt: skip

_BY_DOMAIN = {"ai.onnx.ml": _ML, "com.microsoft": _MICROSOFT}
