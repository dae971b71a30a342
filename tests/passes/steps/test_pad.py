"""Pad up and down: axes, pads and values at run time, types, mode wrap; CenterCropPad down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.steps import check, check_down, lower, operators

KINDS: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "float16": np.float16,
}  # fmt: skip


def text(
    opset: int, attributes: str, pads: list[int], *, value: str = "", axes: list[int] | None = None, dtype: str = "float",
    shape: str = "4, 5",
) -> str:  # fmt: skip
    """Return a model of one Pad whose pads, value and axes are constants."""
    constants = [f"int64[{len(pads)}] p = {{{', '.join(map(str, pads))}}}"]
    constants += [f"{dtype} v = {{{value}}}"] if value else []
    constants += [f"int64[{len(axes)}] a = {{{', '.join(map(str, axes))}}}"] if axes is not None else []
    inputs = ["x", "p", "v" if value else "", "a" if axes is not None else ""]
    while not inputs[-1]:
        inputs.pop()
    return f"""{opset} ({dtype}[{shape}] x) => ({dtype}[] y)
        <{", ".join(constants)}> {{ y = Pad {attributes} ({", ".join(inputs)}) }}"""


def feeds(dtype: str = "float") -> dict[str, np.ndarray[Any, Any]]:
    """Return distinct values of a type for the input of 4 by 5."""
    return {"x": np.arange(20).reshape(4, 5).astype(KINDS[dtype])}


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("axes", [[1], [0], [-1], [1, 0], []], ids=str)
def test_axes(mode: str, axes: list[int]) -> None:
    pads = [1, 2, 0, 3][: 2 * len(axes)]
    source = text(18, f'<mode = "{mode}">', pads, axes=axes, value="2.5" if mode == "constant" else "")
    check_down(source, 17, 13, 11)
    check_down(source, 9, variants=("plain", "symbolic", "if"))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_pads_and_axes_at_run_time(dtype: str) -> None:
    source = f"18 (float[4, 5] x, int64[2] p, {dtype}[1] a) => (float[] y) {{ y = Pad (x, p, , a) }}"
    axes = [np.array([axis], KINDS[dtype]) for axis in (0, 1, -1, -2)]
    check_down(source, 17, feeds=[feeds() | {"p": np.array([1, 2]), "a": axis} for axis in axes])


def test_pads_at_run_time_of_known_axes() -> None:
    source = "18 (float[4, 5] x, int64[2] p) => (float[] y) <int64[1] a = {-1}> { y = Pad (x, p, , a) }"
    check_down(source, 17, 13, feeds=feeds() | {"p": np.array([1, 2])})


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("pads", [[1, 2, 0, 3], [-1, 2, 0, -2], [-2, -1, 1, 1], [0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "double", "int32", "int64", "uint8"])
def test_constant_pads(mode: str, pads: list[int], dtype: str) -> None:
    source = text(11, f'<mode = "{mode}">', pads, value="3" if mode == "constant" else "", dtype=dtype)
    check_down(source, 10, feeds=feeds(dtype), variants=("plain", "symbolic", "if", "function"))
    check_down(source, 9, 8, feeds=feeds(dtype), variants=("plain",))
    if dtype in ("float", "double"):
        check_down(source, 10, 7, feeds=feeds(dtype))
        assert operators(lower(source, 10)[0]) == ["Pad"]


@pytest.mark.parametrize("value", ["0.1", "1e300"])
def test_a_double_that_float32_does_not_hold(value: str) -> None:
    source = text(11, "", [1, 0, 0, 2], value=value, dtype="double")
    check_down(source, 10, 9, 8, variants=("plain", "symbolic"))


WRAP = '<mode = "wrap">'


@pytest.mark.parametrize(
    "pads", [[0, 2, 0, 1], [1, 0, 0, 0], [9, 7, 5, 12], [-1, 0, 2, -2], [0, 0, 0, 0]], ids=str
)
def test_wrap(pads: list[int]) -> None:
    check_down(text(19, WRAP, pads), 18)
    check_down(text(19, WRAP, pads), 13, 11, 9, 7, variants=("plain",))
    check_down(text(19, WRAP, pads), 11, 10, variants=("symbolic",))


@pytest.mark.parametrize("axes", [[1], [-1], [-2, 1]], ids=str)
def test_wrap_of_some_axes(axes: list[int]) -> None:
    check_down(text(19, WRAP, [1, 2] * len(axes), axes=axes), 18)


@pytest.mark.parametrize("dtype", ["double", "int32", "int64", "uint8"])
def test_wrap_of_other_types(dtype: str) -> None:
    check_down(text(19, WRAP, [1, 2, 3, 4], dtype=dtype), 18, 11, variants=("plain", "symbolic"))


def test_wrap_by_pads_at_run_time() -> None:
    source = '19 (float[4, 5] x, int64[4] p) => (float[] y) { y = Pad <mode = "wrap"> (x, p) }'
    for pads in ([0, 2, 0, 1], [-1, 7, 3, -2]):
        values = feeds() | {"p": np.array(pads)}
        check_down(source, 18, feeds=values, refused={"unranked": "needs-rank"})
        check_down(source, 11, feeds=values, variants=("plain", "symbolic"))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("pads", [[1, 2, 0, 3], [-1, 2, 1, -2], [0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_pads_at_run_time(mode: str, pads: list[int], dtype: str) -> None:
    value = ", v" if mode == "constant" else ""
    declared = f", {dtype} v" if value else ""
    source = f'11 ({dtype}[4, 5] x, int64[4] p{declared}) => ({dtype}[] y) {{ y = Pad <mode = "{mode}"> (x, p{value}) }}'
    values = feeds(dtype) | {"p": np.array(pads)} | ({"v": np.array(7, KINDS[dtype])} if value else {})
    check_down(source, 10, feeds=values, refused={"unranked": "needs-rank"})


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_an_empty_tensor(mode: str) -> None:
    pads = [1, 0, 0, 2] if mode == "constant" else [0, 1, 0, 2]
    source = text(11, f'<mode = "{mode}">', pads, shape="0, 2")
    check_down(source, 10, feeds={"x": np.zeros((0, 2), np.float32)}, variants=("plain", "symbolic"))


X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "attributes",
    [
        "pads = [1, 0, 0, 2]",
        "pads = [1, 0, 0, 2], value = 1.5",
        "pads = [1, 0, 0, 2], value = 0.0",
        "pads = [1, -1, 0, 2], value = -2.0",
        'pads = [1, 2, 2, 1], mode = "reflect"',
        'pads = [1, 2, 2, 1], mode = "edge", value = 7.0',
        'pads = [1, 2, 2, 1], mode = "constant", value = 7.0',
    ],
)
@pytest.mark.parametrize("opset", [7, 10])
def test_pad(attributes: str, opset: int) -> None:
    source = f"{opset} (float[3,4] x) => (float[A,B] y) {{ y = Pad <{attributes}> (x) }}"
    result = check(source, to=11, feeds={"x": X})
    given = len(result.graph.node[-1].input)
    assert given == (
        3 if "value" in attributes and "edge" not in attributes and "0.0" not in attributes else 2
    )


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("float16", np.float16)])
def test_the_value_has_the_data_type(kind: str, dtype: type[np.floating]) -> None:
    source = f"10 ({kind}[3,4] x) => ({kind}[5,4] y) {{ y = Pad <pads = [1, 0, 1, 0], value = 0.1> (x) }}"
    x = X.astype(dtype)
    expected = np.pad(x, ((1, 1), (0, 0)), constant_values=dtype(np.float32(0.1)))
    check(source, to=13, feeds={"x": x}, expected=[expected])


def test_paddings_of_version_1() -> None:
    source = "1 (float[3,4] x) => (float[4,6] y) { y = Pad <paddings = [1, 0, 0, 2], value = 3.0> (x) }"
    check(source, to=7, feeds={"x": X}, expected=[np.pad(X, ((1, 0), (0, 2)), constant_values=3)])


@pytest.mark.parametrize("kind", ["float", "double"])
def test_attributes_that_are_attributes_of_a_function(kind: str) -> None:
    source = f"""10 ({kind}[3] x) => ({kind}[N] y) {{ y = local.Widen <by = [1, 2], with = 0.5> (x) }}
        <opset_import: ["": 10], domain: "local"> Widen <by, with> (a) => (b)
        {{ b = Pad <pads: ints = @by, value: float = @with> (a) }}"""
    x = np.array([1, 2, 3], np.float32 if kind == "float" else np.float64)
    check(
        source, to=12, feeds={"x": x}, expected=[np.pad(x, (1, 2), constant_values=0.5)], variants=["plain"]
    )


def test_a_function_that_is_called_with_two_types() -> None:
    source = """10 (float[1] x, double[1] z) => (float[3] y, double[3] w)
        { y = local.Widen (x) w = local.Widen (z) }
        <opset_import: ["": 10], domain: "local"> Widen (a) => (b)
        { b = Pad <pads = [1, 1], value = 0.5> (a) }"""
    x = np.array([2], np.float32)
    wide = np.array([0.5, 2, 0.5])
    feeds = {"x": x, "z": x.astype(np.float64)}
    check(source, to=15, feeds=feeds, expected=[wide.astype(np.float32), wide], variants=["plain"])


def crop_pad(target: list[int], axes: str = "", *, fed: bool = False, dtype: str = "float") -> str:
    count = len(target)
    extra = f", int64[{count}] target" if fed else ""
    constant = "" if fed else f"<int64[{count}] target = {{{str(target)[1:-1]}}}>"
    return f"18 ({dtype}[2, 5, 8] x{extra}) => ({dtype}[a, b, c] y) {constant} {{ y = CenterCropPad {axes} (x, target) }}"


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize(
    ("target", "axes"),
    [
        ([2, 5, 8], ""),
        ([4, 3, 8], ""),
        ([1, 8, 5], ""),
        ([7, 4], "<axes = [1, 2]>"),
        ([4, 8], "<axes = [-1, -2]>"),
        ([0], "<axes = [1]>"),
    ],
)
def test_targets(target: list[int], axes: str, fed: bool) -> None:
    source = crop_pad(target, axes, fed=fed)
    feeds: dict[str, Any] = {"x": np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)}
    feeds["x"][0, 0, :3] = [np.nan, -0.0, np.inf]
    if fed:
        feeds["target"] = np.array(target, np.int64)
    refused = {"unranked": "needs-rank"} if axes else None
    check_down(source, 17, 13, 12, feeds=feeds, refused=refused)
    if not fed:
        check_down(source, 10, 9, 7, feeds=feeds, variants=("plain",))


@pytest.mark.parametrize(("dtype", "numpy"), [("int64", np.int64), ("uint8", np.uint8), ("bool", np.bool_)])
def test_types(dtype: str, numpy: Any) -> None:
    x = np.arange(80).reshape(2, 5, 8).astype(numpy)
    check_down(crop_pad([3, 4, 9], dtype=dtype), 17, 13, feeds={"x": x}, variants=("plain", "symbolic"))
