"""Branches and loop bodies that no input ran are named."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import onnx_migrate
from onnx_migrate.verify.equivalence.executed import not_executed
from onnx_migrate.verify.evaluators import REFERENCE, UNOPTIMIZED, Runnable
from tests.harness import model

NESTED = """<ir_version: 8, opset_import: ["": 15]>
g (float[2] x, bool c, int64 n) => (float[2] y) {
  y0 = If <then_branch = t () => (float[2] a) { a = Add(x, x) }, else_branch = e () => (float[2] b) {
    s = ReduceSum<keepdims = 0>(x)
    z = Constant<value = float {0.0}>()
    p = Greater(s, z)
    b = If <then_branch = t2 () => (float[2] a2) { a2 = Mul(x, x) }, else_branch = e2 () => (float[2] b2) { b2 = Neg(x) }>(p)
  }>(c)
  one = Constant<value = bool {1}>()
  y = Loop <body = l (int64 i, bool k, float[2] v) => (bool k2, float[2] w) {
    k2 = Identity(k)
    r = Cast<to = 9>(i)
    w = If <then_branch = t3 () => (float[2] a3) { a3 = Abs(v) }, else_branch = e3 () => (float[2] b3) { b3 = Exp(v) }>(r)
  }>(n, one, y0)
}"""

SCAN = """<ir_version: 8, opset_import: ["": 15, "f": 1]>
g (float[N, 2] x, float[2] s) => (float[2] y, float[N, 2] z) { y, z = f.each(s, x) }
<domain: "f", opset_import: ["": 15]>
each (s, x) => (y, z) {
  y, z = Scan <num_scan_inputs = 1, body = b (float[2] t, float[2] v) => (float[2] u, float[2] w) {
    u = Add(t, v)
    sum = ReduceSum<keepdims = 0>(u)
    zero = Constant<value = float {0.0}>()
    positive = Greater(sum, zero)
    w = If <then_branch = t () => (float[2] a) { a = Identity(u) }, else_branch = e () => (float[2] n) { n = Neg(u) }>(positive)
  }>(s, x)
}"""


def bodies(text: str, *feeds: dict[str, object], configuration: str = UNOPTIMIZED) -> list[str]:
    runnable = Runnable(structure=model(text).SerializeToString())
    arrays = [{name: np.asarray(value) for name, value in feed.items()} for feed in feeds]
    notes = not_executed(runnable, arrays, configuration)
    return [note.removeprefix("no input runs the ").partition(":")[0] for note in notes]


def feed(x: tuple[float, float], c: bool, n: int) -> dict[str, object]:
    return {"x": np.array(x, np.float32), "c": c, "n": np.int64(n)}


@pytest.mark.parametrize("configuration", [UNOPTIMIZED, REFERENCE])
@pytest.mark.parametrize(
    ("feeds", "idle"),
    [
        ([feed((1, 2), True, 0)], ["else branch of If 'y0' (4 nodes", "body of Loop 'y' (3 nodes"]),
        (
            [feed((1, 2), False, 1)],
            [
                "then branch of If 'y0' (1 node",
                "else branch of If 'b' (1 node",
                "then branch of If 'w' (1 node",
            ],
        ),
        ([feed((1, 2), False, 2), feed((-1, -2), False, 0)], ["then branch of If 'y0' (1 node"]),
        ([feed((1, 2), False, 2), feed((-1, -2), False, 0), feed((1, 1), True, 0)], []),
    ],
)
def test_bodies_that_no_input_runs(
    feeds: list[dict[str, object]], idle: list[str], configuration: str
) -> None:
    """Also nested ones; of one that never ran, those inside it are not named beside it."""
    assert bodies(NESTED, *feeds, configuration=configuration) == idle


@pytest.mark.parametrize(
    ("rows", "idle"), [([1, 1, 1], ["else branch"]), ([-9], ["then branch"]), ([1, -9], [])]
)
def test_an_if_in_a_scan_in_a_function(rows: list[float], idle: list[str]) -> None:
    x = np.repeat(np.array(rows, np.float32)[:, None], 2, axis=1)

    assert [
        note.partition(" of If")[0] for note in bodies(SCAN, {"x": x, "s": np.ones(2, np.float32)})
    ] == idle


def test_the_report_names_the_branch_and_its_nodes() -> None:
    inputs = {"x": np.ones(2, np.float32), "c": np.array(True), "n": np.array(1)}
    report = onnx_migrate.migrate(model(NESTED), opset=17, simplify=False, input_data=inputs).report

    assert report.verified
    words = "no input runs the else branch of If 'y0' (4 nodes: s, z, p, b)"
    assert words in " ".join(report.text().split())
    assert words in report.json()
    assert words in report.html().replace("&#39;", "'")
    assert not any("then branch of If 'y0'" in note for note in report.verification.notes)  # type: ignore[union-attr]


def test_a_model_without_bodies_is_not_run_once_more() -> None:
    plain = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 15]> g (float x) => (float y) { y = Abs(x) }'
    )
    assert list(not_executed(Runnable(structure=plain.SerializeToString()), [{}], "no such runtime")) == []
