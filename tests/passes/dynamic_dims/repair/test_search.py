"""The search as a whole: its cost for repeated layers, and its refusals."""

from __future__ import annotations

import ast
import time
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from tests.steps import refuses
from tests.support.paths import ROOT
from tests.support.repairs import check_items, repaired, text


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
    {"graph_state", "hypotheses", "reshape_alignment"},
    {"node_context"},
    {"operand_edits", "rule_table"},
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
