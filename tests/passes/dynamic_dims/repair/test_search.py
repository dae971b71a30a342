"""The search for edits: hypotheses, conflicts, and what is taken back."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from onnx_migrate.passes.dynamic_dims.repair.hypotheses import Hypotheses, upstream_labels

from onnx_migrate.errors import CannotMigrate
from tests.harness import model
from tests.steps import refuses
from tests.support.paths import ROOT
from tests.support.repairs import check_items, repaired, text
from tests.support.skips import Elsewhere, skip_if


@pytest.mark.long
def test_repeated_layers_cost_one_more_attempt_in_all() -> None:
    """An attention's [T, 1, 8] → [T, 2, 4] in each of 200 layers; the time goes with the nodes."""

    def seconds(layers: int) -> float:
        nodes, last = [], "x"
        for layer in range(layers):
            nodes += [
                helper.make_node("Reshape", [last, "k"], [f"a{layer}"]),
                helper.make_node("Relu", [f"a{layer}"], [f"b{layer}"]),
                helper.make_node("Reshape", [f"b{layer}", "j"], [f"c{layer}"]),
            ]
            last = f"c{layer}"
        ends = [helper.make_tensor_value_info(name, 1, [5, 1, 8]) for name in ("x", last)]
        shapes = {"k": [5, 2, 4], "j": [5, 1, 8]}
        constants = [
            helper.make_tensor(name, TensorProto.INT64, [3], shape) for name, shape in shapes.items()
        ]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], constants)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        start = time.process_time()
        _, log = repaired(proto, {"x": {1: "N"}})
        assert len(log.changes) == 2 * layers
        return time.process_time() - start

    seconds(10)
    assert min(seconds(400) for _ in range(3)) < 12 * sorted(seconds(100) for _ in range(3))[1]


def test_a_refusal_names_the_node_and_the_constant() -> None:
    source = text("float[1,3] x", "float[1,3] y", "y = Add(x, positions)", "float[1,3] positions = {1, 2, 3}")

    check_items(source, {"x": 0}, [0])
    error = refuses("frozen-dim", repaired, source, "x:N,T")
    assert "'positions'" in str(error)


FLOORS = (
    {"domain"},
    {"table_facts", "tracked"},
    {"graph_state", "hypotheses", "reshape_alignment"},
    {"node_context"},
    {"operand_edits", "rule_table"},
    {"grids"},
    {"conflicts", "rules"},
    {"node_evaluation", "control_flow"},
    {"interpreter"},
    {"search"},
)
"""The modules of the package, from the lowest up."""


@pytest.mark.parametrize(
    "path", sorted((ROOT / "passes/dynamic_dims/repair").rglob("*.py")), ids=lambda path: path.name
)
def test_modules_import_only_from_lower_floors(path: Path) -> None:
    parts = path.relative_to(ROOT / "passes/dynamic_dims/repair").with_suffix("").parts
    if parts == ("__init__",):
        return
    own = next(number for number, floor in enumerate(FLOORS) if parts[0] in floor)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == len(parts):
            module = (node.module or "").partition(".")[0]
            floor = next(number for number, names in enumerate(FLOORS) if module in names)
            assert floor < own, f"{'/'.join(parts)} imports {module}"


@pytest.mark.parametrize(
    "mix",
    [
        "s = Softmax<axis=0>(a)",
        "s = ReduceMean<axes=[0], keepdims=1>(a)",
        "t = Transpose<perm=[1,2,0]>(a) u = Transpose<perm=[1,0,2]>(a) s = MatMul(t, u)",
        "s = CumSum(a, zero)",
    ],
)
def test_the_batch_is_not_put_where_items_would_mix(mix: str) -> None:
    """[1, 1, 4]: the batch may be either axis; along the first, items would mix."""
    source = text(
        "float[1,4] x", "float[1,1,4] y, float[p,q,r] s", f"a = Reshape(x, k) {mix} y = Identity(a)",
        "int64[3] k = {1, 1, 4}, int64 zero = {0}",
    )  # fmt: skip

    _, log = repaired(source, {"x": {0: "N"}})

    assert "axis 1 is N" in log.changes[0].reason


