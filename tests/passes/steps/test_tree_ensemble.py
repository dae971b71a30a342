"""TreeEnsemble of ai.onnx.ml below 5, and parameters in tensors below 3."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.passes.steps.forests import FEATURES, lift_ml, one_node, trees
from tests.passes.steps.ml import ML, check_ml_down, lower_ml

RNG = np.random.default_rng(7)
X = RNG.standard_normal((40, FEATURES)).astype(np.float32)
X[3, 1] = X[5, 0] = X[7, 2] = np.nan


def regressor(count: int, version: int = 3, **more: Any) -> onnx.ModelProto:
    """Return a model with random trees, of whose leaves each adds to one target."""
    nodes, leaves = trees(lambda rng, tree: [(tree % count, float(rng.standard_normal()))], seed=count)
    attributes = {
        **nodes,
        **{f"target_{name}": values for name, values in leaves.items()},
        "n_targets": count,
        **more,
    }
    return one_node(
        "TreeEnsembleRegressor", attributes, {"y": (TensorProto.FLOAT, ["N", count])}, version=version
    )


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_there_and_back(aggregate: str, targets: int) -> None:
    """What our own upward step writes for a regressor of version 3."""
    source = regressor(targets, aggregate_function=aggregate)
    if aggregate in ("MIN", "MAX") and targets > 1:
        return  # leaves without a weight for a target are refused upward
    check_ml_down(lift_ml(source, 5)[0], X, 4, 3, 1)


def ensemble(**changes: Any) -> onnx.ModelProto:
    """Return one tree that asks for members, then compares; its leaves add to two targets."""
    attributes: dict[str, Any] = {
        "n_targets": 2,
        "aggregate_function": 1,
        "post_transform": 0,
        "tree_roots": [0],
        "nodes_modes": numpy_helper.from_array(np.array([0, 6, 6], np.uint8)),
        "nodes_featureids": [0, 0, 1],
        "nodes_splits": numpy_helper.from_array(np.array([3.14, 0, 0], np.float32)),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 2, 3],
        "nodes_falseleafs": [0, 0, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": numpy_helper.from_array(np.array([5.23, 12.12, -12.23, 7.21], np.float32)),
        "membership_values": numpy_helper.from_array(np.array([1.2, 3.7, 8, 9, np.nan, 12, 7], np.float32)),
        **changes,
    }
    return one_node(
        "TreeEnsemble",
        {name: value for name, value in attributes.items() if value is not None},
        {"y": (TensorProto.FLOAT, ["N", 2])},
        version=5,
        shape=("N", 2),
    )


MEMBERS = np.array(
    [[1.2, 0], [3.7, 1], [3, 12], [3, 7], [9, 7], [9, 1], [0, 12], [np.nan, 12], [1, np.nan], [8, 8]],
    np.float32,
)


@pytest.mark.parametrize("tracks", [None, [1, 1, 1], [0, 1, 0]])
@pytest.mark.parametrize("post", [0, 3])
def test_members(tracks: list[int] | None, post: int) -> None:
    source = ensemble(
        nodes_missing_value_tracks_true=tracks,
        post_transform=post,
        # A tree: no node is the child of two.
        nodes_truenodeids=[1, 0, 2],
        nodes_falsenodeids=[2, 1, 3],
        nodes_falseleafs=[0, 1, 1],
    )
    check_ml_down(source, MEMBERS, 4, 3, 1)


def test_a_tree_of_one_leaf() -> None:
    source = ensemble(
        tree_roots=[0, 1],
        nodes_modes=numpy_helper.from_array(np.array([0, 3], np.uint8)),
        nodes_featureids=[0, 1],
        nodes_splits=numpy_helper.from_array(np.array([0, 1], np.float32)),
        nodes_truenodeids=[0, 1],
        nodes_trueleafs=[1, 1],
        nodes_falsenodeids=[0, 2],
        nodes_falseleafs=[1, 1],
        leaf_targetids=[0, 1, 1],
        leaf_weights=numpy_helper.from_array(np.array([0.5, 1.5, -1], np.float32)),
        membership_values=None,
    )
    check_ml_down(source, MEMBERS, 4, 1, expected=[
        np.stack([np.full(len(MEMBERS), 0.5), np.where(MEMBERS[:, 1] > 1, 1.5, -1)], 1).astype(np.float32)
    ])  # fmt: skip


@pytest.mark.parametrize("post", [1, 2])
def test_confused_transforms_are_refused(post: int) -> None:
    with pytest.raises(CannotMigrate) as caught:
        lower_ml(ensemble(post_transform=post), 4)
    assert caught.value.code == "no-equal"


def test_doubles_are_refused() -> None:
    splits = numpy_helper.from_array(np.array([3.14, 0, 0]))
    weights = numpy_helper.from_array(np.array([5.23, 12.12, -12.23, 7.21]))
    source = ensemble(nodes_splits=splits, leaf_weights=weights)
    source.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    source.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    with pytest.raises(CannotMigrate) as caught:
        lower_ml(source, 3)
    assert caught.value.code == "no-equal"
    assert "opset 5 of ai.onnx.ml can be reached" in str(caught.value)


@pytest.mark.parametrize("exact", [True, False])
def test_parameters_in_tensors(exact: bool) -> None:
    plain = regressor(2)
    node = plain.graph.node[0]
    given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    for name in ("nodes_values", "target_weights", "nodes_hitrates"):
        array = np.array(given.pop(name), np.float64)
        if not exact and name == "nodes_values":
            array = array + 1e-12
        given[f"{name}_as_tensor"] = numpy_helper.from_array(array)
    source = one_node(
        "TreeEnsembleRegressor",
        given,
        {"y": (TensorProto.FLOAT, ["N", 2])},
        version=3,
        dtype=TensorProto.DOUBLE,
    )
    x = X.astype(np.float64)
    if exact:
        check_ml_down(source, x, 2, 1)
        return
    with pytest.raises(CannotMigrate) as caught:
        lower_ml(source, 1)
    assert caught.value.code == "no-equal"


def test_asked_for_with_the_opset() -> None:
    source = lift_ml(regressor(1), 5)[0]
    result = onnx_migrate.migrate(source, opset="15,ai.onnx.ml=3", simplify=False).model
    assert {entry.domain: entry.version for entry in result.opset_import} == {"": 15, ML: 3}
    assert result.graph.node[0].op_type == "TreeEnsembleRegressor"
    kept = onnx_migrate.migrate(source, opset="15,ai.onnx.ml=3+", simplify=False).model
    assert {entry.domain: entry.version for entry in kept.opset_import} == {"": 15, ML: 5}
