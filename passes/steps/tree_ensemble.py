"""Tree ensembles of ai.onnx.ml: TreeEnsembleRegressor and TreeEnsembleClassifier become TreeEnsemble (5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.plugins import Exactness, Rewriter, adapter, compatible

from .tree_nodes import AGGREGATES, ML, MODES, Array, Forest

_TENSORS = {"nodes_modes": np.uint8, "nodes_splits": None, "nodes_hitrates": None, "leaf_weights": None}
"""Attributes that are tensors, with their element type; None is the type that the ensemble computes in."""

compatible(
    "TreeEnsembleClassifier TreeEnsembleRegressor",
    3,
    domain=ML,
    reason="parameters may be doubles, given as tensors in place of lists",
)


@adapter("TreeEnsembleRegressor", to=5, domain=ML)
def tree_ensemble_regressor_5(node: onnx.NodeProto, rw: Rewriter) -> None:
    """TreeEnsembleRegressor was deprecated: it becomes TreeEnsemble, and nodes after it add the parts that TreeEnsemble lacks.

    What changes: inner nodes and leaves are listed separately. A leaf of TreeEnsemble has one target, so a tree whose leaves
    add to several targets is copied for each. Base values and the post-transform become nodes after it. Inputs of integers, and
    outputs of ensembles in double, are cast, since TreeEnsemble has one type for all.

    Limits: onnx-migrate refuses the post-transforms SOFTMAX_ZERO and PROBIT. It also refuses every post-transform of a single
    target, since ONNX Runtime does not apply it.
    """
    aggregate, post = rw.pop("aggregate_function", "SUM"), rw.pop("post_transform", "NONE")
    targets = rw.pop("n_targets", 0)
    if targets < 1 or aggregate not in AGGREGATES:
        rw.refuse(
            f"has n_targets {targets} and aggregate_function {aggregate}, which the standard does not allow",
            code="invalid-node",
        )
    if post not in ("NONE", "SOFTMAX", "LOGISTIC") or (post != "NONE" and targets == 1):
        rw.refuse(
            f"ONNX Runtime and the standard differ in the result of post_transform {post} for {targets} targets",
            code="no-equal",
        )
    output = rw.output(0)
    ensemble = _Ensemble(rw, "target", targets, aggregate)
    ensemble.write_scores(output, [ensemble.score], post)


@adapter("TreeEnsembleClassifier", to=5, domain=ML)
def tree_ensemble_classifier_5(node: onnx.NodeProto, rw: Rewriter) -> None:
    """TreeEnsembleClassifier was deprecated: it becomes TreeEnsemble, for the scores, and nodes that choose the class.

    What changes: the trees, as for TreeEnsembleRegressor. ArgMax chooses among three or more classes. If the leaves score only
    one of two classes, the score is compared with 0, or with 0.5 if no weight is negative. LabelEncoder produces the labels.

    Why equal: onnxruntime/core/providers/cpu/ml/tree_ensemble_aggregator.h.

    Limits: onnx-migrate refuses cases that the standard leaves open or ONNX Runtime computes otherwise:

    - two classes that both have scores
    - scores of the second class alone
    - negative weights with a class that has no score for some inputs
    - the post-transforms SOFTMAX_ZERO and PROBIT

    For two classes and no negative weight ONNX Runtime 1.21 does not apply LOGISTIC; 1.31 does, as the standard says.
    """
    post, labels = rw.pop("post_transform", "NONE"), rw.pop("classlabels_int64s", [])
    values = "values_int64s" if labels else "values_strings"
    labels = labels or rw.get("classlabels_strings", [])
    rw.drop("classlabels_strings")
    voted = set(rw.get("class_ids", []))
    single = len(labels) == 2 and voted == {0}
    if post not in ("NONE", "SOFTMAX", "LOGISTIC") or not (single or len(labels) > 2):
        rw.refuse(
            f"ONNX Runtime and the standard give different scores if {len(labels)} classes have leaves"
            f" for only {len(voted)}, with post_transform {post}",
            code="no-equal",
        )
    label, scores = rw.output(0), rw.output(1)
    ensemble = _Ensemble(rw, "class", 1 if single else len(labels), "SUM")
    if single:
        chosen, columns = _one_score(rw, ensemble, post)
    else:
        ensemble.need_votes(len(labels))
        chosen, columns = _after(rw, "ArgMax", [ensemble.score], axis=1, keepdims=0), [ensemble.score]
    if label:
        keys = list(range(len(labels)))
        rw.after("LabelEncoder", [chosen], [label], domain=ML, keys_int64s=keys, **{values: labels})
    if scores:
        ensemble.write_scores(scores, columns, "NONE" if single else post)


def _one_score(rw: Rewriter, ensemble: _Ensemble, post: str) -> tuple[str, list[str]]:
    """Return the index of the chosen class and both columns of scores, for two classes if leaves score only one of them."""
    score, positive = ensemble.score, bool((ensemble.weights >= 0).all())
    limit = ensemble.constant(0.5 if positive else 0.0, "limit")
    above = _after(rw, "Cast", [_after(rw, "Greater", [score, limit])], to=int(TensorProto.INT64))
    chosen = _after(rw, "Reshape", [above, rw.constant(np.array([-1]), "flat")])
    if post == "LOGISTIC":
        rw.note("the post-transform LOGISTIC is written as Sigmoid", Exactness.EQUIVALENT)
        return chosen, [_after(rw, "Sigmoid", [_after(rw, "Neg", [score])]), _after(rw, "Sigmoid", [score])]
    if positive:
        return chosen, [_after(rw, "Sub", [ensemble.constant(1.0, "one"), score]), score]
    return chosen, [_after(rw, "Neg", [score]), score]


class _Ensemble:
    """Rewrites the node as TreeEnsemble; its value `score` is the aggregate of the leaves, with base values.

    `kind` is the prefix of the attributes of leaves, "target" or "class".
    """

    def __init__(self, rw: Rewriter, kind: str, targets: int, aggregate: str) -> None:
        self._rw = rw
        self.score = rw.fresh("score")
        numbers = {name: self._numbers(name) for name in ("nodes_values", "nodes_hitrates", "base_values")}
        self.weights = self._numbers(f"{kind}_weights")
        dtype = rw.need_dtype(rw.input(0))
        double = dtype == TensorProto.DOUBLE or np.float64 in {
            array.dtype for array in (*numbers.values(), self.weights) if array.size
        }
        self.dtype = np.dtype(np.float64 if double else np.float32)
        nodes = {
            name: rw.pop(f"nodes_{name}", [])
            for name in ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
        }
        nodes["missing_value_tracks_true"] = rw.pop("nodes_missing_value_tracks_true", [])
        nodes["modes"] = [mode.decode() for mode in rw.pop("nodes_modes", [])]
        nodes["values"] = numbers["nodes_values"]
        # Hints of how often a node is visited: the standard allows float only, ONNX Runtime only the type of the ensemble.
        nodes["hitrates"] = [] if double else numbers["nodes_hitrates"]
        votes = [rw.pop(f"{kind}_{name}", []) for name in ("treeids", "nodeids", "ids")]
        if not set(nodes["modes"]) <= {*MODES, "LEAF"}:
            rw.refuse("its nodes_modes has values that the standard does not have", code="invalid-node")
        try:
            self._forest = Forest(nodes, [*votes, self.weights.tolist()])
        except ValueError as error:
            rw.refuse(f"its nodes do not form trees: {error}", code="invalid-node")
        if not len(self._forest) or numbers["base_values"].size not in (0, targets):
            rw.refuse(
                f"has {len(self._forest)} trees and {numbers['base_values'].size} base values for {targets} scores",
                code="invalid-node",
            )
        reached = {slot[0] for slots in self._forest.slots() for slot in slots}
        if numbers["base_values"].any() and len(reached) < targets:
            rw.refuse(
                "ONNX Runtime and the standard differ in base values of targets that no leaf adds to",
                code="no-equal",
            )
        copies = max(len(slots) for slots in self._forest.slots())
        if aggregate in ("MIN", "MAX") and any(
            len(votes) < len(slots)
            for slots, leaves in zip(self._forest.slots(), self._forest.leaves(), strict=True)
            for votes in leaves
        ):
            rw.refuse(
                f"aggregates by {aggregate}, and some leaves have no weight for one of the targets",
                code="no-equal",
            )
        divided = aggregate == "AVERAGE" and copies > 1
        if copies > 1 or double:
            rw.note(
                "sums of leaves with several targets, and of doubles, may round differently",
                Exactness.EQUIVALENT,
            )
        self._write(targets, "SUM" if divided else aggregate, dtype)
        if divided:
            count = self.constant(float(len(self._forest)), "trees")
            self.score = _after(rw, "Div", [self.score, count])
        self._base = numbers["base_values"]
        if self._base.size:
            name = rw.constant(self._base.astype(self.dtype), "base_values")
            self.score = _after(rw, "Add", [self.score, name])

    def _numbers(self, name: str) -> Array:
        """Remove an attribute of floats, or the tensor in place of it, and return its values."""
        tensor = self._rw.pop(f"{name}_as_tensor")
        if tensor is not None:
            self._rw.drop(name)
            return np.asarray(self._rw.scope.weights.array(tensor))
        return np.array(self._rw.pop(name, []), np.float32)

    def _write(self, targets: int, aggregate: str, dtype: int) -> None:
        rw = self._rw
        wanted = int(helper.np_dtype_to_tensor_dtype(self.dtype))
        if dtype != wanted:
            rw.node.input[0] = rw.before("Cast", [rw.input(0)], hint="features", to=wanted)
        rw.rename("TreeEnsemble")
        rw.set("n_targets", targets)
        rw.set("aggregate_function", AGGREGATES.index(aggregate))
        for name, value in vars(self._forest.ensemble()).items():
            if name in _TENSORS and value:
                array = np.array(value, _TENSORS[name] or self.dtype)
                rw.set(name, numpy_helper.from_array(array))
            elif value:
                rw.set(name, value)
        del rw.node.output[:]
        rw.node.output.append(self.score)

    def constant(self, number: float, hint: str) -> str:
        """Return a constant of the type that the ensemble computes in."""
        return self._rw.constant(np.array(number, self.dtype), hint)

    def need_votes(self, classes: int) -> None:
        """Refuse unless, for every input, some leaf has added to the class of the highest score."""
        if self._base.size:
            return
        sure: set[int] = set()
        any_vote = False
        for leaves in self._forest.leaves():
            voted = [{target for target, _ in votes} for votes in leaves]
            sure |= set.intersection(*voted)
            any_vote |= all(any(weight > 0 for weight in votes.values()) for votes in leaves)
        if len(sure) < classes and not (any_vote and bool((self.weights >= 0).all())):
            self._rw.refuse(
                "for some inputs no leaf adds to one of the classes, which ONNX Runtime does not count as a score of 0",
                code="no-equal",
            )

    def write_scores(self, output: str, columns: list[str], post: str) -> None:
        """Write nodes that compute `output`, of float32, from columns of scores."""
        rw = self._rw
        value = _after(rw, "Concat", columns, axis=1) if len(columns) > 1 else columns[0]
        if post != "NONE":
            rw.note(f"the post-transform {post} is written as a node", Exactness.EQUIVALENT)
            value = (
                _after(rw, "Softmax", [value], axis=1)
                if post == "SOFTMAX"
                else _after(rw, "Sigmoid", [value])
            )
        if self.dtype != np.float32:
            rw.after("Cast", [value], [output], to=int(TensorProto.FLOAT))
            return
        for changed in (rw.node, *rw.following):
            for names in (changed.input, changed.output):
                for index, name in enumerate(names):
                    names[index] = output if name == value else name


def _after(rw: Rewriter, operator: str, inputs: list[str], **attributes: Any) -> str:
    name = rw.fresh(operator.lower())
    rw.after(operator, inputs, [name], **attributes)
    return name
