"""Outputs behind a decision are judged by the share of their elements that another choice changes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.precision.closeness import Closeness, closeness
from onnx_migrate.verify.precision.decisions import decided_outputs
from onnx_migrate.verify.precision.errors import error_of
from tests.harness import model

F16 = TensorProto.FLOAT16


@pytest.mark.parametrize(
    ("nodes", "decided"),
    [
        ("y = Exp(x)", ""),
        ("c = Greater(x, k)  y = Where(c, x, k)", "y"),
        ("i = Cast<to = 7>(x)  y = Cast<to = 1>(i)", "y"),
        ("r = Round(x)  e = Exp(x)  y = Add(r, e)", "y"),
        # A size is computed of no elements, and a constant is never near a tie.
        ("s = Shape(x)  f = Cast<to = 1>(s)  g = Floor(f)  t = ReduceMax(g)  y = Mul(x, t)", ""),
        ("f = Floor(k)  y = Mul(x, f)", ""),
        # A choice inside of a branch.
        ("""b = ReduceMax<keepdims = 0>(x)  q = IsNaN(b)
            y = If (q) <then_branch = t () => (float[4,4] p) { p = Floor(x) }, else_branch = e () => (float[4,4] o) {
              o = Exp(x) }>""", "y"),
    ],
)  # fmt: skip
def test_outputs_behind_a_choice(nodes: str, decided: str) -> None:
    proto = model(f"17 (float[4,4] x) => (float[4,4] y) <float k = {{0.5}}> {{ {nodes} }}")
    assert decided_outputs(frames_of(proto, TypeTable(proto))[0]) == {*decided}


def compared(original: str, result: str, **options: float) -> Closeness:
    one, other = (Runnable(structure=model(text).SerializeToString()) for text in (original, result))
    return closeness(one, other, F16, Settings(isolated=False, **options), strictly=True)


def steps(off: float) -> str:
    """Return a model that rounds to whole numbers what is off by so much: so many elements become another number."""
    return f"17 (float[64,64] x) => (float[64,64] y) <float d = {{{off}}}> {{ a = Add(x, d)  y = Round(a) }}"


@pytest.mark.parametrize(("off", "agrees"), [(0.002, True), (0.05, False)])
def test_the_share_of_elements_counts(off: float, agrees: bool) -> None:
    found = compared(steps(0), steps(off))

    assert found.outputs[0].counts_elements
    assert found.outputs[0].error == pytest.approx(off, rel=0.9)
    assert found.outputs[0].limit >= 5e-3
    assert found.agrees == agrees


def test_what_only_rounding_decides_is_not_compared() -> None:
    """y tells whether x is above itself, rounded in the weight: another eighth of the elements is by chance."""
    text = """17 (float[64,64] x) => (float[64,64] y) <float one = {1}, float near = {1.0001}, float zero = {0}> {
        a = Mul(x, near)  b = Mul(x, one)  d = Sub(a, b)  g = Greater(d, zero)  y = Where(g, one, zero) }"""
    found = compared(text, text.replace("Where(g, one, zero)", "Where(g, zero, one)"))

    assert found.agrees
    assert "depends on a choice. Use --input-data with your own inputs" in found.reason
    nan = text.replace("y = Where(g, one, zero)", "r = Log(zero)  y = Where(g, one, r)")
    assert not compared(text, nan).agrees


def test_pixels_may_differ_by_one() -> None:
    one, other = np.array([0, 7, 255], np.uint8), np.array([1, 6, 254], np.uint8)
    assert error_of(one, other) == 0
    assert error_of(one, other + np.array([0, 3, 0], np.uint8)) == pytest.approx(1 / 3)
    assert error_of(one.astype(np.int64), other.astype(np.int64)) == 1


@pytest.mark.parametrize(("tolerance", "agrees"), [(0.02, True), (0.005, False)])
def test_a_tolerance_is_the_limit(tolerance: float, agrees: bool) -> None:
    text = "17 (float[4,4] x) => (float[4,4] y) <float k = {1.0}> { y = Mul(x, k) }"
    found = compared(text, text.replace("1.0", "1.01"), precision_tolerance=tolerance)

    assert found.outputs[0].limit == tolerance
    assert found.agrees == agrees
