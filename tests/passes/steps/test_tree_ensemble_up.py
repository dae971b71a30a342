"""Tree ensembles: ONNX Runtime computes the same before and after, with equal labels and scores equal bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import Exactness
from tests.passes.steps.forests import ML, Votes, check_ml, lift_ml, one_node, trees
from tests.steps import refuses
from tests.support.skips import Elsewhere, skip
from tests.support.versions import RUNTIME

X = np.random.default_rng(1).standard_normal((60, 4)).astype(np.float32)
X[0, 0] = np.nan

ONE: Votes = lambda rng, _: [(0, rng.standard_normal())]  # noqa: E731
IN_TURN: Votes = lambda rng, tree: [(tree % 3, rng.standard_normal())]  # noqa: E731
ALL: Votes = lambda rng, _: [(target, rng.random()) for target in range(3)]  # noqa: E731
SOME: Votes = lambda rng, _: [(int(rng.integers(3)), rng.random() + 0.01)]  # noqa: E731
SOME_SIGNED: Votes = lambda rng, _: [(int(rng.integers(3)), rng.standard_normal())]  # noqa: E731
SUNK: Votes = lambda rng, tree: [(int(rng.integers(3)), -5.0 if tree else 0.1)]  # noqa: E731
"""Every leaf of the first tree adds to some class, and the other trees outweigh it."""
SMALL: Votes = lambda rng, _: [(0, rng.random() * 0.2)]  # noqa: E731
SECOND: Votes = lambda rng, _: [(1, rng.standard_normal())]  # noqa: E731
BOTH: Votes = lambda rng, _: [(0, rng.random()), (1, rng.random())]  # noqa: E731


def regressor(votes: Votes, targets: int, *, count: int = 5, **options: Any) -> onnx.ModelProto:
    nodes, leaves = trees(votes, count)
    setting = {name: options.pop(name) for name in ("version", "dtype", "opset") if name in options}
    attributes = {
        **nodes,
        **{f"target_{name}": value for name, value in leaves.items()},
        "n_targets": targets,
        **options,
    }
    return one_node(
        "TreeEnsembleRegressor", attributes, {"y": (TensorProto.FLOAT, ["N", targets])}, **setting
    )


def classifier(votes: Votes, labels: list[Any], *, count: int = 6, **options: Any) -> onnx.ModelProto:
    nodes, leaves = trees(votes, count)
    setting = {name: options.pop(name) for name in ("version", "dtype", "opset") if name in options}
    strings = isinstance(labels[0], str)
    attributes = {
        **nodes,
        **{f"class_{name}": value for name, value in leaves.items()},
        "classlabels_strings" if strings else "classlabels_int64s": labels,
        **options,
    }
    outputs = {
        "label": (TensorProto.STRING if strings else TensorProto.INT64, ["N"]),
        "scores": (TensorProto.FLOAT, ["N", len(labels)]),
    }
    return one_node("TreeEnsembleClassifier", attributes, outputs, **setting)


@pytest.mark.parametrize("base", [None, [0.3, -0.2, 0.1]])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize(("votes", "targets"), [(ONE, 1), (IN_TURN, 3), (ALL, 3)])
def test_regressor(votes: Votes, targets: int, aggregate: str, base: list[float] | None) -> None:
    options = {"base_values": base[:targets]} if base else {}
    source = regressor(votes, targets, aggregate_function=aggregate, **options)
    again = votes is ALL  # each tree once for every target
    check_ml(
        source, 5, X, exactness=Exactness.EQUIVALENT if again else Exactness.EXACT, tolerance=1e-6 * again
    )


@pytest.mark.parametrize("version", [1, 2])
def test_versions_that_are_declared_compatible(version: int) -> None:
    check_ml(regressor(IN_TURN, 3, version=version), 3, X, exactness=None, variants=["plain", "function"])
    check_ml(classifier(IN_TURN, [4, 5, 6], version=version), 3, X, exactness=None, variants=["plain", "if"])


def test_a_tree_that_is_one_leaf() -> None:
    attributes = {
        "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_modes": ["LEAF"],
        "nodes_values": [0.0], "nodes_truenodeids": [0], "nodes_falsenodeids": [0], "n_targets": 1,
        "target_treeids": [0], "target_nodeids": [0], "target_ids": [0], "target_weights": [1.5],
    }  # fmt: skip
    source = one_node("TreeEnsembleRegressor", attributes, {"y": (TensorProto.FLOAT, ["N", 1])})
    check_ml(source, 5, X, expected=[np.full((60, 1), 1.5, np.float32)], variants=["plain"])


def _as_tensors(source: onnx.ModelProto, kind: str) -> onnx.ModelProto:
    """Return the numbers as doubles that float32 cannot represent."""
    node = source.graph.node[0]
    for attribute in list(node.attribute):
        if attribute.name in ("nodes_values", "nodes_hitrates", f"{kind}_weights", "base_values"):
            array = np.array(attribute.floats, np.float64) * 1.0000000001
            node.attribute.remove(attribute)
            node.attribute.append(
                helper.make_attribute(f"{attribute.name}_as_tensor", numpy_helper.from_array(array))
            )
    return source


@pytest.mark.parametrize("tensors", [False, True])
def test_doubles(tensors: bool) -> None:
    source = regressor(IN_TURN, 3, version=3, dtype=TensorProto.DOUBLE, base_values=[0.3, -0.2, 0.1])
    if tensors:
        source = _as_tensors(source, "target")
    check_ml(source, 5, X.astype(np.float64), exactness=Exactness.EQUIVALENT, tolerance=1e-6)
    source = classifier(IN_TURN, [4, 5, 6], version=3, dtype=TensorProto.DOUBLE)
    if tensors:
        source = _as_tensors(source, "class")
    check_ml(source, 5, X.astype(np.float64), exactness=Exactness.EQUIVALENT, tolerance=1e-6)


@pytest.mark.parametrize("dtype", [TensorProto.INT64, TensorProto.INT32])
def test_integers(dtype: int) -> None:
    """ONNX Runtime runs classifiers on integers, but no regressors."""
    x = np.nan_to_num(X * 3).astype(helper.tensor_dtype_to_np_dtype(dtype))
    check_ml(classifier(IN_TURN, ["a", "b", "c"], dtype=dtype), 5, x)
    expected, _ = lift_ml(regressor(ONE, 1), 5)
    from tests.harness import run

    numbers = run(expected, {"x": x.astype(np.float32)})
    check_ml(regressor(ONE, 1, dtype=dtype), 5, x, expected=numbers, variants=["plain"])


@pytest.mark.parametrize("labels", [[5, -9, 3], ["x", "", "z"]])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("base", [None, [0.3, -0.2, 0.1]])
@pytest.mark.parametrize("votes", [IN_TURN, ALL, SOME])
def test_classes(votes: Votes, base: list[float] | None, post: str, labels: list[Any]) -> None:
    options = {"base_values": base} if base else {}
    source = classifier(votes, labels, post_transform=post, **options)
    exact = post == "NONE" and votes is IN_TURN
    check_ml(
        source,
        5,
        X,
        exactness=Exactness.EXACT if exact else Exactness.EQUIVALENT,
        tolerance=1e-6 * (not exact),
    )


def test_weights_of_both_signs_for_some_classes_with_base_values() -> None:
    source = classifier(SOME_SIGNED, [1, 2, 3], base_values=[0.3, -0.2, 0.1])
    check_ml(source, 5, X, exactness=Exactness.EQUIVALENT, tolerance=1e-6)


@pytest.mark.parametrize("labels", [[5, -9], ["no", "yes"]])
@pytest.mark.parametrize("post", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("base", [None, [0.25]])
@pytest.mark.parametrize("votes", [SMALL, ONE])
def test_two_classes_of_one_score(
    votes: Votes, base: list[float] | None, post: str, labels: list[Any]
) -> None:
    if votes is SMALL and post == "LOGISTIC" and RUNTIME < (1, 31):
        skip(
            "ONNX Runtime 1.21 leaves out LOGISTIC where no weight is negative, against the text",
            Elsewhere.NEWEST,
        )
    options = {"base_values": base} if base else {}
    source = classifier(votes, labels, post_transform=post, **options)
    exact = post != "LOGISTIC"
    check_ml(
        source,
        5,
        X,
        exactness=Exactness.EXACT if exact else Exactness.EQUIVALENT,
        tolerance=1e-6 * (not exact),
    )


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (classifier(SECOND, [1, 2]), "no-equal"),
        (classifier(BOTH, [1, 2]), "no-equal"),
        (classifier(SMALL, [1]), "no-equal"),
        (classifier(IN_TURN, [1, 2, 3], post_transform="PROBIT"), "no-equal"),
        (classifier(IN_TURN, [1, 2, 3], post_transform="SOFTMAX_ZERO"), "no-equal"),
        (classifier(SOME_SIGNED, [1, 2, 3]), "no-equal"),
        (classifier(SUNK, [1, 2, 3]), "no-equal"),
        (classifier(SMALL, [1, 2], base_values=[0.1, 0.2]), "invalid-node"),
        (regressor(ONE, 1, post_transform="LOGISTIC"), "no-equal"),
        (regressor(SOME, 3, aggregate_function="MAX"), "no-equal"),
        (regressor(IN_TURN, 3, count=2, base_values=[1.0, 2.0, 3.0]), "no-equal"),
        (regressor(ONE, 1, base_values=[0.1, 0.2]), "invalid-node"),
        (regressor(ONE, 0), "invalid-node"),
    ],
)
def test_refused(source: onnx.ModelProto, code: str) -> None:
    refuses(code, lift_ml, source, 5)
    lift_ml(source, 4)


def test_a_value_that_no_version_has_is_refused() -> None:
    refuses("invalid-node", lift_ml, regressor(ONE, 1, aggregate_function="MEDIAN"), 5, match="MEDIAN")


def test_nodes_that_do_not_form_trees_are_refused() -> None:
    source = regressor(ONE, 1)
    next(item for item in source.graph.node[0].attribute if item.name == "nodes_truenodeids").ints[0] = 99
    with pytest.raises(CannotMigrate, match="has no node 99"):
        lift_ml(source, 5)


@pytest.mark.parametrize("read", ["label", "scores"])
def test_an_output_that_is_omitted_stays_omitted(read: str) -> None:
    source = classifier(IN_TURN, ["a", "b", "c"], post_transform="SOFTMAX")
    kept = [value for value in source.graph.output if value.name == read]
    del source.graph.output[:]
    source.graph.output.extend(kept)
    index = 1 if read == "label" else 0
    source.graph.node[0].output[index] = ""
    result, _ = lift_ml(source, 5)
    operators = {node.op_type for node in result.graph.node}
    assert ("LabelEncoder" in operators) == (read == "label")
    assert ("Softmax" in operators) == (read == "scores")


def test_a_body_that_does_not_import_ai_onnx_imports_it_afterwards() -> None:
    source = classifier(IN_TURN, [7, 8, 9], opset=None)
    result, _ = lift_ml(source, 5)
    assert {entry.domain: entry.version for entry in result.opset_import} == {ML: 5, "": 21}
    assert result.ir_version == 10
