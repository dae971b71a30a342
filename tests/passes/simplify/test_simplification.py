"""The text says what the simplifier changed, also where the number of nodes is the same."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.simplify.simplification import Simplification

from onnx_migrate.json_form import json_of
from tests.harness import model

HEAD = '<ir_version: 8, opset_import: ["":17, "com.acme":1]>'
BEFORE = f"""{HEAD} g (float[2] x) => (float[2] y) <float[1] w = {{2.}}, float[1] v = {{3.}}> {{
  [one] a = Mul(x, w)  [two] b = Mul(a, v)  [three] y = Relu(b) }}"""


def text(after: str, before: str = BEFORE) -> str:
    return str(Simplification.of(model(before).graph, model(after).graph))


def test_operators_whose_number_changed_are_listed() -> None:
    after = f"{HEAD} g (float[2] x) => (float[2] y) <float[1] u = {{6.}}> {{ [one] b = Mul(x, u)  [three] y = Relu(b) }}"

    assert text(after) == "removed nodes without effect (Mul 1)"


def test_folds_count_whole_chains() -> None:
    before = f"""{HEAD} g (float[2,3] x) => (float[3,2] y) <int64[1] i = {{1}}, int64[1] j = {{0}}> {{
      s = Shape(x)  a = Gather(s, i)  b = Gather(s, j)  c = Concat <axis = 0> (a, b)  y = Reshape(x, c) }}"""
    after = f"{HEAD} g (float[2,3] x) => (float[3,2] y) <int64[2] c = {{3, 2}}> {{ y = Reshape(x, c) }}"

    assert text(after, before) == "folded 4 nodes into constants (Gather 2, Concat 1, Shape 1)"
    renamed = after.replace("c = {3", "m = {3").replace("(x, c)", "(x, m)")
    assert text(renamed, before) == "folded 4 nodes into constants (Gather 2, Concat 1, Shape 1)"


CONV = f"""{HEAD} g (float[1,1,4,4] x) => (float[1,1,4,4] y)
  <float[1,1,1,1] w = {{2.}}, float[1] s = {{1.}}> {{
  i = Identity(x)  c = Conv(i, w)  n = BatchNormalization(c, s, s, s, s)  d = Dropout(n)  y = Relu(d) }}"""


@pytest.mark.parametrize(("kept", "read"), [("c", "c"), ("n", "n")], ids=["conv's name", "bn's name"])
def test_fusions_name_what_took_a_node_in(kept: str, read: str) -> None:
    after = f"""{HEAD} g (float[1,1,4,4] x) => (float[1,1,4,4] y)
      <float[1,1,1,1] w2 = {{2.}}, float[1] b = {{1.}}> {{ {kept} = Conv(x, w2, b)  y = Relu({read}) }}"""

    assert text(after, CONV) == (
        "fused 1 BatchNormalization into Conv, removed nodes without effect (Dropout 1, Identity 1)"
    )


def test_nodes_written_as_another_are_listed_with_it() -> None:
    before = f"""{HEAD} g (float[2,2] x) => (float[2,2] y) <float[2,2] w = {{1.,2.,3.,4.}}, float[2] b = {{1., 2.}}> {{
      m = MatMul(x, w)  a = Add(m, b)  y = Relu(a) }}"""
    after = before.replace("m = MatMul(x, w)  a = Add(m, b)", "a = Gemm(x, w, b)")

    assert text(after, before) == "wrote 2 nodes (Add 1, MatMul 1) as Gemm 1"


def test_equal_and_unused_nodes() -> None:
    before = f"{HEAD} g (float[2] x) => (float[2] y) {{ a = Exp(x)  b = Exp(x)  c = Sin(x)  y = Add(a, b) }}"
    after = f"{HEAD} g (float[2] x) => (float[2] y) {{ a = Exp(x)  y = Add(a, a) }}"

    assert text(after, before) == "merged equal nodes (Exp 1), removed unused nodes (Sin 1)"


def test_other_operators_in_the_same_number_are_listed() -> None:
    before = f"{HEAD} g (float[2] x) => (float[2] y) {{ y = com.acme.Thing(x) }}"
    after = f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Relu(x) }}"

    assert text(after, before) == "wrote 1 node (com.acme.Thing 1) as Relu 1"


def test_the_same_operators_with_other_inputs_are_named() -> None:
    after = BEFORE.replace("Mul(a, v)", "Mul(a, w)").replace(", float[1] v = {3.}", "")

    assert text(after) == (
        "simplification added and removed no node: inputs, outputs or attributes changed at Mul 'two', 1 weight removed"
    )


def test_names_and_order_are_named() -> None:
    unnamed = BEFORE.replace("[two] ", "").replace("[three] ", "")

    assert text(BEFORE, unnamed) == "simplification added and removed no node: 2 nodes without a name got one"
    swapped = (
        f"""{HEAD} g (float[2] x) => (float[2] y, float[2] z) {{ [one] y = Relu(x)  [two] z = Abs(x) }}"""
    )
    other = swapped.replace("[one] y = Relu(x)  [two] z = Abs(x)", "[two] z = Abs(x)  [one] y = Relu(x)")
    assert text(swapped, other) == "simplification added and removed no node: it changed the order of nodes"


def test_the_table_has_all_operators() -> None:
    graph = model(BEFORE).graph

    assert json_of(Simplification.of(graph, graph)) == {
        "before": {"Mul": 2, "Relu": 1},
        "after": {"Mul": 2, "Relu": 1},
        "done": [],
    }
