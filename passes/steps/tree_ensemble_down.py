"""TreeEnsemble (5) downwards, which becomes TreeEnsembleRegressor, and the parameters of that, which are lists below 3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.plugins import LostTypes, LoweringRewriter, lowering

from .tree_nodes import AGGREGATES, ML, MODES, Array

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_MEMBER = 6
_MOST_NODES = 1_000_000


@lowering("TreeEnsemble", leaves=5, domain=ML, types=LostTypes.OWN)
def tree_ensemble_5_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no TreeEnsemble: TreeEnsembleRegressor has the same trees, with leaves among the nodes.

    What changes: the leaves of each tree become nodes of their own. A node that tests for one of several values becomes a chain
    of nodes, one for each value. The branch for a value that matches is repeated for each node of the chain.

    Why equal: ONNX Runtime computes both operators by one kernel, which expands the chain itself
    (onnxruntime/core/providers/cpu/ml/tree_ensemble_common.h). Bit for bit.

    Limits: onnx-migrate refuses ensembles of double and float16, since TreeEnsembleRegressor returns a float. It also refuses
    the post-transforms SOFTMAX and LOGISTIC, which ONNX Runtime confuses in TreeEnsemble.
    """
    splits, weights = _tensor(rw, "nodes_splits"), _tensor(rw, "leaf_weights")
    dtype = rw.dtype(rw.input(0))
    if splits.dtype != np.float32 or weights.dtype != np.float32 or dtype not in (None, TensorProto.FLOAT):
        rw.refuse(
            f"computes in {weights.dtype}, and below ai.onnx.ml 5 the result of an ensemble is a float",
            code="no-equal",
        )
    aggregate, post = int(rw.get("aggregate_function", 1)), int(rw.get("post_transform", 0))
    if _TRANSFORMS[post] in ("SOFTMAX", "LOGISTIC"):
        rw.refuse(
            f"its post_transform is {post}, {_TRANSFORMS[post]}, and ONNX Runtime confuses SOFTMAX and LOGISTIC",
            code="no-equal",
            hint="set post_transform to 0 and write the transform as a node",
        )
    trees = _Trees(rw, splits, weights)
    for root in rw.get("tree_roots"):
        trees.add(int(root))
    targets = int(rw.get("n_targets", 1))
    del node.attribute[:]
    rw.rename("TreeEnsembleRegressor")
    rw.set("aggregate_function", AGGREGATES[aggregate])
    rw.set("post_transform", _TRANSFORMS[post])
    rw.set("n_targets", targets)
    for name, values in trees.attributes.items():
        if values:
            rw.set(name, values)


@lowering("TreeEnsembleRegressor", "TreeEnsembleClassifier", leaves=3, domain=ML)
def tree_ensemble_3_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Parameters are lists of floats.

    What changes: the attributes whose names end in _as_tensor become lists.

    Limits: onnx-migrate refuses double parameters that float does not represent exactly.
    """
    for attribute in [stem.name for stem in node.attribute if stem.name.endswith("_as_tensor")]:
        array = _tensor(rw, attribute)
        rw.drop(attribute)
        if not array.size:
            continue
        narrow = array.astype(np.float32)
        if not np.array_equal(narrow, array, equal_nan=True):
            rw.refuse(
                f"{attribute} has doubles that float does not hold, and below ai.onnx.ml 3 parameters are floats",
                code="no-equal",
            )
        rw.set(attribute.removesuffix("_as_tensor"), narrow.tolist())


def _tensor(rw: LoweringRewriter, name: str) -> Array:
    tensor = rw.get(name)
    return (
        np.zeros(0, np.float32) if tensor is None else np.asarray(rw.scope.weights.array(tensor)).reshape(-1)
    )


_LINKS = ("truenodeids", "trueleafs", "falsenodeids", "falseleafs")
_NODE = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "hitrates",
         "missing_value_tracks_true")  # fmt: skip
_LEAF = ("treeids", "nodeids", "ids", "weights")


class _Trees:
    """The attributes of TreeEnsembleRegressor that list nodes and leaves."""

    def __init__(self, rw: LoweringRewriter, splits: Array, weights: Array) -> None:
        self._rw, self._splits, self._weights = rw, splits.tolist(), weights.tolist()
        self._modes = _tensor(rw, "nodes_modes").tolist()
        self._given = {name: rw.get(f"nodes_{name}", []) for name in (*_LINKS, "featureids")}
        self._tracks = rw.get("nodes_missing_value_tracks_true", []) or [0] * len(self._modes)
        self._hitrates = _tensor(rw, "nodes_hitrates").tolist() or [1.0] * len(self._modes)
        self._targets = rw.get("leaf_targetids", [])
        self._members = self._sets()
        self._count = 0
        self.attributes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in _NODE}
        self.attributes |= {f"target_{name}": [] for name in _LEAF}

    def _sets(self) -> dict[int, list[float]]:
        """Return the values that each node of mode BRANCH_MEMBER asks for."""
        sets: list[list[float]] = [[]]
        for value in _tensor(self._rw, "membership_values").tolist():
            if np.isnan(value):
                sets.append([])
            else:
                sets[-1].append(value)
        asking = [index for index, mode in enumerate(self._modes) if mode == _MEMBER]
        return dict(zip(asking, sets, strict=False))

    def add(self, root: int) -> None:
        """Write the tree with this root, in preorder."""
        tree, first = self._count, len(self.attributes["nodes_treeids"])
        self._count += 1
        true, true_leaf, false, false_leaf = (self._given[name][root] for name in _LINKS)
        # Still to be written: whether it is a leaf, its place, the value of a set to test for, and the link to fill in.
        alone = true_leaf == false_leaf == 1 and true == false
        pending: list[tuple[bool, int, int, tuple[str, int] | None]] = [
            (True, true, 0, None) if alone else (False, root, 0, None)
        ]
        while pending:
            leaf, index, member, link = pending.pop()
            row = len(self.attributes["nodes_treeids"])
            if row > _MOST_NODES:
                self._rw.refuse(
                    f"its sets of values would make it grow to more than {_MOST_NODES} nodes", code="no-equal"
                )
            number = row - first
            if link:
                self.attributes[link[0]][link[1]] = number
            if leaf:
                self._add("nodes", _NODE, tree, number, 0, 0.0, "LEAF", 0, 0, 1.0, 0)
                self._add("target", _LEAF, tree, number, self._targets[index], self._weights[index])
                continue
            members = self._members.get(index)
            mode = MODES[self._modes[index]] if members is None else "BRANCH_EQ"
            split = self._splits[index] if members is None else members[member] if members else float("nan")
            feature, hits, tracks = (
                values[index] for values in (self._given["featureids"], self._hitrates, self._tracks)
            )
            self._add("nodes", _NODE, tree, number, feature, split, mode, 0, 0, hits, tracks)
            if members is not None and member + 1 < len(members):
                pending.append((False, index, member + 1, ("nodes_falsenodeids", row)))
            else:
                pending.append(self._child("false", index, row))
            # The loop takes the last entry first, and in preorder that is the true branch.
            pending.append(self._child("true", index, row))

    def _child(self, branch: str, place: int, row: int) -> tuple[bool, int, int, tuple[str, int]]:
        leaf = bool(self._given[f"{branch}leafs"][place])
        return leaf, self._given[f"{branch}nodeids"][place], 0, (f"nodes_{branch}nodeids", row)

    def _add(self, prefix: str, names: Sequence[str], *values: Any) -> None:
        for name, value in zip(names, values, strict=True):
            self.attributes[f"{prefix}_{name}"].append(value)
