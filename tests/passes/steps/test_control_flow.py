"""Loop below 11: one that carries no value."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import loads
from tests.lowering import check_down, lower

EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


@pytest.mark.parametrize("count", [0, 1, 4])
def test_nothing_carried(count: int) -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[2] x, int64 n) => (float[] y, int64[] z)
        <bool on = {1}> {
        y, z = Loop (n, on) <body = b (int64 i, bool c) => (bool d, float[2] s, int64 t) {
            d = Identity (c)  f = Cast <to = 1> (i)  s = Add (x, f)  t = Identity (i) }> }"""
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(count)}
    check_down(source, 10, 9, 7, feeds=feeds)


def test_a_condition_and_no_count() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (int64 last, bool on) => (int64[] z) {
        z = Loop ("", on) <body = b (int64 i, bool c) => (bool d, int64 t) { d = Less (i, last)  t = Identity (i) }> }"""
    feeds = {"last": np.array(3), "on": np.array(True)}
    check_down(source, 10, 9, feeds=feeds)


def test_a_carried_value() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[2] x, int64 n) => (float[] y) {
        y = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] s) {
            d = Identity (c)  s = Add (a, a) }> }"""
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(3)}
    check_down(source, 10, 7, feeds=feeds)


@pytest.mark.parametrize(
    "other", ["Slice <axes = [0], starts = [0], ends = [0]> (x)", "Unsqueeze <axes = [0]> (x)"]
)
def test_branches_of_different_shapes(other: str) -> None:
    from onnx.shape_inference import infer_shapes

    source = f"""<ir_version: 6, opset_import: ["": 11]> graph (float[2] x, bool c) => (float[] y) {{ y = If (c) <
        then_branch = a () => (p) {{ p = Relu (x) }}, else_branch = b () => (q) {{ q = {other} }}> }}"""
    if "Slice" in other:
        source = source.replace(other, "Slice (x, s, s)").replace(
            "(float[] y) {", "(float[] y) <int64[1] s = {0}> {"
        )
    for value in (True, False):
        feeds = {"x": np.array([1, 2], np.float32), "c": np.array(value)}
        result = check_down(source, 10, 9, feeds=feeds)
    infer_shapes(result, strict_mode=True)
    assert loads(result)
    bare = onnx.parser.parse_model(source)
    for attribute in bare.graph.node[0].attribute:
        attribute.g.output[0].ClearField("type")
    assert loads(lower(bare, 10)[0])


@pytest.mark.parametrize(
    ("opset", "body"),
    [
        (14, "y = Identity (x)"),
        (
            13,
            "y = If (c) <then_branch = a () => (p) { p = Identity (x) }, else_branch = b () => (q) { q = Identity (x) }>",
        ),
    ],
)
def test_sequences_are_refused(opset: int, body: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": {opset}]> graph (seq(float[2]) x, bool c) => (seq(float[2]) y) {{ {body} }}"""
    with pytest.raises(CannotMigrate) as caught:
        lower(source, opset - 1)
    assert caught.value.code == "no-equal"
    assert "sequence" in str(caught.value)
