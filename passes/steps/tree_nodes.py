"""The trees of an ensemble, from one list of nodes (ai.onnx.ml 1 to 4) to lists of inner nodes and of leaves (5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["AGGREGATES", "ML", "MODES", "Array", "Ensemble", "Forest"]

ML = "ai.onnx.ml"
AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
"""The modes, each at the index that is its number in TreeEnsemble-5."""

Array = np.ndarray[Any, Any]
Slot = tuple[int, int]
"""A target, and the index of a leaf's weight among its weights for that target; each slot needs one copy of a tree."""


@dataclass
class Ensemble:
    """The attributes of TreeEnsemble that list nodes and leaves."""

    tree_roots: list[int] = field(default_factory=list)
    nodes_splits: list[float] = field(default_factory=list)
    nodes_hitrates: list[float] = field(default_factory=list)
    nodes_featureids: list[int] = field(default_factory=list)
    nodes_modes: list[int] = field(default_factory=list)
    nodes_missing_value_tracks_true: list[int] = field(default_factory=list)
    nodes_truenodeids: list[int] = field(default_factory=list)
    nodes_trueleafs: list[int] = field(default_factory=list)
    nodes_falsenodeids: list[int] = field(default_factory=list)
    nodes_falseleafs: list[int] = field(default_factory=list)
    leaf_targetids: list[int] = field(default_factory=list)
    leaf_weights: list[float] = field(default_factory=list)


class Forest:
    """An ensemble in the form of TreeEnsembleRegressor and TreeEnsembleClassifier.

    `nodes` are the attributes with the prefix "nodes_"; the keys are the rest of their names. `votes` are the tree ids, node
    ids, target ids and weights of the leaves. Raises ValueError, with the reason, if the nodes do not form trees.
    """

    def __init__(self, nodes: Mapping[str, Sequence[Any]], votes: Sequence[Sequence[Any]]) -> None:
        self._nodes = nodes
        keys = list(zip(nodes["treeids"], nodes["nodeids"], strict=True))
        self._place = {key: index for index, key in enumerate(keys)}
        if len(self._place) < len(keys):
            raise ValueError("a node is listed twice")
        self._leaf = [mode == "LEAF" for mode in nodes["modes"]]
        self._votes: dict[int, dict[Slot, float]] = {}
        for tree, number, target, weight in zip(*votes, strict=True):
            own = self._votes.setdefault(self._find(tree, number), {})
            own[target, sum(slot[0] == target for slot in own)] = weight
        children = [self._children(index) for index, leaf in enumerate(self._leaf) if not leaf]
        below = {index for pair in children for index in pair}
        self._trees = [self._walk(index) for index in range(len(keys)) if index not in below]

    def _find(self, tree: int, number: int) -> int:
        try:
            return self._place[tree, number]
        except KeyError:
            raise ValueError(f"tree {tree} has no node {number}") from None

    def _children(self, place: int) -> tuple[int, int]:
        tree = self._nodes["treeids"][place]
        ids = self._nodes["truenodeids"][place], self._nodes["falsenodeids"][place]
        return self._find(tree, ids[0]), self._find(tree, ids[1])

    def _walk(self, root: int) -> list[int]:
        """Return the indices of a tree's nodes in preorder."""
        walked: list[int] = []
        seen: set[int] = set()
        pending = [root]
        while pending:
            index = pending.pop()
            if index in seen:
                raise ValueError(f"node {index} is the child of two nodes")
            seen.add(index)
            walked.append(index)
            if not self._leaf[index]:
                pending.extend(reversed(self._children(index)))
        return walked

    def __len__(self) -> int:
        return len(self._trees)

    def slots(self) -> list[list[Slot]]:
        """Return the slots of each tree's leaves; at least one per tree, for which leaves may have no weight."""
        return [
            list(dict.fromkeys(slot for index in tree for slot in self._votes.get(index, {}))) or [(0, 0)]
            for tree in self._trees
        ]

    def leaves(self) -> Iterator[list[dict[Slot, float]]]:
        """Yield for each tree the weights of its leaves, by slot."""
        for tree in self._trees:
            yield [self._votes.get(index, {}) for index in tree if self._leaf[index]]

    def ensemble(self) -> Ensemble:
        """Return the trees in the form of TreeEnsemble, each copied for every slot; a missing weight is 0."""
        result = Ensemble()
        for tree, slots in zip(self._trees, self.slots(), strict=True):
            for slot in slots:
                self._copy(tree, slot, result)
        return result

    def _copy(self, tree: list[int], slot: Slot, result: Ensemble) -> None:
        nodes, first_node, first_leaf = self._nodes, len(result.nodes_modes), len(result.leaf_weights)
        inner = [node_index for node_index in tree if not self._leaf[node_index]]
        leaves = [node_index for node_index in tree if self._leaf[node_index]]
        index = {node_index: first_node + number for number, node_index in enumerate(inner)}
        index.update((node_index, first_leaf + number) for number, node_index in enumerate(leaves))
        result.tree_roots.append(first_node)
        for node_index in (
            inner or leaves
        ):  # a tree of one leaf becomes a node with that leaf in both branches
            leaf = self._leaf[node_index]
            true, false = (node_index, node_index) if leaf else self._children(node_index)
            result.nodes_modes.append(0 if leaf else MODES.index(nodes["modes"][node_index]))
            result.nodes_featureids.append(0 if leaf else nodes["featureids"][node_index])
            result.nodes_splits.append(0.0 if leaf else nodes["values"][node_index])
            for name in ("hitrates", "missing_value_tracks_true"):
                if len(nodes[name]):
                    getattr(result, f"nodes_{name}").append(nodes[name][node_index])
            for branch, child in (("true", true), ("false", false)):
                getattr(result, f"nodes_{branch}nodeids").append(index[child])
                getattr(result, f"nodes_{branch}leafs").append(int(self._leaf[child]))
        result.leaf_targetids.extend([slot[0]] * len(leaves))
        result.leaf_weights.extend(self._votes.get(node_index, {}).get(slot, 0.0) for node_index in leaves)
