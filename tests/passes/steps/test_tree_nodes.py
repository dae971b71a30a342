"""Trees are converted from one list of nodes to lists of inner nodes and leaves."""

from __future__ import annotations

from typing import Any

import pytest

from onnx_migrate.engine.steps.registry import steps

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
        (
            [(0, 0, "BRANCH_LEQ", 1, 1), (0, 1, "LEAF", 0, 0)],
            [[], [], [], []],
            "child of two",
        ),
    ],
)
def test_nodes_that_do_not_form_trees(rows: Any, votes: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        _forest(_nodes(rows), votes)
