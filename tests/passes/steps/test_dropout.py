"""Dropout up and down: inference, training mode, the ratio, and masks that are read."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import run
from tests.steps import check, check_down, lift, refuses


def text(given: str, constants: str, mask: bool = False, inputs: str = "") -> str:
    outputs = "(float[] y, bool[] m)" if mask else "(float[] y)"
    return f"""12 (float[2, 3] x{inputs}) => {outputs} <{constants}>
        {{ y{", m" if mask else ""} = Dropout <seed = 3> (x{given}) }}"""


@pytest.mark.parametrize(
    ("given", "constants"),
    [
        (", r", "float r = {0.25}"),
        (", r, t", "float r = {0.25}, bool t = {0}"),
        (", , t", "bool t = {0}"),
        (", r, t", "float r = {0}, bool t = {1}"),
    ],
)
def test_nothing_is_dropped(given: str, constants: str) -> None:
    check_down(text(given, constants), 11, 10, 9, 7)
    check_down(text(given, constants, mask=True), 11, 10, 9)


def test_a_ratio_at_run_time_is_not_read() -> None:
    feeds = {"x": np.eye(2, 3, dtype=np.float32), "r": np.array(0.3, np.float32)}
    check_down(text(", r", "", inputs=", float r"), 11, 7, feeds=feeds)


def test_training_is_refused() -> None:
    source = text(", r, t", "float r = {0.25}, bool t = {1}")
    check_down(source, 11, refused="no-equal", expected=[], feeds={"x": np.eye(2, 3)})


def test_training_at_run_time_is_refused() -> None:
    source = text(", r, t", "float r = {0.25}", inputs=", bool t")
    feeds = {"x": np.eye(2, 3, dtype=np.float32), "t": np.array(False)}
    check_down(source, 11, feeds=feeds, refused="needs-constant")


@pytest.mark.parametrize("mask", [True, False])
def test_the_mask_of_version_10(mask: bool) -> None:
    outputs = "(float[] y, bool[] m)" if mask else "(float[] y)"
    source = f"10 (float[2, 3] x) => {outputs} {{ y, m = Dropout <ratio = 0.2> (x) }}"
    check_down(source, 9, 7)


def test_training_without_dropping_has_a_mask() -> None:
    source = text(", r, t", "float r = {0}, bool t = {1}", mask=True)
    check_down(source, 11, feeds={"x": np.eye(2, 3, dtype=np.float32)})


def test_training_with_a_ratio_at_run_time_needs_the_ratio() -> None:
    feeds = {"x": np.eye(2, 3, dtype=np.float32), "r": np.array(0, np.float32)}
    source = text(", r, t", "bool t = {1}", inputs=", float r")
    check_down(source, 11, feeds=feeds, expected=[], refused="needs-constant")


X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("attributes", ["", "<ratio = 0.3>"])
@pytest.mark.parametrize("opset", [7, 10])
def test_inference(attributes: str, opset: int) -> None:
    source = f"{opset} (float[2,3] x) => (float[2,3] y) {{ y = Dropout {attributes} (x) }}"
    check(source, to=12, feeds={"x": X}, expected=[X])


@pytest.mark.parametrize(
    ("opset", "attribute"), [(1, "<is_test = 1, ratio = 0.9>"), (6, "<is_test = 1>"), (7, "")]
)
def test_a_mask_that_nothing_reads_is_removed(opset: int, attribute: str) -> None:
    source = f"{opset} ir3 (float[2,3] x) => (float[2,3] y) {{ y, mask = Dropout {attribute} (x) }}"
    result = check(source, to=10, feeds={"x": X}, expected=[X])
    assert len(result.graph.node[0].output) == 1
    _, log = lift(source, 26)
    assert log.changes[0].exactness == "exact"


def test_a_mask_in_a_branch_is_read() -> None:
    source = """10 (float[2,3] x, bool c) => (float[2,3] y, bool[2,3] m) { y, mask = Dropout (x)
          m = If (c) <then_branch = t () => (bool[2,3] p) { p = Identity (mask) },
                      else_branch = e () => (bool[2,3] q) { q = Not (mask) }> }"""
    result, log = lift(source, 12)
    assert list(result.graph.node[0].output) == ["y", "mask"]
    assert [change.exactness for change in log.changes if change.before.op_type == "Dropout"] == ["assumed"]


def test_a_mask_of_the_data_type_becomes_bool() -> None:
    source = "9 (float[2,3] x) => (float[2,3] y, float[2,3] m) { y, m = Dropout <ratio = 0.4> (x) }"
    check(source, to=10, newest=10, feeds={"x": X})
    # Nothing is dropped; the mask is all true at version 12, and all false in ONNX Runtime's version 7.
    check(source, to=12, feeds={"x": X}, expected=[X, np.ones_like(X)])


def test_training() -> None:
    source = "6 (float[40,50] x) => (float[40,50] y, float[40,50] m) { y, m = Dropout <ratio = 0.25> (x) }"
    x = np.full((40, 50), 3, np.float32)
    for target in (12, 26):
        result, _ = lift(source, target)
        y, mask = run(result, {"x": x})
        np.testing.assert_allclose(y, x * mask / 0.75)
        assert mask.dtype == np.float32
        assert 0.6 < mask.mean() < 0.9
    refuses("no-equal", lift, source, 11)


def test_a_ratio_that_is_an_attribute_of_a_function() -> None:
    source = """11 (float[2,3] x) => (float[2,3] y) { y = local.Drop <part = 0.5> (x) }
        <opset_import: ["": 11], domain: "local"> Drop <part> (a) => (b)
        { b = Dropout <ratio: float = @part> (a) }"""
    check(source, feeds={"x": X}, expected=[X], variants=["plain"])
