"""TreeEnsemble of ai.onnx.ml below 5, parameters in tensors below 3, and the lists of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.engine.steps.registry import steps
from tests.passes.steps.forests import FEATURES, ML, check_ml_down, lift_ml, lower_ml, one_node, trees
from tests.steps import refuses

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
    refuses("no-equal", lower_ml, ensemble(post_transform=post), 4)


def test_doubles_are_refused() -> None:
    splits = numpy_helper.from_array(np.array([3.14, 0, 0]))
    weights = numpy_helper.from_array(np.array([5.23, 12.12, -12.23, 7.21]))
    source = ensemble(nodes_splits=splits, leaf_weights=weights)
    source.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    source.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    error = refuses("no-equal", lower_ml, source, 3)
    assert "opset 5 of ai.onnx.ml can be reached" in error.hint


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
    refuses("no-equal", lower_ml, source, 1)


def test_asked_for_with_the_opset() -> None:
    source = lift_ml(regressor(1), 5)[0]
    result = onnx_migrate.migrate(source, opset="15,ai.onnx.ml=3", simplify=False).model
    assert {entry.domain: entry.version for entry in result.opset_import} == {"": 15, ML: 3}
    assert result.graph.node[0].op_type == "TreeEnsembleRegressor"
    kept = onnx_migrate.migrate(source, opset="15,ai.onnx.ml=3+", simplify=False).model
    assert {entry.domain: entry.version for entry in kept.opset_import} == {"": 15, ML: 5}


steps()  # so that the adapters are found


def _forest(nodes: dict[str, Any], votes: Any) -> Any:
    from onnx_migrate.passes.steps.tree_nodes import Forest  # type: ignore[import-not-found]

    return Forest(nodes, votes)


def _nodes(rows: list[tuple[int, int, str, int, int]]) -> dict[str, Any]:
    """Return nodes from rows of (tree, node, mode, true, false); feature and split are the index of the row."""
    columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
    names = ("treeids", "nodeids", "modes", "truenodeids", "falsenodeids")
    return {
        **dict(zip(names, columns, strict=True)),
        "featureids": list(range(len(rows))),
        "values": [row / 2 for row in range(len(rows))],
        "hitrates": [],
        "missing_value_tracks_true": [],
    }


STUMP = [(0, 0, "BRANCH_GT", 1, 2), (0, 1, "LEAF", 0, 0), (0, 2, "LEAF", 0, 0)]


def test_a_stump() -> None:
    forest = _forest(_nodes(STUMP), [[0, 0], [1, 2], [0, 0], [1.0, 2.0]])
    found = forest.ensemble()
    assert len(forest) == 1
    assert (found.tree_roots, found.nodes_modes, found.leaf_weights) == ([0], [3], [1.0, 2.0])
    assert (found.nodes_truenodeids, found.nodes_trueleafs) == ([0], [1])
    assert (found.nodes_falsenodeids, found.nodes_falseleafs) == ([1], [1])
    assert found.nodes_hitrates == found.nodes_missing_value_tracks_true == []


def test_the_tree_of_a_leaf_with_two_targets_is_copied_and_a_missing_weight_is_0() -> None:
    forest = _forest(_nodes(STUMP), [[0, 0, 0], [1, 2, 2], [0, 0, 4], [1.0, 2.0, 3.0]])
    found = forest.ensemble()
    assert forest.slots() == [[(0, 0), (4, 0)]]
    assert found.tree_roots == [0, 1]
    assert found.leaf_targetids == [0, 0, 4, 4]
    assert found.leaf_weights == [1.0, 2.0, 0.0, 3.0]
    assert found.nodes_truenodeids == [0, 2]
    assert found.nodes_featureids == [0, 0]


def test_two_weights_of_a_leaf_for_one_target_both_count() -> None:
    forest = _forest(_nodes(STUMP), [[0, 0, 0], [1, 1, 2], [0, 0, 0], [1.0, 2.0, 4.0]])
    assert forest.slots() == [[(0, 0), (0, 1)]]
    assert forest.ensemble().leaf_weights == [1.0, 4.0, 2.0, 0.0]


def test_trees_are_in_the_order_of_their_roots_in_the_list_of_nodes() -> None:
    rows = [(7, 2, "LEAF", 0, 0), (3, 0, "LEAF", 0, 0), (7, 1, "LEAF", 0, 0), (7, 5, "BRANCH_LEQ", 1, 2)]
    found = _forest(_nodes(rows), [[7, 7, 3], [1, 2, 0], [0, 0, 0], [1.0, 2.0, 9.0]]).ensemble()
    assert found.leaf_weights == [9.0, 1.0, 2.0]
    assert found.nodes_modes == [0, 0]
    assert found.nodes_featureids == [0, 3]
    assert (found.nodes_truenodeids, found.nodes_falsenodeids) == ([0, 1], [0, 2])


@pytest.mark.parametrize(
    ("rows", "votes", "reason"),
    [
        ([*STUMP, STUMP[1]], [[], [], [], []], "twice"),
        (STUMP[:2], [[], [], [], []], "no node 2"),
        (STUMP, [[0], [9], [0], [1.0]], "no node 9"),
        ([(0, 0, "BRANCH_LEQ", 1, 1), (0, 1, "LEAF", 0, 0)], [[], [], [], []], "child of two"),
    ],
)
def test_nodes_that_do_not_form_trees(rows: Any, votes: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        _forest(_nodes(rows), votes)
