"""Which groups of nodes can be narrow is found in one session, those that add the least error for what they gain first."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from onnx import TensorProto

from onnx_migrate import files
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.evaluators.onnxruntime import OnnxRuntime
from onnx_migrate.verify.precision import groups, reference
from onnx_migrate.verify.precision.groups import Group, Narrowed, narrowed
from tests.harness import model

F16 = TensorProto.FLOAT16
SETTINGS = Settings(isolated=False)

W = "float[4,4] w = {" + ", ".join(f"{value:.4f}" for value in np.linspace(-1, 1, 16)) + "}"


def both(text: str) -> tuple[Runnable, Runnable]:
    """Return a model, and the same with every node narrow."""
    result = make_pass("precision", kind="fp16").run(Model(model(text)), ChangeLog())
    one, other = (model(text), files.inline(result))
    return Runnable(structure=one.SerializeToString()), Runnable(structure=other.SerializeToString())


def search(text: str, names: str, most: float = 0.7, products: str = "", **options: bool) -> Narrowed:
    """Return what is found of groups of one node each, by their first outputs, of which some count as products."""
    chosen = [Group((((), name),), name in products.split()) for name in names.split()]
    found = narrowed(*both(text), F16, SETTINGS, 2, chosen, most, **options)
    assert not found.problem
    return found


OVERFLOWING = (
    f"17 (float[4,4] a0) => (float[4,4] y) <{W}, float big = {{6e4}}, float small = {{1e-4}}> {{"
    + "".join(f"a{at + 1} = MatMul (a{at}, w)  " for at in range(5))
    + "b = Mul (a5, big)  c = Mul (b, small)  y = MatMul (c, w) }"
)


def test_groups_that_overflow_alone_stay() -> None:
    found = search(OVERFLOWING, "a1 a2 a3 a4 a5 b c y")

    assert found.narrow == {0, 1, 2, 3, 4, 7}
    assert [effect == np.inf for effect in found.alone] == [False] * 5 + [True, True, False]
    assert found.base < found.excess <= 0.7


SUMS = """17 (float[2,64] x) => (float[2,64] y) <float one = {1.0}, float near = {0.98828125}, float k = {1.5}> {
    a = Mul (x, one)  b = Mul (x, near)  p = Mul (a, k)  q = Mul (b, k)  y = Sub (p, q) }"""
"""y is 1.8 % of p and q, whose rounding is a quarter of its limit of 5e-3."""


@pytest.mark.parametrize(
    ("products", "narrow"),
    [("", {0, 1, 2}), ("p", {0, 1, 2}), ("y", {4}), ("a b p q y", {0, 1, 2})],
)
def test_products_are_narrow_first(products: str, narrow: set[int]) -> None:
    found = search(SUMS, "a b p q y", 11.0, products)

    assert search(SUMS, "a b p q y", 1e9).excess > 11.0 >= found.excess
    assert found.narrow == narrow


def test_what_only_moves_numbers_rounds_none() -> None:
    """A Squeeze between two wide nodes reads numbers beyond 65,504, and axes of integers beside them."""
    text = f"""17 (float[4,4] x) => (float[4,4] y) <{W}, float big = {{6e4}}, float small = {{1e-4}}, int64[1] zero = {{0}}> {{
        a = MatMul (x, w)  b = Mul (a, big)  u = Unsqueeze (b, zero)  c = Mul (u, small)  s = Squeeze (c, zero)
        y = MatMul (s, w) }}"""
    found = search(text, "a b c y")

    assert found.narrow == {0, 3}
    assert found.base < 0.1


def weights(number: float) -> str:
    """Return a model with a weight of 400 numbers near 1, of which the sum is what rounding makes of them."""
    row = ", ".join(f"{1 + number * (at % 20 - 9.5):.7f}" for at in range(400))
    return f"""17 (float[4,20] x) => (float[4,20] y) <float[20,20] w = {{{row}}}, float[20,20] v = {{{row}}},
        float[1] mean = {{-20}}> {{ a = MatMul (x, v)  b = MatMul (a, w)  y = Add (b, a) }}"""


def test_weights_are_rounded_whichever_groups_are_kept() -> None:
    found = search(weights(1e-4), "a b y", 1e-3)
    assert found.base > 1e-3
    exact = search(weights(1e-4), "a b", 1e9, weights=True)
    assert exact.base == 0
    assert exact.excess > 0
    assert exact.narrow == {0, 1}


def test_a_slow_model_is_divided_into_fewer_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    run = OnnxRuntime.run

    def counted(self: OnnxRuntime, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        counts.append(sum(name.startswith("keep_") for name in inputs))
        return run(self, inputs)

    monkeypatch.setattr(OnnxRuntime, "run", counted)
    monkeypatch.setattr(reference, "seconds_of_run", lambda *_: 10.0)
    monkeypatch.setattr(reference, "_references", {})
    monkeypatch.setattr(groups, "_FEWEST_GROUPS", 4)
    found = search(OVERFLOWING, "a1 a2 a3 a4 a5 b c y")

    assert max(counts) == 4
    assert found.narrow == {0, 1, 2, 3}
    assert len(found.alone) == 8


def test_after_its_time_no_group_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_CLOCK", -1.0)
    found = search(OVERFLOWING, "a1 a2 a3 a4 a5 b c y")

    assert found.base == np.inf
    assert found.is_late
    assert not found.narrow


def test_groups_that_the_clock_leaves_out_have_no_effect_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(groups, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    monkeypatch.setattr(groups, "_CLOCK", 6.0)
    found = search(OVERFLOWING, "a1 a2 a3 a4 a5 b c y")

    assert found.is_late
    assert np.isfinite(found.alone[:3]).all()
    assert np.isnan(found.alone[-1])


def test_an_original_that_does_not_run_so_gives_nothing() -> None:
    text = f"17 (float[4,4] x) => (float[4,4] y) <{W}> {{ a = MatMul (x, w)  y = MatMul (a, w) }}"
    missing = model(text)
    missing.graph.node[1].input[0] = "nowhere"
    original, result = (Runnable(structure=proto.SerializeToString()) for proto in (missing, model(text)))

    found = narrowed(original, result, F16, SETTINGS, 1, [Group((((), "a"),))], 1.0)

    assert "does not load" in found.problem
    assert not found.narrow
