"""The pooling operators, at the versions that changed their descriptions, attributes or types."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import model, random_feeds, run
from tests.passes.steps.test_pooling import text
from tests.steps import check, lift, refuses
from tests.support.skips import Elsewhere, skip

SUMS = {"rtol": 1e-6, "atol": 1e-6}
"""ONNX Runtime sums in another order from AveragePool-19 on (with two or more spatial axes)."""


@pytest.mark.parametrize(
    "pads", ["", ", pads = [1, 1, 1, 1]", ", pads = [0, 1, 1, 0]", ', auto_pad = "SAME_UPPER"']
)
@pytest.mark.parametrize("strides", ["", ", strides = [2, 3]"])
@pytest.mark.parametrize("include", ["", ", count_include_pad = 1"])
def test_average(pads: str, strides: str, include: str) -> None:
    attributes = f"kernel_shape = [3, 3]{pads}{strides}{include}"
    check(text("AveragePool", 7, attributes, "2, 3, 7, 7"), to=19, **SUMS)


def _counts_what_hangs_over() -> bool:
    """Return whether AveragePool-10 computes as in ONNX Runtime 1.21 to 1.23, a bug that is fixed in 1.31."""
    source = text(
        "AveragePool",
        10,
        "kernel_shape = [2], strides = [3], ceil_mode = 1, count_include_pad = 1",
        "1, 1, 4",
    )
    (result,) = run(model(source), {"x": np.ones((1, 1, 4), np.float32)})
    return bool(result.ravel()[-1] == 0.5)


@pytest.mark.parametrize("length", [5, 6, 7, 8])
@pytest.mark.parametrize("pads", ["0, 0", "1, 1", "0, 1", "1, 0"])
@pytest.mark.parametrize("include", [0, 1])
def test_average_ceil(length: int, pads: str, include: int) -> None:
    """The last window may extend beyond the padding, or start in it; with one axis the result is equal bit for bit."""
    attributes = (
        f"kernel_shape = [2], strides = [3], pads = [{pads}], ceil_mode = 1, count_include_pad = {include}"
    )
    if include and _counts_what_hangs_over():
        skip(
            "this ONNX Runtime divides by what hangs over the padding too, unlike the standard",
            Elsewhere.NEWEST,
        )
    check(text("AveragePool", 10, attributes, f"1, 2, {length}"), to=19, variants=["plain", "unranked"])


@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("length", [6, 7])
def test_auto_pad(operator: str, pad: str, length: int) -> None:
    attributes = f'kernel_shape = [3], strides = [2], auto_pad = "{pad}"'
    check(text(operator, 7, attributes, f"1, 2, {length}"), to=12)
    check(text(operator, 10, f"{attributes}, ceil_mode = 1", f"1, 2, {length}"), to=12)


@pytest.mark.parametrize("attributes", ["", ", pads = [1, 0, 1, 1]", ", strides = [2, 2]"])
def test_max(attributes: str) -> None:
    check(text("MaxPool", 7, f"kernel_shape = [3, 2]{attributes}"), to=8)


@pytest.mark.parametrize("length", [5, 6, 7])
@pytest.mark.parametrize("pads", ["0, 0", "1, 1", "0, 1"])
def test_max_ceil_and_dilations(length: int, pads: str) -> None:
    attributes = f"kernel_shape = [2], strides = [3], pads = [{pads}], ceil_mode = 1, dilations = [2]"
    check(text("MaxPool", 10, attributes, f"1, 2, {length}"), to=12, variants=["plain", "unranked"])


@pytest.mark.parametrize("order", [0, 1])
def test_max_indices(order: int) -> None:
    source = f"""8 (float[2, 3, 6, 6] x) => (float[a, b, c, d] y, int64[e, f, g, h] i)
        {{ y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2], storage_order = {order}> (x) }}"""
    check(source, to=12)


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
def test_global(operator: str) -> None:
    check(text(operator, 7, "").replace("<>", ""), to=22)


@pytest.mark.parametrize(
    "attributes", ["", ", p = 1", ", p = 3, pads = [1, 1, 1, 1]", ', auto_pad = "SAME_LOWER"']
)
def test_lp(attributes: str) -> None:
    check(text("LpPool", 7, f"kernel_shape = [2, 2], strides = [2, 2]{attributes}"), to=18, **SUMS)


@pytest.mark.parametrize("p", ["", "p = 1.0", "p = 2.0", "p = 3.0"])
def test_lp_of_version_1(p: str) -> None:
    """No runtime runs version 1."""
    source = model(text("LpPool", 1, f"kernel_shape = [2, 2]{p and ', ' + p}", "1, 2, 4, 4"))
    x = random_feeds(source)["x"]
    power = float(p.split()[-1]) if p else 2.0
    windows = np.lib.stride_tricks.sliding_window_view(np.abs(x.astype(np.float64)) ** power, (2, 2), (2, 3))
    result, _ = lift(source, 26)
    np.testing.assert_allclose(run(result, {"x": x})[0], windows.sum((-1, -2)) ** (1 / power), rtol=1e-5)


@pytest.mark.parametrize("p", ["", "p = 1.0", "p = 3.0"])
def test_global_lp_of_version_1(p: str) -> None:
    source = model(text("GlobalLpPool", 1, p or "p = 2.0", "1, 2, 4, 4"))
    if not p:
        del source.graph.node[0].attribute[:]
    x = random_feeds(source)["x"]
    power = float(p.split()[-1]) if p else 2.0
    expected = (np.abs(x.astype(np.float64)) ** power).sum((2, 3), keepdims=True) ** (1 / power)
    result, _ = lift(source, 21)
    np.testing.assert_allclose(run(result, {"x": x})[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("operator", "attributes", "code"),
    [("LpPool", "kernel_shape = [2, 2], p = 1.5", "no-equal"), ("LpPool", "p = 2.0", "invalid-node")],
)
def test_refused(operator: str, attributes: str, code: str) -> None:
    refuses(code, lift, text(operator, 1, attributes), 2)


def test_unpool() -> None:
    source = """9 (float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i) => (float[a, b, c, d] y)
        { y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i) }"""
    feeds = {
        "x": np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2),
        "i": np.array([[[[5, 7], [13, 15]]]]),
    }
    check(source, to=11, feeds=feeds)


def test_roi() -> None:
    source = """7 (float[1, 2, 6, 6] x, float[2, 5] rois) => (float[a, b, c, d] y)
        { y = MaxRoiPool <pooled_shape = [2, 2], spatial_scale = 0.5> (x, rois) }"""
    rois = np.array([[0, 0, 0, 4, 4], [0, 2, 2, 9, 7]], np.float32)
    feeds = {"x": np.random.default_rng(0).random((1, 2, 6, 6), np.float32), "rois": rois}
    check(source, to=21, feeds=feeds, newest=21)


@pytest.mark.parametrize("operator", ["GlobalLpPool", "MaxRoiPool"])
def test_the_schema_of_version_22_which_no_runtime_runs(operator: str) -> None:
    """ONNX Runtime runs both up to version 21: only the schema is checked."""
    inputs = "x" if operator == "GlobalLpPool" else "x, rois"
    attribute = "p = 3" if operator == "GlobalLpPool" else "pooled_shape = [2, 2]"
    source = model(
        f"""7 (float[1, 2, 6, 6] x, float[2, 5] rois) => (float[a, b, c, d] y)
        {{ y = {operator} <{attribute}> ({inputs}) }}"""
    )
    result, _ = lift(source, 22)
    assert result.graph.node == source.graph.node


@pytest.mark.parametrize(("operator", "to"), [("AveragePool", 7), ("MaxPool", 8)])
@pytest.mark.parametrize(("short", "long"), [("1, 0", "1, 0, 1, 0"), ("1, 1, 0, 0", "1, 1, 0, 0")])
def test_pads_of_one_number_per_axis(operator: str, to: int, short: str, long: str) -> None:
    """The first exporters wrote them; the test cases of onnx 1.0.1 record their results."""
    known = model(text(operator, 7, f"kernel_shape = [3, 3], pads = [{long}]"))

    source = text(operator, 1, f"kernel_shape = [3, 3], pads = [{short}]")
    result = check(source, to=to, expected=run(known, random_feeds(known)), **SUMS)

    (pads,) = (entry.ints for entry in result.graph.node[0].attribute if entry.name == "pads")
    assert list(pads) == [int(number) for number in long.split(", ")]
