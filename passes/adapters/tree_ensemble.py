"""Tree ensembles of ai.onnx.ml: TreeEnsembleRegressor and TreeEnsembleClassifier become TreeEnsemble.

What is written in ai.onnx beside has forms that opsets 13 and on do not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

from .tree_nodes import MODES, Forest

ML = "ai.onnx.ml"
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TENSORS = {"nodes_modes": np.uint8, "nodes_splits": None, "nodes_hitrates": None, "leaf_weights": None}
"""Attributes that are tensors; None stands for the type that the ensemble computes in."""

Array = np.ndarray[Any, Any]

for _operator in ("TreeEnsembleClassifier", "TreeEnsembleRegressor"):
    compatible(
        _operator, 3, domain=ML, reason="double parameters may be given, as tensors in place of the lists"
    )


@adapter("TreeEnsembleRegressor", to=5, domain=ML)
def tree_ensemble_regressor_5(node: onnx.NodeProto, rw: Rewriter) -> None:
    """TreeEnsembleRegressor was deprecated: it is written as TreeEnsemble, and what that lacks as nodes behind it.

    What changes: inner nodes and leaves are listed apart. A leaf has one target now: a tree whose leaves add to
    several is there once for each. Base values and the post-transform come behind; integers and doubles go
    through Cast, since all is of one type now.

    Limits: refused are the transforms SOFTMAX_ZERO and PROBIT, and any of a single target, which ONNX Runtime does
    not apply.
    """
    aggregate, post = rw.pop("aggregate_function", "SUM"), rw.pop("post_transform", "NONE")
    targets = rw.pop("n_targets", 0)
    if targets < 1 or aggregate not in _AGGREGATES:
        rw.refuse(f"has {targets} targets and aggregates by {aggregate}", code="invalid-node")
    if post not in ("NONE", "SOFTMAX", "LOGISTIC") or (post != "NONE" and targets == 1):
        rw.refuse(
            f"ONNX Runtime and the standard's text differ in the post-transform {post} here", code="no-equal"
        )
    output = rw.output(0)
    ensemble = _Ensemble(rw, "target", targets, aggregate)
    ensemble.write_scores(output, [ensemble.score], post)


@adapter("TreeEnsembleClassifier", to=5, domain=ML)
def tree_ensemble_classifier_5(node: onnx.NodeProto, rw: Rewriter) -> None:
    """TreeEnsembleClassifier was deprecated: it is written as TreeEnsemble, which scores, and nodes that choose the class.

    What changes: the trees, as for TreeEnsembleRegressor. Among three classes and more ArgMax chooses; for two, of
    which the leaves score one, the score is compared with 0, or with one half where no weight is negative.
    LabelEncoder gives the labels.

    Why equal: onnxruntime/core/providers/cpu/ml/tree_ensemble_aggregator.h.

    Limits: refused where the text leaves it open or ONNX Runtime differs from it: two classes that both have scores,
    the second of two alone, a class that some inputs give no vote to beside negative weights, and the transforms
    SOFTMAX_ZERO and PROBIT. For two classes and no negative weight ONNX Runtime 1.21 left LOGISTIC out; 1.31, like
    the text, does not.
    """
    post, labels = rw.pop("post_transform", "NONE"), rw.pop("classlabels_int64s", [])
    values = "values_int64s" if labels else "values_strings"
    labels = labels or rw.get("classlabels_strings", [])
    rw.drop("classlabels_strings")
    voted = set(rw.get("class_ids", []))
    single = len(labels) == 2 and voted == {0}
    if post not in ("NONE", "SOFTMAX", "LOGISTIC") or not (single or len(labels) > 2):
        rw.refuse(
            f"ONNX Runtime and the standard's text differ in the scores of {len(labels)} classes, {len(voted)} of them"
            f" voted for, with the post-transform {post}",
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
    """Return the chosen class and the two columns of scores for two classes, of which the leaves score one."""
    score, positive = ensemble.score, bool((ensemble.weights >= 0).all())
    limit = ensemble.constant(0.5 if positive else 0.0, "limit")
    above = _after(rw, "Cast", [_after(rw, "Greater", [score, limit])], to=int(TensorProto.INT64))
    chosen = _after(rw, "Reshape", [above, rw.constant(np.array([-1]), "flat")])
    if post == "LOGISTIC":
        rw.note("Sigmoid gives the scores", Exactness.EQUIVALENT)
        return chosen, [_after(rw, "Sigmoid", [_after(rw, "Neg", [score])]), _after(rw, "Sigmoid", [score])]
    if positive:
        return chosen, [_after(rw, "Sub", [ensemble.constant(1.0, "one"), score]), score]
    return chosen, [_after(rw, "Neg", [score]), score]


class _Ensemble:
    """The node made a TreeEnsemble whose value `score` holds what the leaves add up to, base values included.

    `kind` is what the attributes of the leaves are called by, "target" or "class".
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
        # Hints of how often a node is passed: onnx takes floats alone, and ONNX Runtime the ensemble's own type.
        nodes["hitrates"] = [] if double else numbers["nodes_hitrates"]
        votes = [rw.pop(f"{kind}_{name}", []) for name in ("treeids", "nodeids", "ids")]
        if not set(nodes["modes"]) <= {*MODES, "LEAF"}:
            rw.refuse("has nodes of modes that the standard does not know", code="invalid-node")
        try:
            self._forest = Forest(nodes, [*votes, self.weights.tolist()])
        except ValueError as error:
            rw.refuse(f"its nodes are no trees: {error}", code="invalid-node")
        if not len(self._forest) or numbers["base_values"].size not in (0, targets):
            rw.refuse(
                f"has {len(self._forest)} trees, and {numbers['base_values'].size} base values for {targets} scores",
                code="invalid-node",
            )
        reached = {slot[0] for slots in self._forest.slots() for slot in slots}
        if numbers["base_values"].any() and len(reached) < targets:
            rw.refuse(
                "ONNX Runtime and the standard's text differ in base values of targets without a vote",
                code="no-equal",
            )
        copies = max(len(slots) for slots in self._forest.slots())
        if aggregate in ("MIN", "MAX") and any(
            len(votes) < len(slots)
            for slots, leaves in zip(self._forest.slots(), self._forest.leaves(), strict=True)
            for votes in leaves
        ):
            rw.refuse(f"{aggregate} of leaves that lack a vote for one target", code="no-equal")
        divided = aggregate == "AVERAGE" and copies > 1
        if copies > 1 or double:
            rw.note(
                "leaves of several targets, and doubles, are summed with other rounding", Exactness.EQUIVALENT
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
        """Take an attribute of floats, or the tensor that stands in for it."""
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
        rw.set("aggregate_function", _AGGREGATES.index(aggregate))
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
        """Refuse unless the class of the highest score is one that has got a vote, whatever the input."""
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
                "some inputs may give a class no vote, which ONNX Runtime does not count as a score of 0",
                code="no-equal",
            )

    def write_scores(self, output: str, columns: list[str], post: str) -> None:
        """Write what gives `output`, of float32, from columns of scores."""
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
        for item in (rw.node, *rw.following):
            for names in (item.input, item.output):
                for index, name in enumerate(names):
                    names[index] = output if name == value else name


def _after(rw: Rewriter, operator: str, inputs: list[str], **attributes: Any) -> str:
    name = rw.fresh(operator.lower())
    rw.after(operator, inputs, [name], **attributes)
    return name
