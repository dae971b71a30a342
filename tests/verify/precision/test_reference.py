"""The first inner values of an original are recorded on the run that its outputs are compared with."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.evaluators import STRICT, open_model
from onnx_migrate.verify.evaluators.onnxruntime import OnnxRuntime
from onnx_migrate.verify.precision import causes, reference
from onnx_migrate.verify.precision.closeness import closeness, number_ranges
from onnx_migrate.verify.precision.errors import ROUNDING
from onnx_migrate.verify.precision.reference import reference_of
from tests.harness import model

TEXT = """17 (float[4,4] x) => (float[4,4] y) <float big = {300.0}, float small = {0.001}> {
    a = Mul (x, big)  b = Mul (a, a)  c = Mul (b, small)  y = Tanh (c) }"""


def _ranges(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, tuple[float, float, bool]], list[int]]:
    """Return the ranges of numbers, and how many outputs each run of a session gave."""
    counts: list[int] = []
    run = OnnxRuntime.run

    def counted(self: OnnxRuntime, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        found = run(self, inputs)
        counts.append(len(found))
        return found

    reference._references.clear()
    monkeypatch.setattr(OnnxRuntime, "run", counted)
    original = Runnable(structure=model(TEXT).SerializeToString())
    return number_ranges(original, Settings(isolated=False), 3, 1e4), counts


@pytest.mark.parametrize(
    ("with_others", "most", "counts"),
    [
        pytest.param(1 << 22, 1 << 28, [4] * 5, id="few bytes: one model for all inputs"),
        pytest.param(0, 1 << 28, [4, 1, 1, 1, 1], id="more: a model without them for further inputs"),
        pytest.param(0, 0, [4, 1, 1, 1, 1], id="too many to be kept, but not run again"),
    ],
)
def test_ranges_take_no_run_of_their_own(
    with_others: int, most: int, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "_WITH_OTHERS", with_others)
    monkeypatch.setattr(causes, "_BYTES", most)
    found, seen = _ranges(monkeypatch)

    assert seen == counts
    monkeypatch.undo()
    original = Runnable(structure=model(TEXT).SerializeToString())
    known = reference_of(original, original, Settings(isolated=False), 3)
    run = open_model(original, STRICT, "abcy").run(known.feeds[0].inputs)
    assert {name: top for name, (top, _, _) in found.items()} == {
        name: float(np.abs(run[name]).max()) for name in "abcy"
    }
    assert [list(one) for one in known.outputs] == [["y"]] * 5
    assert bool(known.inner_on(0)) == (most > 0)
    assert ([*known.draw_again()], [*known.draw_again()]) == ([*range(5, 14)], [])
    assert [list(one) for one in known.outputs] == [["y"]] * 14


@pytest.mark.parametrize(("share", "feeds"), [(0.1, 5), (0.5, 14)])
def test_inputs_are_drawn_again_where_an_output_is_nearly_off(share: float, feeds: int) -> None:
    """A result that is off by this share of what rounding to float16 may make."""
    text = "17 (float[4,4] x) => (float[4,4] y) <float k = {1.0}> { y = Mul (x, k) }"
    original = Runnable(structure=model(text).SerializeToString())
    off = 1.0 + share * ROUNDING[TensorProto.FLOAT16]
    other = Runnable(structure=model(text.replace("1.0", repr(off))).SerializeToString())
    reference._references.clear()
    settings = Settings(isolated=False)
    found = closeness(original, other, TensorProto.FLOAT16, settings, 3, strictly=True)
    assert found.excess == pytest.approx(share, rel=0.1)
    assert len(reference_of(original, other, settings, 3).outputs) == feeds


def test_inputs_of_a_model_that_decides_are_drawn_again_at_once() -> None:
    text = "17 (float[4,4] x) => (int64[4,1] y) { y = ArgMax (x) }"
    original = Runnable(structure=model(text).SerializeToString())
    assert len(reference_of(original, original, Settings(isolated=False), 3).outputs) == 14


@pytest.mark.parametrize("weights", [10, reference._HEAVY + 1])
def test_a_slow_model_runs_on_two_kinds_of_inputs_and_draws_no_more(weights: int) -> None:
    """A model with many weights runs on fewer kinds, but if it is slow, on as many as another slow one."""
    fast_kinds, fast = reference._kinds(0.001, weights)
    slow_kinds, slow_is_fast = reference._kinds(1000.0, weights)

    assert fast
    assert not slow_is_fast
    assert len(slow_kinds) == 2
    assert slow_kinds < fast_kinds
