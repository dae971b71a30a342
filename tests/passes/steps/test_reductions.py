"""The ten Reduce operators, ArgMax, ArgMin, global pools and norms: axes as attribute and input, up, down, written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import dtype_of, loads, model, random_feeds, run
from tests.steps import check, check_down, check_written_out, lift, lower, operators

TEN = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
KNOWN = ("plain", "symbolic", "if", "function")
NAMES = pytest.mark.parametrize("name", TEN)
ABOVE_1 = {"x": np.random.default_rng(3).random((2, 3, 4), np.float32) + 1}


def text(
    name: str,
    axes: list[int] | None,
    attributes: str = "",
    dtype: str = "float",
    opset: int = 18,
    y: str = "",
) -> str:
    """Return a model of one reduction with axes as input."""
    given = "" if axes is None else f"<int64[{len(axes)}] axes = {{{', '.join(map(str, axes))}}}>"
    return f"""{opset} ({dtype}[2, 3, 4] x) => ({dtype}[{y}] y) {given}
        {{ y = Reduce{name} {attributes and f"<{attributes}>"} (x{"" if axes is None else ", axes"}) }}"""


def opsets(name: str) -> tuple[int, int]:
    return (13, 12) if name == "Sum" else (18, 17)


@NAMES
@pytest.mark.parametrize("axes", [None, [], [1], [-1], [0, 2], [-3, -2, -1]], ids=str)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes(name: str, axes: list[int] | None, keepdims: int) -> None:
    opset, below = opsets(name)
    check_down(text(name, axes, f"keepdims = {keepdims}, noop_with_empty_axes = 0", opset=opset), below)
    source = text(name, axes, f"keepdims = {keepdims}", opset=opset)
    check_down(source, 12, 9, 7, variants=("plain", "symbolic", "if"))


@NAMES
@pytest.mark.parametrize("axes", [None, []], ids=str)
def test_nothing_is_reduced(name: str, axes: list[int] | None) -> None:
    opset, below = opsets(name)
    rtol = 1e-6 if name == "LogSum" else 0.0
    check_down(text(name, axes, "noop_with_empty_axes = 1", opset=opset), below, 7, rtol=rtol)
    check_down(text(name, [1], "noop_with_empty_axes = 1", opset=opset), below, 11)


@NAMES
@pytest.mark.parametrize("dtype", ["int32", "int64", "double", "float16"])
@pytest.mark.parametrize(("axes", "attributes"), [([1], ""), ([], "noop_with_empty_axes = 1")])
def test_other_types(name: str, dtype: str, axes: list[int], attributes: str) -> None:
    opset, below = opsets(name)
    feeds = {"x": np.random.default_rng(0).integers(1, 9, (2, 3, 4)).astype(dtype_of(dtype))}
    rtol = 1e-6 if attributes and name == "LogSum" else 0.0
    source = text(name, axes, attributes, dtype, opset)
    check_down(source, below, 12, feeds=feeds, variants=("plain", "if"), rtol=rtol)


@pytest.mark.parametrize("name", ["Max", "Min"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("axes", [None, [1], [-1, 0]], ids=str)
def test_extremes_of_integers(name: str, dtype: str, axes: list[int] | None) -> None:
    """Below opset 12, integers of 8 bits are computed in int32, of which ONNX Runtime has a kernel."""
    limits = np.iinfo(dtype_of(dtype))
    pool = np.array([limits.min, limits.max, 0, 1, 100], dtype_of(dtype))
    feeds = {"x": np.random.default_rng(0).choice(pool, (2, 3, 4))}
    source = text(name, axes, "keepdims = 0", dtype)
    check_down(source, 11, 9, 7, feeds=feeds, variants=("plain", "if"))
    assert all(loads(lower(source, opset)[0]) for opset in (11, 9))


@NAMES
@pytest.mark.parametrize(
    ("attributes", "axes"), [("keepdims = 1", ", axes"), ("noop_with_empty_axes = 1", "")]
)
def test_an_empty_tensor(name: str, attributes: str, axes: str) -> None:
    opset, below = opsets(name)
    call = f"Reduce{name} <{attributes}> (x{axes})"
    source = f"{opset} (float[2, 0, 4] x) => (float[] y) <int64[1] axes = {{2}}> {{ y = {call} }}"
    check_down(source, below, variants=("plain", "symbolic"))


@pytest.mark.parametrize("name", ["Sum", "Mean"])
def test_axes_at_run_time(name: str) -> None:
    opset, below = opsets(name)
    source = f"{opset} (float[2, 3] x, int64[1] axes) => (float[] y) {{ y = Reduce{name} (x, axes) }}"
    feeds = {"x": np.ones((2, 3), np.float32), "axes": np.array([1])}
    check_down(source, below, feeds=feeds, refused="needs-constant")


def test_axes_that_are_counted_from_the_rank() -> None:
    source = """18 (float[2, 3, 4] x) => (float[] y) <int64 start = {1}, int64 step = {1}> {
        s = Shape (x)  rank = Size (s)  axes = Range (start, rank, step)  y = ReduceMean (x, axes) }"""
    check_down(source, 17, 11, variants=KNOWN)


def arg(operator: str, attributes: str, opset: int = 12, x: str = "float[4, 3, 5]", y: str = "") -> str:
    return f"{opset} ({x} x) => (int64[{y}] y) {{ y = {operator} <{attributes}> (x) }}"


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_the_last_index(operator: str, axis: int, keepdims: int, last: int) -> None:
    source = arg(operator, f"axis = {axis}, keepdims = {keepdims}, select_last_index = {last}")
    check_down(source, 11, specials=False)
    check_down(source, 10, specials=False, variants=("plain", "symbolic"))
    check_down(source, 11, feeds={"x": np.random.default_rng(0).integers(0, 2, (4, 3, 5)).astype(np.float32)})


def test_the_last_index_of_a_vector_and_of_integers() -> None:
    vector = arg("ArgMax", "keepdims = 0, select_last_index = 1", x="float[4]")
    check_down(vector, 11, 10, feeds={"x": np.array([1, 2, 2, 0], np.float32)})
    integers = arg("ArgMin", "axis = 1, select_last_index = 1", x="int32[4, 6]")
    check_down(integers, 11, feeds={"x": np.random.default_rng(0).integers(0, 2, (4, 6)).astype(np.int32)})


def test_the_default_needs_no_slice() -> None:
    assert operators(lower(arg("ArgMax", "select_last_index = 0", x="float[4]"), 11)[0]) == ["ArgMax"]


# Upward: axes are attributes

UP = [
    # name, opset, attributes, shape of the result, type, IR version, whether values are above 1
    *(
        (name, opset, attributes, shape, "float", "", True)
        for name in TEN for opset in (7, 12)
        for attributes, shape in (
            ("keepdims = 1", "1, 1, 1"), ("axes = [1]", "2, 1, 4"), ("axes = [0, 2], keepdims = 0", "3"), ("keepdims = 0", ""),
        )
    ),
    *((name, 11, "axes = [-1, -3]", "1, 3, 1", "float", "", True) for name in TEN),
    *(
        (name, 12, "axes = [1]", "2, 1, 4", dtype, "", False)
        for name, dtype in (("Sum", "int32"), ("Max", "int64"), ("Max", "int8"), ("Mean", "double"))
    ),
    ("Mean", 7, "axes = [1]", "2, 1, 4", "float", " ir3", False),  # which lists its initializers
]  # fmt: skip


@pytest.mark.parametrize(("name", "opset", "attributes", "shape", "dtype", "ir", "above_1"), UP)
def test_axes_upward(
    name: str, opset: int, attributes: str, shape: str, dtype: str, ir: str, above_1: bool
) -> None:
    source = text(name, None, attributes, dtype, opset, shape).replace(f"{opset} ", f"{opset}{ir} ", 1)
    check(source, to=18, feeds=ABOVE_1 if above_1 else None)


@pytest.mark.parametrize("name", ["Sum", "Max"])
def test_an_empty_list_of_axes_means_all_axes(name: str) -> None:
    source = model(text(name, None, "axes = [0]", opset=11, y="1, 1, 1"))
    del source.graph.node[0].attribute[0].ints[:]
    check(source, to=18)


def test_axes_that_are_an_attribute_of_a_function() -> None:
    source = """12 (float[2, 3, 4] x) => (float[1, 3, 4] y, float[2, 1, 1] z, float[2, 3] w) {
            y = local.F <at = [0]> (x)
            z = local.F <at = [1, 2]> (x)
            w = local.G <at = [-1]> (x)
        }
        <domain: "local", opset_import: ["": 12]> F <at> (a) => (b) { b = ReduceSum <axes: ints = @at> (a) }
        <domain: "local", opset_import: ["": 12]> G <at> (a)
            => (b) { b = ReduceMax <axes: ints = @at, keepdims = 0> (a) }"""
    check(source, to=18, variants=["plain", "symbolic", "if"])


@pytest.mark.parametrize("name", ["LogSum", "LogSumExp"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_logarithms_of_integers(name: str, dtype: str) -> None:
    """Only onnx.reference runs opset 28: the expected values are computed by NumPy in double and truncated to integers."""
    x = np.random.default_rng(0).integers(1, 9, (2, 3, 4)).astype(dtype)
    wide = np.exp(x.astype(np.float64)) if name == "LogSumExp" else x.astype(np.float64)
    result, log = lift(text(name, None, "axes = [1]", dtype, 13, "2, 1, 4"), 28)
    assert operators(result) == ["Cast", f"Reduce{name}", "Cast"]
    assert log.changes[0].exactness.value == "equivalent"
    np.testing.assert_array_equal(
        run(result, {"x": x})[0], np.log(wide.sum(axis=1, keepdims=True)).astype(dtype)
    )


@pytest.mark.parametrize("name", ["LogSum", "LogSumExp"])
def test_logarithms_of_floats_are_unchanged(name: str) -> None:
    source = text(name, None, "keepdims = 1", y="1, 1, 1")
    result, _ = lift(source, 28)
    assert operators(result) == [f"Reduce{name}"]
    np.testing.assert_allclose(run(result, ABOVE_1)[0], run(model(source), ABOVE_1)[0], rtol=1e-6)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("opset", "attributes"), [(7, "axis = 1"), (7, "keepdims = 1"), (11, "axis = -1")])
def test_arg(operator: str, opset: int, attributes: str) -> None:
    """Of equal values the index of the first is returned at every version."""
    values = {"x": np.random.default_rng(0).integers(0, 3, (2, 3, 4)).astype(np.float32)}
    check(arg(operator, attributes, opset, "float[2, 3, 4]", "a, b, c"), to=13, feeds=values)


@NAMES
def test_axes_of_a_scalar_are_left_out(name: str) -> None:
    """ONNX Runtime runs them up to opset 10, and loads none from opset 11 on."""
    source = f"10 (float x) => (float y) {{ y = Reduce{name} <axes = [0]> (x) }}"
    result = check(source, to=11, feeds={"x": np.array(2.5, np.float32)}, variants=["plain", "if"])
    assert not result.graph.node[0].attribute


# Written out


@pytest.mark.parametrize("opset", [7, 13, 18])
@pytest.mark.parametrize("axes", [[1], [0, 2], None])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("name", ["L1", "L2", "SumSquare", "LogSumExp", "Mean", "LogSum"])
def test_a_reduction(name: str, keepdims: int, axes: list[int] | None, opset: int) -> None:
    attributes = f"keepdims = {keepdims}" + (f", axes = {axes}" if axes and opset < 18 else "")
    proto = model(text(name, axes if opset >= 18 else None, attributes, opset=opset))
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {"x": (abs(random_feeds(proto)["x"]) + 0.1).astype("float32")}
    variants = ["plain"] if name == "Mean" else KNOWN
    check_written_out(proto, f"Reduce{name}", feeds=feeds, variants=variants, rtol=1e-6, atol=1e-6)


ZERO_NORMS = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
ZERO_NORMS[0, 1] = ZERO_NORMS[:, 2, 1] = 0
WITHOUT = [
    # what a mean must know is refused
    (
        13, "2,3", "2,1", "ReduceMean <axes = [1]>",
        {"refused": {"symbolic": "needs-shape", "unranked": "needs-shape"}, "rtol": 1e-6},
    ),
    *(
        (opset, "2,3,4,5", "2,3,1,1", pool, {"refused": {"unranked": "needs-rank"}, "rtol": 1e-6, "atol": 1e-6})
        for opset in (7, 13, 22)
        for pool in (
            "GlobalAveragePool", "GlobalMaxPool",
            # ONNX Runtime has no kernel of GlobalLpPool-22
            *(("GlobalLpPool", "GlobalLpPool <p = 1>", "GlobalLpPool <p = 3>") if opset < 22 else ()),
        )
    ),
    *(
        (13, "2,3,4", "2,3,4", f"LpNormalization {given}", {"feeds": {"x": ZERO_NORMS}, "rtol": 1e-6, "atol": 1e-7})
        for given in ("", "<p = 1>", "<axis = 1>", "<axis = 0, p = 2>")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "x", "y", "call", "how"), WITHOUT)
def test_pools_and_norms(opset: int, x: str, y: str, call: str, how: dict[str, Any]) -> None:
    source = f"{opset} (float[{x}] x) => (float[{y}] y) {{ y = {call} (x) }}"
    check_written_out(source, call.split()[0], **how)
