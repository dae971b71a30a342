"""Whether ONNX Runtime would compute constants for long while it loads a model with optimisation."""

from __future__ import annotations

import pytest

from onnx_migrate.facts.running_cost.obstacles import folds_for_long
from tests.verify.harness import net

LARGE = "s = Constant<value = int64[2] {40000, 40000}>() e = ConstantOfShape(s)"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (f"{LARGE} a = Cos(e) r = ReduceSum<keepdims=0>(a) y = Add(x, r)", True),
        ("y = Relu(x)", False),
        ("c = Constant<value = float[4] {1, 2, 3, 4}>() y = Add(x, c)", False),
        ("c = Constant<value = float[4] {1, 2, 3, 4}>() d = Cos(c) y = Add(x, d)", False),
    ],
    ids=["a large constant", "no constant", "a stored constant", "a small constant"],
)
def test_constants_that_take_long_are_counted(nodes, expected):
    assert folds_for_long(net(f"(float[4] x) => (float[4] y) {{ {nodes} }}"), None) is expected


def test_constants_inside_a_branch_count():
    branch = f"""(float[4] x, bool c) => (float[4] y) {{ y = If(c) <
        then_branch = t () => (float[4] a) {{ {LARGE} b = Cos(e) r = ReduceSum<keepdims=0>(b) a = Add(x, r) }},
        else_branch = f () => (float[4] d) {{ d = Identity(x) }}> }}"""
    assert folds_for_long(net(branch), None)
