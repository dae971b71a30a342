"""The text says what the simplifier changed, also where the number of nodes is the same."""

from __future__ import annotations

from onnx_migrate.rewrite.simplification import Simplification
from tests.harness import model

HEAD = '<ir_version: 8, opset_import: ["":17, "com.acme":1]>'
BEFORE = f"""{HEAD} g (float[2] x) => (float[2] y) <float[1] w = {{2.}}, float[1] v = {{3.}}> {{
  [one] a = Mul(x, w)  [two] b = Mul(a, v)  [three] y = Relu(b) }}"""


def text(after: str, before: str = BEFORE) -> str:
    return str(Simplification.of(model(before).graph, model(after).graph))


def test_operators_whose_number_changed_are_listed() -> None:
    after = f"{HEAD} g (float[2] x) => (float[2] y) <float[1] u = {{6.}}> {{ [one] b = Mul(x, u)  [three] y = Relu(b) }}"

    assert text(after) == "3 nodes became 2: Mul 2 → 1"


def test_other_operators_in_the_same_number_are_listed() -> None:
    before = f"{HEAD} g (float[2] x) => (float[2] y) {{ y = com.acme.Thing(x) }}"
    after = f"{HEAD} g (float[2] x) => (float[2] y) {{ y = Relu(x) }}"

    assert text(after, before) == "1 node became another: Relu 0 → 1, com.acme.Thing 1 → 0"


def test_the_same_operators_with_other_inputs_are_named() -> None:
    after = BEFORE.replace("Mul(a, v)", "Mul(a, w)").replace(", float[1] v = {3.}", "")

    assert text(after) == (
        "no node was added or removed; inputs, outputs or attributes changed at Mul 'two', 1 weight removed"
    )


def test_names_and_order_are_named() -> None:
    unnamed = BEFORE.replace("[two] ", "").replace("[three] ", "")

    assert text(BEFORE, unnamed) == "no node was added or removed; 2 nodes without a name got one"
    swapped = (
        f"""{HEAD} g (float[2] x) => (float[2] y, float[2] z) {{ [one] y = Relu(x)  [two] z = Abs(x) }}"""
    )
    other = swapped.replace("[one] y = Relu(x)  [two] z = Abs(x)", "[two] z = Abs(x)  [one] y = Relu(x)")
    assert text(swapped, other) == "no node was added or removed; the order of nodes changed"


def test_the_table_has_all_operators() -> None:
    graph = model(BEFORE).graph

    assert Simplification.of(graph, graph).as_dict() == {
        "before": {"Mul": 2, "Relu": 1},
        "after": {"Mul": 2, "Relu": 1},
    }
