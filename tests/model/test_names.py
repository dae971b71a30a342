"""New names clash with none of any body."""

from __future__ import annotations

from onnx_migrate.model.names import Names
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (bool c, float[2] x) => (float[2] y) <float[2] weight = {1., 2.}> {
    [node] y = If(c) <then_branch = t () => (float[2] p) { p = Add(x, weight) },
                      else_branch = e () => (float[2] q) { q = Neg(x) }>
}
<domain: "f", opset_import: ["": 17]>
Block (argument) => (b) { b = Sin(argument) }"""


def test_names_of_values_nodes_weights_branches_and_functions_are_taken() -> None:
    names = Names(model(TEXT))

    for taken in ("x", "y", "weight", "node", "p", "q", "argument", "b"):
        assert names.fresh(taken) == f"{taken}_1"


def test_a_name_is_returned_once() -> None:
    names = Names(model(TEXT))

    assert [names.fresh("free") for _ in range(3)] == ["free", "free_1", "free_2"]
