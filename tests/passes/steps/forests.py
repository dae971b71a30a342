"""Models of ai.onnx.ml for tests, random trees among them, and the way their lifts are checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.pass_registry import builtin_passes
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import Change, ChangeLog, Exactness
from tests.harness import VARIANTS, make_variant, model, run, same, same_bits

ML = "ai.onnx.ml"
Votes = Callable[[np.random.Generator, int], Sequence[tuple[int, float]]]
"""Maps a random generator and a tree's number to the targets and weights of a leaf."""

FEATURES = 4
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]


def trees(
    votes: Votes, count: int = 5, seed: int = 0, depth: int = 3
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of the nodes by name, and those of the leaves by their names without the prefix target_ or class_."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, list[Any]] = {
        f"nodes_{name}": []
        for name in (
            "treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids",
            "missing_value_tracks_true", "hitrates",
        )
    }  # fmt: skip
    leaves: dict[str, list[Any]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}

    def grow(tree: int, level: int, numbers: list[int]) -> int:
        own, row = len(numbers), len(nodes["nodes_treeids"])
        numbers.append(own)
        leaf = level == 0 or (level < depth and rng.random() < 0.2)
        values = {
            "treeids": tree,
            "nodeids": own,
            "featureids": 0 if leaf else int(rng.integers(FEATURES)),
            "modes": "LEAF" if leaf else str(rng.choice(MODES)),
            "values": 0.0 if leaf else float(np.float32(rng.standard_normal())),
            "truenodeids": 0,
            "falsenodeids": 0,
            "missing_value_tracks_true": 0 if leaf else int(rng.integers(2)),
            "hitrates": 1.0,
        }
        for name, value in values.items():
            nodes[f"nodes_{name}"].append(value)
        if leaf:
            for target, weight in votes(rng, tree):
                for name, value in zip(leaves, (tree, own, target, float(np.float32(weight))), strict=True):
                    leaves[name].append(value)
        else:
            nodes["nodes_truenodeids"][row] = grow(tree, level - 1, numbers)
            nodes["nodes_falsenodeids"][row] = grow(tree, level - 1, numbers)
        return own

    for tree in range(count):
        grow(tree, depth if tree else min(depth, 2), [])
    return nodes, leaves


def one_node(
    operator: str,
    attributes: Mapping[str, Any],
    outputs: Mapping[str, tuple[int, Sequence[Any]]],
    *,
    version: int = 1,
    dtype: int = TensorProto.FLOAT,
    shape: Sequence[Any] = ("N", FEATURES),
    opset: int | None = 17,
) -> onnx.ModelProto:
    """Return a model of one node of ai.onnx.ml with the input x."""
    node = helper.make_node(operator, ["x"], list(outputs), domain=ML, name="node", **attributes)
    given = helper.make_tensor_value_info("x", dtype, shape)
    results = [helper.make_tensor_value_info(name, *declared) for name, declared in outputs.items()]
    graph = helper.make_graph([node], "g", [given], results)
    imports = [helper.make_opsetid(ML, version)]
    if opset is not None:
        imports.append(helper.make_opsetid("", opset))
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def lift_ml(source: onnx.ModelProto, to: int, *, typed: bool = True) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a copy of a model at an ai.onnx.ml opset; asserts that it is legal, and its types too unless some are unknown."""
    result, log = _migrated(source, "migrate_ml", to)
    if typed:
        onnx.shape_inference.infer_shapes(result, check_type=True)
    return result, log


def lower_ml(source: onnx.ModelProto, to: int) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a copy of a model at an older opset of ai.onnx.ml, held legal there."""
    result, log = _migrated(source, "lower_ml", to)
    assert [entry.version for entry in result.opset_import if entry.domain == ML] == [to]
    return result, log


def _migrated(source: onnx.ModelProto, name: str, to: int) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    result = builtin_passes()[name](opset=to).run(Model(model(source)), log).proto  # type: ignore[call-arg]
    check_legal(result)
    check_legal(result, ML)
    return result, log


def check_ml(
    source: onnx.ModelProto,
    to: int,
    x: np.ndarray[Any, Any],
    *,
    expected: Sequence[Any] | None = None,
    exactness: Exactness | None = Exactness.EXACT,
    variants: Sequence[str] = VARIANTS,
    tolerance: float = 0.0,
) -> onnx.ModelProto:
    """Lift a model and compare its numbers, labels always exactly; None says that nothing is rewritten.

    Returns the plain variant's result.
    """
    expected = run(source, {"x": x}) if expected is None else expected
    for variant in reversed(variants):
        variation, feeds = make_variant(source, variant, {"x": x})
        result, log = lift_ml(variation, to)
        if variant == "plain":
            onnx.checker.check_model(result, full_check=True)
        actual = run(result, feeds)
        changes: list[Change] = log.changes
        assert {change.exactness for change in changes} == ({exactness} if exactness else set()), variant
        for old, new in zip(expected, actual, strict=True):
            loose = np.asarray(old).dtype.kind == "f" and tolerance
            same([old], [new], variant, rtol=tolerance if loose else 0.0, atol=tolerance if loose else 0.0)
    return result


def check_ml_down(
    source: onnx.ModelProto,
    x: np.ndarray[Any, Any],
    *targets: int,
    expected: Sequence[Any] | None = None,
    variants: Sequence[str] = VARIANTS,
) -> onnx.ModelProto:
    """Lower a model of one input x to each target and compare the bits; returns the plain variant at the last."""
    outputs = run(source, {"x": x}) if expected is None else expected
    plain = source
    for target in targets:
        for variant in variants:
            variation, feeds = make_variant(source, variant, {"x": x})
            result, _ = lower_ml(variation, target)
            if variant == "plain":
                onnx.checker.check_model(result, full_check=True)
            same_bits(outputs, run(result, feeds), f"{variant} to {target}")
            plain = result if variant == "plain" else plain
    return plain
