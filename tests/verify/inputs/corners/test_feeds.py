"""Each corner: two models that agree on random numbers, and a feed on which they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_migrate.verify import Settings
from onnx_migrate.verify.equivalence.feed_search import Extent
from onnx_migrate.verify.equivalence.original_run import run_original
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError, open_model
from onnx_migrate.verify.inputs.corners.feeds import Corners
from tests.verify.harness import Net, net, random_inputs, runnable


def told_apart_by(before: Net, after: Net) -> set[str]:
    """Return the feeds on which two models plainly differ, or the second does not run."""
    original, result = runnable(before), runnable(after)
    run = run_original(original, result, Settings(), Extent(corners=True))
    model, found = open_model(result, LEVELS[0]), set()
    for feed, expected in zip(run.feeds, run.runs[run.first], strict=True):
        try:
            outputs = model.run(feed.inputs)
        except EvaluationError:
            found.add(feed.name)
            continue
        if not all(_alike(expected[name], value) for name, value in outputs.items()):
            found.add(feed.name)
    return found


def _alike(one: Any, other: Any) -> bool:
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    finite = one[np.isfinite(one)]
    atol = 1e-5 * float(np.max(np.abs(finite), initial=0.0))
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=0, atol=atol, equal_nan=True))


COMPARED = "(float[3,5] x) => (bool[3,5] y) <float c = {0.5}> { y = Less(x, c) }"
AFFINE = """(float[3,5] x) => (bool[3,5] y) <float c = {7.0}, float two = {2.0}, float one = {1.0}>
    { a = Mul(x, two) b = Add(a, one) y = Less(b, c) }"""
CLIPPED = "(float[8] x) => (float[8] y) <float c = {2000.0}> { y = Min(x, c) }"
CONDITION = """(float[4] x, int32 n) => (float[4] y) <int32 k = {1000}> { c = Greater(n, k)
    y = If(c) <then_branch = t () => (float[4] a) { a = Neg(x) }, else_branch = e () => (float[4] b) { b = Abs(x) }> }"""
TURNS = """(float[8] x, int64 n) => (float[8] y) { y = Loop(n, "", x) <body = b (int64 i, bool ci, float[8] v)
    => (bool co, float[8] vo) <float one = {1.0}, int64 k = {60}> { co = Less(i, k) vo = Add(v, one) }> }"""
MEAN = """(float[4] x) => (bool y) <float k = {500.0}, int64[1] axes = {0}>
    { s = ReduceMean <keepdims = 0> (x, axes) y = Greater(s, k) }"""
MASKED = """(float[2,3,4] x, bool[2,1,4] m) => (float[2,3,4] y) <float low = {-1000.0}, int64[1] axes = {2}>
    { s = Where(m, x, low) y = Softmax(s) }"""
DIVIDED = MASKED.replace(
    "s = Where(m, x, low) y = Softmax(s)",
    "f = Cast<to=1>(m) e = Exp(x) w = Mul(e, f) t = ReduceSum(w, axes) y = Div(w, t)",
)
ROUNDED = "(float[8] x) => (float[8] y) <float half = {0.5}> { y = Round(x) }"
BOXES = """(float[1,6,4] b, float[1,2,6] s) => (int64[k,3] y) <int64[1] most = {3}, float[1] iou = {0.5}>
    { y = NonMaxSuppression <center_point_box = 0> (b, s, most, iou) }"""
REGIONS = """(float[1,2,8,8] x, float[3,4] r, int64[3] b) => (float[3,2,2,2] y)
    { y = RoiAlign <output_height = 2, output_width = 2, mode = "avg"> (x, r, b) }"""
FIRST = "(float[4,6] x) => (int64[4] y) { y = ArgMax <axis = 1, keepdims = 0, select_last_index = 0> (x) }"
LOGARITHM = "(float[8] x) => (float[8] y) <float one = {1.0}> { y = Softplus(x) }"
NAIVE = "(float[8] x) => (float[8] y) <float one = {1.0}> { e = Exp(x) a = Add(e, one) y = Log(a) }"
ADDED = "(float[4,4] x) => (float[4,4] y) <float zero = {0.0}> { y = Add(x, x) }"
WITHOUT_NAN = ADDED.replace("y = Add(x, x)", "n = IsNaN(x) w = Where(n, zero, x) y = Add(w, w)")
RESHAPED = "(float[N,2,4] x) => (float[N,8] y) <int64[2] s = {-1, 8}> { y = Reshape(x, s) }"
SLICED = """(float[N,3] x) => (float[M,3] y) <int64[1] s = {0}, int64[1] e = {40}, int64[1] a = {0}> { y = Slice(x, s, e, a) }"""
ROWS = "(int64[3] i) => (float[3] y) <float[5] w = {1, 2, 3, 4, 5}, int64 zero = {0}> { y = Gather(w, i) }"
REPEATED = """(float[5] x, int64[4] i, float[4] u) => (float[5] y) { y = ScatterElements <reduction = "add"> (x, i, u) }"""
ONCE = """(float[5] x, int64[4] i, float[4] u) => (float[5] y)
    { g = GatherElements(x, i) a = Add(g, u) y = ScatterElements(x, i, a) }"""
ENDS = "(int64[6] x) => (int64[6] y) <int64 one = {1}> { y = Add(x, one) }"
NARROWER = """(int64[6] x) => (int64[6] y) <int32 one = {1}> { a = Cast<to=6>(x) b = Add(a, one) y = Cast<to=7>(b) }"""
DIVISORS = "(int64[6] x, int64[6] d) => (int64[6] y) { y = Div(x, d) }"
FLAGS = "(bool a, bool b) => (bool y) { y = Or(a, b) }"
EPSILON = "(float[4,4] x) => (float[4,4] y) <float[4] s = {1, 1, 1, 1}> { y = LayerNormalization <epsilon = 0.00001> (x, s) }"

PAIRS = [
    (COMPARED, COMPARED.replace("Less", "LessOrEqual"), "corners"),
    (AFFINE, AFFINE.replace("Less", "LessOrEqual"), "corners"),
    (CLIPPED, CLIPPED.replace("2000", "2100"), "corners"),
    (CONDITION, CONDITION.replace("Neg", "Identity"), "corners"),
    (TURNS, TURNS.replace("60", "61"), "corners"),
    (MEAN, MEAN.replace("500", "510"), "equal elements"),
    (ROUNDED, ROUNDED.replace("y = Round(x)", "a = Add(x, half) y = Floor(a)"), "corners"),
    (FIRST, FIRST.replace("index = 0", "index = 1"), "corners"),
    (BOXES, BOXES.replace("0.5", "0.3"), "corners"),
    (REGIONS, REGIONS.replace("avg", "max"), "corners"),
    (ROWS, ROWS.replace("y = Gather(w, i)", "j = Max(i, zero) y = Gather(w, j)"), "corners"),
    (REPEATED, ONCE, "corners"),
    (DIVISORS, DIVISORS.replace("y = Div(x, d)", "e = Abs(d) y = Div(x, e)"), "corners"),
    (MASKED, DIVIDED, "padded masks"),
    (FLAGS, FLAGS.replace("Or(a, b)", "Identity(a)"), "masks of ones"),
    (LOGARITHM, NAIVE, "magnitudes"),
    (ENDS, NARROWER, "magnitudes"),
    (EPSILON, EPSILON.replace("0.00001", "0.000011"), "small numbers"),
    (ADDED, WITHOUT_NAN, "NaN and infinities"),
    (RESHAPED, RESHAPED.replace("-1, 8", "2, 8"), "sizes of 1"),
    (SLICED, SLICED.replace("40", "60"), "a large batch"),
]


@pytest.mark.parametrize(("before", "after", "feed"), PAIRS)
def test_a_corner_tells_models_apart_that_agree_on_random_numbers(before: str, after: str, feed: str) -> None:
    told = told_apart_by(net(before, opset=18), net(after, opset=18))
    assert any(name.startswith(feed) for name in told), told
    assert not told & {"normal", "wide"}


@pytest.mark.parametrize("before", sorted({pair[0] for pair in PAIRS}))
def test_the_feeds_of_a_model_are_the_same_each_time(before: str) -> None:
    model = net(before, opset=18)
    for one, other in zip(Corners(random_inputs(model)), Corners(random_inputs(model)), strict=True):
        for name, value in one.feed.inputs.items():
            np.testing.assert_array_equal(value, other.feed.inputs[name])


@pytest.mark.parametrize("before", [COMPARED, ROWS, MASKED, TURNS, RESHAPED])
def test_a_model_that_takes_long_has_one_feed(before: str) -> None:
    packed = Corners(random_inputs(net(before, opset=18))).packed()
    assert packed is not None
    assert packed.feed.name == "corners"


def _names(text: str) -> set[str]:
    return {corner.feed.name for corner in Corners(random_inputs(net(text, opset=18)))}


@pytest.mark.parametrize("operator", ["Relu", "Clip", "Max", "ReduceMax"])
def test_no_nan_is_fed_to_kernels_that_treat_it_by_its_position(operator: str) -> None:
    assert not any(
        "NaN" in name for name in _names(f"(float[2,8] x) => (float[2,8] y) {{ y = {operator}(x) }}")
    )
    assert any("NaN" in name for name in _names("(float[2,8] x) => (float[2,8] y) { y = Exp(x) }"))


@pytest.mark.parametrize(
    "text",
    [
        REGIONS,
        "(float[1,2,4] x, float[1,2,4] k) => (float[1,2,2] y) { t = Transpose<perm = [0, 2, 1]>(k) y = MatMul(x, t) }",
        "(float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }",
    ],
    ids=["samples", "products of inputs", "length"],
)
def test_large_numbers_are_left_out_that_cost_much_or_leave_rounding_alone(text: str) -> None:
    assert not _names(text) & {"magnitudes", "huge elements", "small numbers"}


def test_repeated_indices_are_not_written_to_without_a_reduction() -> None:
    text = "(float[5] x, int64[4] i, float[4] u) => (float[5] y) { y = ScatterElements(x, i, u) }"
    for corner in Corners(random_inputs(net(text, opset=18))):
        indices = corner.feed.inputs["i"]
        assert len(set(indices % 5)) == 4


def test_integers_at_the_ends_of_their_type_are_no_sizes() -> None:
    text = "(int64[2] s) => (float[A,B] y) { y = ConstantOfShape(s) }"
    assert all(abs(corner.feed.inputs["s"]).max() <= 256 for corner in Corners(random_inputs(net(text))))
