"""Names that a branch, loop or function defines again stand for its own values in the strict run."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import STRICT, open_model
from onnx_migrate.verify.evaluators.scopes import with_own_names
from tests.harness import model

X = np.float32([1, 2, 3, 4])
ELSE = "else_branch = b () => (float[4] o) { o = Mul(t, w) }"

SHADOWING = [
    (  # an initializer of a branch, and an outer one
        f"""(float[4] x, bool c) => (float[4] y) <float[1] w = {{3}}> {{ t = Add(x, w)
        y = If (c) <then_branch = a () => (float[4] o) <float[1] w = {{1000}}> {{ o = Add(t, w) }}, {ELSE}> }}""",
        [1004, 1005, 1006, 1007],
    ),
    (  # an initializer of a branch, and an outer node
        f"""(float[4] x, bool c) => (float[4] y) {{ w = Neg(x)  t = Add(x, w)
        y = If (c) <then_branch = a () => (float[4] o) <float[1] w = {{1000}}> {{ o = Add(t, w) }}, {ELSE}> }}""",
        [1000, 1000, 1000, 1000],
    ),
    (  # a node of a branch, and an outer initializer
        f"""(float[4] x, bool c) => (float[4] y) <float[1] w = {{3}}> {{ t = Add(x, w)
        y = If (c) <then_branch = a () => (float[4] o) {{ w = Neg(t)  o = Sub(w, t) }}, {ELSE}> }}""",
        [-8, -10, -12, -14],
    ),
    (  # an input
        f"""(float[4] w, bool c) => (float[4] y) {{ t = Add(w, w)
        y = If (c) <then_branch = a () => (float[4] o) <float[1] w = {{1000}}> {{ o = Add(t, w) }}, {ELSE}> }}""",
        [1002, 1004, 1006, 1008],
    ),
    (  # each of three bodies has its own
        f"""(float[4] x, bool c) => (float[4] y) <float[1] w = {{3}}> {{ t = Add(x, w)
        y = If (c) <then_branch = a () => (float[4] o) <float[1] w = {{1000}}> {{ q = Add(t, w)
          o = If (c) <then_branch = d () => (float[4] p) <float[1] w = {{7}}> {{ p = Add(q, w) }},
                      else_branch = e () => (float[4] p) {{ p = Mul(q, w) }}> }}, {ELSE}> }}""",
        [1011, 1012, 1013, 1014],
    ),
    (  # a loop's initializer, and its state named as an input
        """(float[4] x, bool c) => (float[4] y) <float[1] w = {3}, int64 n = {2}> { t = Add(x, w)
        y = Loop (n, c, t) <body = a (int64 i, bool c, float[4] x) => (bool c, float[4] z) <float[1] w = {1000}> {
          z = Add(x, w) }> }""",
        [2004, 2005, 2006, 2007],
    ),
    (  # a function's branch
        """(float[4] x, bool c) => (float[4] y) <float[1] w = {3}> { t = f.F (x, c)  y = Add(t, w) }
        <opset_import: ["": 17], domain: "f"> F (x, c) => (y) { w = Constant<value = float[1] {5}>()  t = Add(x, w)
        y = If (c) <then_branch = a () => (float[4] o) <float[1] w = {1000}> { o = Add(t, w) },
                    else_branch = b () => (float[4] o) { o = Mul(t, w) }> }""",
        [1009, 1010, 1011, 1012],
    ),
]


@pytest.mark.parametrize(("text", "expected"), SHADOWING)
def test_a_body_reads_its_own_value(text: str, expected: list[float]) -> None:
    proto = model(
        f"17 {text}" if "f.F" not in text else f'<ir_version: 8, opset_import: ["": 17, "f": 1]> g {text}'
    )
    given = open_model(Runnable(structure=proto.SerializeToString()), STRICT).run(
        {proto.graph.input[0].name: X, "c": np.array(True)}
    )

    assert next(iter(given.values())).tolist() == expected


def test_a_model_whose_names_are_unique_stays_as_it_is() -> None:
    """Two branches may use a name each, as neither is inside of the other."""
    proto = model(
        f"""17 (float[4] x, bool c) => (float[4] y) <float[1] w = {{3}}> {{ t = Add(x, w)
        y = If (c) <then_branch = a () => (float[4] o) {{ o = Add(t, w) }}, {ELSE}> }}"""
    )
    runnable = Runnable(structure=proto.SerializeToString())

    assert with_own_names(runnable) is runnable
