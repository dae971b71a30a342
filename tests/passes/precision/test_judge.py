"""The judge of benchmarks/precision.py, which shares no code with the product, and the product's strict run agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import STRICT, open_model
from tests.harness import model, random_feeds
from tests.support.skips import Elsewhere, import_or_skip

import_or_skip("ml_dtypes", Elsewhere.NEWEST)

from benchmarks.precision_judge import Strict, judge, run_in_onnxruntime  # noqa: E402

HALVES = [
    # The square of 1000 overflows, which ONNX Runtime does not show. The parser takes the bits of float16.
    """17 (float16[2,3] x) => (float16[2,3] y) <float16 k = {25552}, float16 two = {16384}> {
      a = Mul(x, k)  b = Pow(a, two)  y = Sqrt(b) }""",
    "17 (float16[2,8] x, float16[8] s) => (float16[2,8] y) { a = LayerNormalization(x, s)  y = Softmax(a) }",
    "17 (float16[2,3] x) => (float[2,3] y) { a = Exp(x)  b = Cast<to = 1>(a)  y = Log(b) }",
    "17 (float16[2,3] x, int64[2] n) => (float16[2,3] y) { c = ConstantOfShape<value = float16[1] {11878}>(n)  y = Mul(x, c) }",
    """17 (float16[2,3] x, bool c) => (float16[2,3] y, float16[N,2,3] z) <int64 n = {3}, bool go = {1}> {
      a = If (c) <then_branch = t () => (float16[2,3] p) { p = Exp(x) }, else_branch = e () => (float16[2,3] q) { q = Neg(x) }>
      y, z = Loop (n, go, a) <body = b (int64 i, bool g, float16[2,3] v) => (bool d, float16[2,3] u, float16[2,3] w) {
        d = Identity(g)  u = Sin(v)  w = Mul(u, x) }> }""",
    """17 (float16[2] s, float16[4,2] x) => (float16[2] y, float16[4,2] z) {
      y, z = Scan <num_scan_inputs = 1, body = b (float16[2] v, float16[2] e) => (float16[2] u, float16[2] o) {
        w = Add(v, e)  u = Tanh(w)  o = Mul(u, e) }> (s, x) }""",
]  # fmt: skip


@pytest.mark.parametrize("text", HALVES)
def test_both_compute_the_same_bits(text: str) -> None:
    proto = model(text)
    feeds = random_feeds(proto) | {"n": np.array([2, 3])} if "int64[2] n" in text else random_feeds(proto)
    given = Strict(proto).run(feeds)
    expected = open_model(Runnable(structure=proto.SerializeToString()), STRICT).run(feeds)

    for name, value in expected.items():
        assert given[name].dtype == value.dtype
        np.testing.assert_array_equal(given[name], value)


@pytest.mark.parametrize(
    ("weight", "state"), [(0.5, "right"), (0.5035, "within"), (0.6, "off"), (np.nan, "NaN")]
)
def test_states(weight: float, state: str, tmp_path: Path) -> None:
    original = model("17 (float[2,3] x) => (float[2,3] y) <float w = {0.5}> { y = Mul(x, w) }")
    feeds = [random_feeds(original)]
    result = model(
        "17 (float[2,3] x) => (float[2,3] y) { h = Cast<to = 10>(x)  a = Mul(h, w)  y = Cast<to = 1>(a) }"
    )
    result.graph.initializer.append(onnx.numpy_helper.from_array(np.float16(weight), "w"))
    onnx.save(result, tmp_path / "result.onnx")
    found = judge(original, tmp_path / "result.onnx", "fp16", feeds, run_in_onnxruntime(original, feeds))

    assert found.state == state
