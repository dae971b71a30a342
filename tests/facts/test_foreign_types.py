"""Types of what operators of ai.onnx.ml and com.microsoft give out, compared with what ONNX Runtime gives out."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.facts.foreign_types import foreign_types
from onnx_migrate.facts.value_types import ValueType

ML, MS = "ai.onnx.ml", "com.microsoft"
TREE = {
    "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
}  # fmt: skip
CLASSES = {"class_treeids": [0, 0], "class_nodeids": [1, 2], "class_ids": [0, 1], "class_weights": [1.0, 1.0]}
TARGETS = {
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 1],
    "target_weights": [1.0, 2.0],
}
SVM = {"kernel_params": [0.1, 0.0, 3.0], "kernel_type": "RBF", "support_vectors": [1.0] * 9}
F = np.ones((4, 3), np.float32)


def f(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


def u(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.uint8)


S, Z = f(), np.uint8(1)

ROWS: dict[str, tuple[str, str, list[Any], int, dict[str, Any]]] = {
    "tree, two classes": (ML, "TreeEnsembleClassifier", [F], 2, {**TREE, **CLASSES, "classlabels_int64s": [0, 1]}),
    "tree, one id of two classes": (
        ML, "TreeEnsembleClassifier", [F], 2, {**TREE, **CLASSES, "class_ids": [0, 0], "classlabels_int64s": [0, 1]},
    ),
    "tree, three texts": (ML, "TreeEnsembleClassifier", [F], 2, {**TREE, **CLASSES, "classlabels_strings": ["a", "b", "c"]}),
    "tree, numbers": (ML, "TreeEnsembleRegressor", [F], 1, {**TREE, **TARGETS, "n_targets": 2}),
    "linear classes": (
        ML, "LinearClassifier", [F], 2,
        {"coefficients": [1.0] * 9, "intercepts": [0.0] * 3, "classlabels_ints": [3, 4, 5]},
    ),
    "linear, two classes of one line": (
        ML, "LinearClassifier", [F], 2, {"coefficients": [1.0] * 3, "intercepts": [0.0], "classlabels_ints": [3, 4]},
    ),
    "linear numbers": (ML, "LinearRegressor", [F], 1, {"coefficients": [1.0] * 6, "intercepts": [0.0] * 2, "targets": 2}),
    "linear number": (ML, "LinearRegressor", [F], 1, {"coefficients": [1.0] * 3}),
    "SVM, three classes": (
        ML, "SVMClassifier", [F], 2,
        {**SVM, "coefficients": [1.0] * 6, "rho": [0.1] * 3, "vectors_per_class": [1, 1, 1], "classlabels_ints": [0, 1, 2]},
    ),
    "SVM, four classes": (
        ML, "SVMClassifier", [F], 2,
        {
            **SVM, "support_vectors": [1.0] * 12, "coefficients": [1.0] * 12, "rho": [0.1] * 6, "vectors_per_class": [1] * 4,
            "classlabels_ints": [0, 1, 2, 3],
        },
    ),
    "SVM, two classes": (
        ML, "SVMClassifier", [F], 2,
        {
            **SVM, "support_vectors": [1.0] * 6, "coefficients": [1.0] * 2, "rho": [0.1], "vectors_per_class": [1, 1],
            "classlabels_ints": [0, 1],
        },
    ),
    "SVM, probabilities": (
        ML, "SVMClassifier", [F], 2,
        {
            **SVM, "coefficients": [1.0] * 6, "rho": [0.1] * 3, "vectors_per_class": [1, 1, 1], "classlabels_ints": [0, 1, 2],
            "prob_a": [0.1] * 3, "prob_b": [0.1] * 3,
        },
    ),
    "SVM number": (ML, "SVMRegressor", [F], 1, {**SVM, "coefficients": [1.0] * 3, "rho": [0.1], "n_supports": 3}),
    "Scaler": (ML, "Scaler", [F], 1, {"offset": [0.0], "scale": [2.0]}),
    "Scaler of int64": (ML, "Scaler", [np.ones((4, 3), np.int64)], 1, {"offset": [0.0], "scale": [2.0]}),
    "Normalizer": (ML, "Normalizer", [F], 1, {"norm": "L2"}),
    "Imputer": (ML, "Imputer", [F], 1, {"imputed_value_floats": [1.0], "replaced_value_float": 0.0}),
    "Binarizer": (ML, "Binarizer", [F], 1, {"threshold": 0.5}),
    "OneHotEncoder": (ML, "OneHotEncoder", [np.ones((4, 3), np.int64)], 1, {"cats_int64s": [1, 2], "zeros": 1}),
    "FeatureVectorizer": (ML, "FeatureVectorizer", [F, F], 1, {"inputdimensions": [3, 3]}),
    "LabelEncoder": (ML, "LabelEncoder", [np.ones((4, 3), np.int64)], 1, {"keys_int64s": [1], "values_floats": [2.0]}),
    "CategoryMapper": (
        ML, "CategoryMapper", [np.ones((4, 3), np.int64)], 1, {"cats_int64s": [1], "cats_strings": ["a"]},
    ),
    "ArrayFeatureExtractor": (ML, "ArrayFeatureExtractor", [F, np.array([0, 2])], 1, {}),
    "Gelu": (MS, "Gelu", [F], 1, {}),
    "BiasGelu": (MS, "BiasGelu", [F, f(3)], 1, {}),
    "FusedMatMul": (MS, "FusedMatMul", [f(2, 3, 4), f(2, 5, 3)], 1, {"transA": 1, "transB": 1}),
    "MatMulNBits": (MS, "MatMulNBits", [f(4, 32), u(6, 2, 8), f(12)], 1, {"K": 32, "N": 6, "bits": 4, "block_size": 16}),
    "SkipLayerNormalization": (MS, "SkipLayerNormalization", [f(2, 3, 4), f(2, 3, 4), f(4)], 4, {}),
    "MultiHeadAttention": (MS, "MultiHeadAttention", [f(2, 3, 8), f(2, 5, 8), f(2, 5, 8)], 1, {"num_heads": 2}),
    "Attention": (MS, "Attention", [f(2, 3, 8), f(8, 24), f(24)], 1, {"num_heads": 2}),
    "QLinearAdd": (MS, "QLinearAdd", [u(4, 3), S, Z, u(3), S, Z, S, Z], 1, {}),
    "QLinearConcat": (MS, "QLinearConcat", [S, Z, u(4, 3), S, Z, u(4, 2), S, Z], 1, {"axis": 1}),
    "QLinearGlobalAveragePool": (MS, "QLinearGlobalAveragePool", [u(1, 2, 4, 4), S, Z, S, Z], 1, {}),
    "DynamicQuantizeMatMul": (MS, "DynamicQuantizeMatMul", [f(4, 3), u(3, 5), f(), Z], 1, {}),
    "MatMulIntegerToFloat": (MS, "MatMulIntegerToFloat", [u(4, 3), u(3, 5), f(), f()], 1, {}),
    "FusedConv": (MS, "FusedConv", [f(1, 2, 5, 5), f(3, 2, 3, 3)], 1, {"activation": "Relu"}),
    "FusedGemm": (MS, "FusedGemm", [f(4, 3), f(5, 3), f(5)], 1, {"transB": 1, "activation": "Relu"}),
    "QuickGelu": (MS, "QuickGelu", [F], 1, {}),
}  # fmt: skip


def built(
    domain: str, operator: str, given: list[Any], count: int, attributes: dict[str, Any]
) -> onnx.ModelProto:
    """Return a model of one node, whose first input is fed."""
    arrays = [np.asarray(item) for item in given]
    names = [f"x{place}" for place in range(len(arrays))]
    node = helper.make_node(
        operator, names, [f"y{place}" for place in range(count)], domain=domain, **attributes
    )
    fed = helper.make_tensor_value_info(
        "x0", helper.np_dtype_to_tensor_dtype(arrays[0].dtype), arrays[0].shape
    )
    rest = [numpy_helper.from_array(array, name) for array, name in zip(arrays[1:], names[1:], strict=True)]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", [fed], outputs, rest)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(ML, 3), helper.make_opsetid(MS, 1)]
    return helper.make_model(graph, ir_version=8, opset_imports=imports)


@pytest.mark.parametrize("name", ROWS)
def test_types_are_those_that_onnx_runtime_gives_out(name: str) -> None:
    domain, operator, given, count, attributes = ROWS[name]
    proto = built(domain, operator, given, count, attributes)
    arrays = [np.asarray(item) for item in given]
    inputs = [ValueType(int(helper.np_dtype_to_tensor_dtype(array.dtype)), array.shape) for array in arrays]

    found = foreign_types(proto.graph.node[0], inputs)

    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    outputs = session.run(None, {"x0": arrays[0]} if session.get_inputs() else {})
    for known, actual in zip(found, outputs, strict=True):
        assert known is not None
        if actual is None:  # an older release leaves out what the node does not need
            continue
        assert known.shape == actual.shape
        if actual.dtype != object:
            assert known.dtype == helper.np_dtype_to_tensor_dtype(actual.dtype)


def test_nothing_is_known_of_other_operators_and_unknown_inputs() -> None:
    node = helper.make_node("Gelu", ["x"], ["y"], domain=MS)
    assert foreign_types(node, [ValueType()]) == [ValueType()]
    assert foreign_types(helper.make_node("Own", ["x"], ["y"], domain="me"), [ValueType()]) == [None]
    tree = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain=ML, n_targets=2)
    assert foreign_types(tree, [ValueType(TensorProto.FLOAT)]) == [ValueType(TensorProto.FLOAT, (None, 2))]


@pytest.mark.parametrize(
    "name", ["tree, three texts", "tree, numbers", "FusedMatMul", "SkipLayerNormalization"]
)
def test_static_knows_their_sizes(name: str) -> None:
    proto = built(*ROWS[name])
    for output in proto.graph.output[1 if name == "tree, three texts" else 0 :]:
        output.type.tensor_type.elem_type = TensorProto.FLOAT

    found = onnx_migrate.migrate(proto, static=True, verify="off", simplify=False)

    assert any(note.code == "static" for note in found.report.notes)