def test_a_node_that_mixes_under_every_interpretation_does_not_change_the_first() -> None:
    source = text(
        "float[1,4] x", "float[1,1,4] y, float s", "a = Reshape(x, k) s = ReduceMax<keepdims=0>(a) y = Identity(a)",
        "int64[3] k = {1, 1, 4}",
    )  # fmt: skip

    _, log = repaired(source, {"x": {0: "N"}})

    assert "axis 0 is N" in log.changes[0].reason


def test_the_batch_is_not_put_on_the_channels_of_weights() -> None:
    source = text(
        "float[1,1,4] x", "float[1,2,4] y", "a = Reshape(x, k) y = Conv(a, w)",
        "int64[3] k = {1, 1, 4}, float[2,1,1] w = {1, 2}",
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


def test_weights_of_a_fixed_length_are_named() -> None:
    source = text("float[4,1] x", "float[4,2] y", "y = Gemm(x, w)", "float[1,2] w = {1, 2}")

    with pytest.raises(CannotMigrate) as caught:
        repaired(source, {"x": {1: "K"}})

    assert "Gemm" in str(caught.value)
    assert "'w'" in str(caught.value)


@skip_if(onnx.defs.onnx_opset_version() < 23, "onnx is older", Elsewhere.NEWEST)
def test_the_batch_of_an_attention_is_that_of_its_query() -> None:
    """The keys, [1, 1, 3, 4]: were the batch taken for the axis of heads there, query and keys would not fit."""
    source = text(
        "float[1,3,4] x", "float[1,1,3,4] y",
        "q = Unsqueeze(x, one) h = Reshape(x, k) y = Attention(q, h, h)",
        "int64[1] one = {1}, int64[4] k = {-1, 1, 3, 4}", opset=23,
    )  # fmt: skip
    check_items(source, {"x": 0}, [0], rtol=1e-6)

    other = source.replace("-1, 1, 3, 4", "1, -1, 3, 4")
    result, reasons = check_items(other, {"x": 0}, [0], rtol=1e-6)
    assert result.graph.node
    assert any("axis 0 is N" in reason for reason in reasons)


def test_backtracking_gives_up_the_last_choice_upstream() -> None:
    hypotheses = Hypotheses()
    assert [hypotheses.choose(label, label, 2) for label in "abc"] == [0, 0, 0]

    assert hypotheses.backtrack({"a", "b"})

    hypotheses.restart()
    assert [hypotheses.choose(label, label, 2) for label in "abc"] == [0, 1, 0]
    assert hypotheses.backtrack({"a", "b"})
    hypotheses.restart()
    assert hypotheses.choose("a", "a", 2) == 1
    assert not hypotheses.backtrack({"x"})


def test_the_option_that_backtracking_reached_is_tried_first_for_its_pattern() -> None:
    hypotheses = Hypotheses()
    hypotheses.choose("layer 1", "heads", 3)
    hypotheses.backtrack({"layer 1"})
    hypotheses.restart()

    assert hypotheses.choose("layer 1", "heads", 3) == 1
    assert hypotheses.choose("layer 2", "heads", 3) == 1


def test_the_search_ends() -> None:
    hypotheses = Hypotheses()
    tries = 0
    while True:
        hypotheses.restart()
        for label in "abcd":
            hypotheses.choose(label, "same", 3)
        tries += 1
        if not hypotheses.backtrack(set("abcd")):
            break
    assert tries <= 3**4


def test_labels_upstream_are_those_of_ancestors() -> None:
    source = model(text("float[4] x", "float[4] y", "a = Relu(x) b = Neg(x) y = Abs(a)"))

    labels = upstream_labels(source, "y", nested=False)

    assert [label in labels for label in ("a", "a[1]", "y", "b")] == [True, True, True, False]
    assert "b" in upstream_labels(source, "y", nested=True)
