"""Where a model does not run, inputs are advised only if they could help, and no dim is blamed."""

from __future__ import annotations

from typing import Any

import pytest

import onnx_migrate
from onnx_migrate.verify.equivalence.input_advice import input_advice
from tests.harness import model

SHAPES, CONSTANTS, INPUTS = (
    "these shapes whatever the inputs are",
    "depends on constants alone",
    "--input-data",
)

MODELS = {
    "a shape that never fits": (
        "(float[1,4] x) => (float[a,b] y) <int64[2] s = {3, 3}> { y = Reshape (x, s) }",
        "Reshape",
        SHAPES,
    ),
    "an open dim": ("(float[N,4] x) => (float[a,b] y) <int64[2] s = {77, 3}> { y = Reshape (x, s) }", "Reshape", INPUTS),
    "a shape of values": ("(float[1,4] x, int64[2] s) => (float[a,b] y) { y = Reshape (x, s) }", "Reshape", INPUTS),
    "constants": (
        "(float[1,4] x) => (float[a,b] y) <int64[2] s = {3, 3}, float[4] w> { r = Reshape (w, s) y = Add (x, r) }",
        "Reshape",
        CONSTANTS,
    ),
    "an index that is a constant": (
        "(float[1,4] x) => (float[a,b] y) <int64[1] i = {9}> { y = Gather <axis = 1> (x, i) }",
        "Gather",
        SHAPES,
    ),
    "an index of values": ("(float[4] x, int64[1] i) => (float[a] y) { y = Gather (x, i) }", "Gather", INPUTS),
    "a division by values": ("(int64[4] x, int64[4] z) => (int64[4] y) { y = Div (x, z) }", "Div", INPUTS),
    "a Concat": ("(float[1,4] x, float[2,3] z) => (float[a,b] y) { y = Concat <axis = 0> (x, z) }", "Concat", SHAPES),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("named", [False, True])
def test_inputs_are_advised_where_they_could_help(name: str, named: bool) -> None:
    text, operator, says = MODELS[name]
    proto = model(f"17 {text.replace(', float[4] w>', ', float[4] w = {1, 2, 3, 4}>')}")
    (node,) = [node for node in proto.graph.node if node.op_type == operator]
    node.name = "bad" if named else ""

    assert says in input_advice(proto, "bad" if named else "", f"{operator} '{node.name}': it fails")


def test_a_node_that_is_not_known_leaves_the_advice() -> None:
    proto = model(f"17 {MODELS['a shape of values'][0]}")
    assert INPUTS in input_advice(proto, "other", "it fails")
    assert INPUTS in input_advice(proto, "", "ValueError: it fails")


NEVER = {
    "no kernel": "17 (double[1,4] x) => (double[1,4] y) { y = Erf (x) }",
    "no operator": '<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[1,4] x) => (float[1,4] y) { y = my.Op (x) }',
    "a shape that never fits": f"17 {MODELS['a shape that never fits'][0]}",
}


@pytest.mark.parametrize("name", NEVER)
def test_a_model_that_does_not_run_has_no_frozen_dim(name: str) -> None:
    options: dict[str, Any] = {"dynamic_batch": True, "isolated": False}

    found = onnx_migrate.migrate(model(NEVER[name]), **options)

    assert not found.report.verified


@pytest.mark.parametrize("loads", [True, False])
def test_a_library_is_advised_only_for_an_operator_that_onnx_runtime_lacks(loads: bool) -> None:
    operator = "Relu (x)" if loads else "acme.Sharpen (x)"
    migration = onnx_migrate.migrate(
        model(f'<ir_version: 8, opset_import: ["": 17, "acme": 1]> g (float[2] x) => (float[2] y) {{ y = {operator} }}'),
        simplify=False, isolated=False,
    )  # fmt: skip
    assert migration.report.verification is not None
    assert ("--ort-library" in migration.report.verification.reason) != loads
