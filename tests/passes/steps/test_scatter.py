"""Scatter, ScatterElements, ScatterND and TensorScatter, up and down, and reductions in rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import model, random_feeds, reference, run
from tests.steps import check, check_down, lift, operators

SHAPELESS = {"unranked": "needs-rank"}


def reduced(
    operator: str, reduction: str, indices: str, *, shape: str = "[4, 3]", updates: str = "[2, 3]"
) -> str:
    """Return a model of one scatter; `indices` declares the constant i."""
    return f"""18 (float{shape} x, float{updates} u) => (float{shape} y)
        <{indices}> {{ y = {operator} <reduction = "{reduction}"> (x, i, u) }}"""


FEEDS = {
    "x": np.array([[1, -2, 3], [4, 5, -0.0], [-7, 8, 9], [0.5, 11, 12]], np.float32),
    "u": np.array([[3, 5, -7], [0.25, -2, np.inf]], np.float32),
}
BY_ELEMENT = "int64[2, 3] i = {0, 1, 2, 2, 3, 0}"
BY_ROW = "int64[2, 1] i = {3, 1}"


EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


def elements(
    shape: list[int], places: list[int], axis: int | None = None, dtype: str = "float", index: str = "int64"
) -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"""12 ({dtype}{shape} x, {index}{places} i, {dtype}{places} u) => ({dtype}{shape} y)
        {{ y = ScatterElements {attribute} (x, i, u) }}"""


def nd(shape: list[int], places: list[int], dtype: str = "float") -> str:
    updates = [*places[:-1], *shape[places[-1] :]]
    return f"12 ({dtype}{shape} x, int64{places} i, {dtype}{updates} u) => ({dtype}{shape} y) {{ y = ScatterND (x, i, u) }}"


def data(shape: list[int], start: int = 0, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Distinct values, with NaN and the negative zero among them for floats."""
    values = (np.arange(int(np.prod(shape))) + start).astype(dtype)
    if np.dtype(dtype).kind == "f":
        values[:2] = [np.nan, -0.0][: values.size]
    return values.reshape(shape)


def rows(shape: list[int], count: int, width: int) -> np.ndarray[Any, Any]:
    """Distinct indices of `width` numbers into the first axes of a shape, some of them negative."""
    rng = np.random.default_rng(5)
    places = rng.permutation(int(np.prod(shape[:width])))[:count]
    found = np.stack(np.unravel_index(places, shape[:width]), axis=-1)
    return np.asarray(np.where(rng.random(found.shape) < 0.5, found - shape[:width], found), np.int64)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
def test_elements(axis: int | None) -> None:
    i = np.array([[0, 1, -1], [2, -3, 1]] if axis in (None, 0, -2) else [[0, 1, -1], [3, -2, 0]])
    feeds = {"x": data([3, 4]), "i": i, "u": data([2, 3], 100)}
    needs_rank = SHAPELESS if axis in (-1, -2) else None
    check_down(elements([3, 4], [2, 3], axis), 10, 9, feeds=feeds, refused=needs_rank)
    check_down(elements([3, 4], [2, 3], axis), 11, feeds=feeds)
    below = dict.fromkeys(EVERYWHERE, "no-equal")
    check_down(elements([3, 4], [2, 3], axis), 8, feeds=feeds, refused=below | (needs_rank or {}))


def test_elements_of_int32_indices_and_constants() -> None:
    feeds = {"x": data([3, 4]), "i": np.array([[0, -1]], np.int32), "u": data([1, 2], 100)}
    check_down(elements([3, 4], [1, 2], 1, index="int32"), 10, 9, feeds=feeds, refused=None)
    text = """12 (float[3, 4] x, float[1, 2] u) => (float[3, 4] y)
        <int64[1, 2] i = {0, INDEX}> { y = ScatterElements <axis = 1> (x, i, u) }"""
    del feeds["i"]
    for index in ("3", "-1"):
        check_down(text.replace("INDEX", index), 10, 9, feeds=feeds)


@pytest.mark.parametrize(
    ("shape", "places"),
    [
        ([5], [3, 1]),
        ([5], [1]),
        ([3, 4], [5, 2]),
        ([3, 4], [2]),
        ([3, 4], [2, 1]),
        ([3, 4], [1]),
        ([3, 4, 5], [2, 3, 2]),
        ([3, 4, 5], [2, 3, 3]),
        ([4, 2, 3, 2], [3, 1]),
        ([3, 4, 2, 3], [2, 2, 2]),
    ],
)
def test_nd(shape: list[int], places: list[int]) -> None:
    i = rows(shape, int(np.prod(places[:-1])), places[-1]).reshape(places)
    feeds = {"x": data(shape), "i": i, "u": data([*places[:-1], *shape[places[-1] :]], 100)}
    scalars = len(places) == 1 and places[0] == len(shape)  # [] declares no rank
    below = {"symbolic": "needs-shape", **SHAPELESS} if scalars else SHAPELESS
    check_down(nd(shape, places), 10, 9, feeds=feeds, refused=below)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint8, np.int64, np.bool_])
def test_types(dtype: Any) -> None:
    name = {"float64": "double"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    feeds = {"x": data([3, 4], 0, dtype), "i": rows([3, 4], 2, 1), "u": data([2, 4], 50, dtype)}
    check_down(nd([3, 4], [2, 1], name), 10, 9, feeds=feeds, variants=("plain",))
    feeds = {"x": data([3, 4], 0, dtype), "i": np.array([[0, 2]]), "u": data([1, 2], 50, dtype)}
    check_down(elements([3, 4], [1, 2], 1, name), 10, 9, feeds=feeds, variants=("plain",))


def test_no_updates() -> None:
    feeds = {"x": data([3, 4]), "i": np.zeros((0, 2), np.int64), "u": data([0])}
    check_down(nd([3, 4], [0, 2]), 10, 9, feeds=feeds, refused=SHAPELESS)
    feeds = {"x": data([3, 4]), "i": np.zeros((0, 1), np.int64), "u": data([0, 4])}
    check_down(nd([3, 4], [0, 1]), 10, 9, feeds=feeds, refused=SHAPELESS)
    feeds = {"x": data([3, 4]), "i": np.zeros((0, 4), np.int64), "u": data([0, 4])}
    check_down(elements([3, 4], [0, 4]), 10, 9, feeds=feeds)


@pytest.mark.parametrize("reduction", ["max", "min", "add", "mul", "none"])
@pytest.mark.parametrize(("operator", "indices"), [("ScatterElements", BY_ELEMENT), ("ScatterND", BY_ROW)])
def test_reductions(operator: str, reduction: str, indices: str) -> None:
    check_down(reduced(operator, reduction, indices), 17, 15, 13, 12, feeds=FEEDS)
    check_down(reduced(operator, reduction, indices), 10, 9, feeds=FEEDS, variants=("plain",))


def test_negative_indices_that_are_distinct() -> None:
    negative = "int64[2, 1] i = {-1, -3}"
    check_down(reduced("ScatterND", "max", negative), 17, 15, feeds=FEEDS)
    mixed = "int64[2, 1] i = {0, -3}"
    check_down(reduced("ScatterND", "max", mixed), 17, feeds=FEEDS, refused=SHAPELESS)


@pytest.mark.parametrize("reduction", ["max", "min", "add", "mul"])
@pytest.mark.parametrize(
    ("operator", "indices"),
    [
        ("ScatterElements", "int64[2, 3] i = {0, 1, 2, 2, 3, 2}"),
        ("ScatterElements", "int64[2, 3] i = {0, 1, 2, 0, -3, -2}"),
        ("ScatterND", "int64[2, 1] i = {1, 1}"),
        ("ScatterND", "int64[2, 1] i = {-3, 1}"),
    ],
)
def test_repeated_indices(operator: str, reduction: str, indices: str) -> None:
    check_down(reduced(operator, reduction, indices), 15, 10, feeds=FEEDS, refused=SHAPELESS)
    check_down(reduced(operator, reduction, indices), 13, 9, feeds=FEEDS, variants=("plain",))


def computed(
    operator: str, reduction: str, places: str, *, dtype: str = "float", axis: int | None = None
) -> str:
    attribute = "" if axis is None else f", axis = {axis}"
    return f"""18 ({dtype}[4, 3] x, int64[2, {places}] i, {dtype}[2, 3] u) => ({dtype}[4, 3] y)
        {{ y = {operator} <reduction = "{reduction}"{attribute}> (x, i, u) }}"""


@pytest.mark.parametrize("reduction", ["max", "min", "add", "mul"])
def test_computed_indices(reduction: str) -> None:
    for axis, values in (
        (0, [[0, 1, -2], [2, 1, -2]]),
        (1, [[0, 0, -1], [1, 2, -1]]),
        (None, [[0, 0, 0], [0, 0, 0]]),
    ):
        feeds = {**FEEDS, "i": np.array(values)}
        text = computed("ScatterElements", reduction, "3", axis=axis)
        check_down(text, 15, 11, feeds=feeds, refused=SHAPELESS)
        check_down(text, 10, 9, feeds=feeds, variants=("plain", "symbolic"))
    fed = [{**FEEDS, "i": np.array(rows)} for rows in ([[3], [3]], [[0], [-1]], [[-1], [3]])]
    text = computed("ScatterND", reduction, "1")
    check_down(text, 15, 11, feeds=fed, refused=SHAPELESS)
    check_down(text, 10, 9, feeds=fed, variants=("plain",))


@pytest.mark.parametrize("dtype", ["int32", "int64", "double", "int8", "uint8"])
@pytest.mark.parametrize("reduction", ["max", "add"])
def test_types_of_reductions(dtype: str, reduction: str) -> None:
    kind = np.dtype({"double": "float64"}.get(dtype, dtype))
    top = 100 if kind.kind in "iu" else 0.1
    x, u = (
        (np.arange(12) % 5 * top).reshape(4, 3).astype(kind),
        (np.arange(6) % 4 * top).reshape(2, 3).astype(kind),
    )
    feeds = {"x": x, "i": np.array([[0, 1, -2], [0, 1, 1]]), "u": u}
    source = computed("ScatterElements", reduction, "3", dtype=dtype)
    check_down(source, 15, 11, 10, 9, feeds=feeds, variants=("plain",))


def test_many_updates_are_added_in_their_order() -> None:
    """2,000 updates of 5 elements: as many rounds as the most frequent one has."""
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.standard_normal(5).astype(np.float32),
        "i": rng.integers(-5, 5, 2000),
        "u": rng.standard_normal(2000).astype(np.float32),
    }
    text = """16 (float[n] x, int64[k] i, float[k] u) => (float[n] y)
        { y = ScatterElements <reduction = "add"> (x, i, u) }"""
    check_down(text, 15, 11, feeds=feeds, refused=SHAPELESS)
    check_down(text, 10, 9, feeds=feeds, variants=("plain",))
    feeds["i"], feeds["u"] = feeds["i"][:0], feeds["u"][:0]
    check_down(text, 15, 11, feeds=feeds, refused=SHAPELESS)
    check_down(text, 10, 9, feeds=feeds, variants=("plain",))


UP_FEEDS = {
    "x": np.arange(12, dtype=np.float32).reshape(3, 4),
    "i": np.array([[2, 0, 1], [1, 2, 0]]),
    "u": -np.ones((2, 3), np.float32) * np.arange(1, 4, dtype=np.float32),
}


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize(("operator", "opset"), [("Scatter", 9), ("Scatter", 10), ("ScatterElements", 11)])
@pytest.mark.parametrize("indices", ["int32", "int64"])
def test_elements_up(operator: str, opset: int, axis: int | None, indices: str) -> None:
    attribute = "" if axis is None else f"<axis = {axis}>"
    source = f"""{opset} (float[3, 4] x, {indices}[2, 3] i, float[2, 3] u) => (float[3, 4] y)
        {{ y = {operator} {attribute} (x, i, u) }}"""
    result = check(source, to=max(opset + 1, 11), feeds={**UP_FEEDS, "i": UP_FEEDS["i"].astype(indices)})
    assert operators(result) == ["ScatterElements"]


@pytest.mark.parametrize("target", [12, 13, 26])
def test_a_scatter_of_the_opset_that_withdrew_it(target: int) -> None:
    """Some exporters wrote it at opset 11; the expected values are those of opset 10."""
    texts = (
        f"""{opset} (float[3, 4] x, int64[2, 3] i, float[2, 3] u)
            => (float[3, 4] y) {{ y = Scatter <axis = 1> (x, i, u) }}"""
        for opset in (10, 11)
    )
    known, source = map(model, texts)
    result, _ = lift(source, target)
    np.testing.assert_array_equal(run(result, UP_FEEDS)[0], run(known, UP_FEEDS)[0])


def test_nd_up() -> None:
    source = "11 (float[3, 4] x, int64[2, 1] i, float[2, 4] u) => (float[3, 4] y) { y = ScatterND (x, i, u) }"
    feeds = {"x": UP_FEEDS["x"], "i": np.array([[2], [0]]), "u": -np.ones((2, 4), np.float32)}
    check(source, to=18, feeds=feeds)


@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
def test_reductions_of_16(reduction: str) -> None:
    source = f"""16 (float[3, 4] x, int64[2, 3] i, float[2, 3] u) => (float[3, 4] y, float[3, 4] z) {{
            y = ScatterElements <reduction = "{reduction}"> (x, i, u)
            n = Constant <value = int64[2, 1] {{2, 1}}> ()
            v = Constant <value = float[2, 4] {{1, 2, 3, 4, 5, 6, 7, 8}}> ()
            z = ScatterND <reduction = "{reduction}"> (x, n, v)
        }}"""
    check(source, to=18, feeds=UP_FEEDS)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(
    ("cache", "update", "axis"),
    [("[3,2,6,4]", "[3,2,3,4]", None), ("[3,6,4]", "[3,2,4]", 1), ("[3,5]", "[3,2]", -1)],
)
def test_modes_and_axes(mode: str, cache: str, update: str, axis: int | None) -> None:
    attributes = f'mode = "{mode}"' + ("" if axis is None else f", axis = {axis}")
    for dtype in ("float", "int64", "float16"):
        source = f"""24 ({dtype}{cache} c, {dtype}{update} u, int64[3] w)
            => ({dtype}{cache} y) {{ y = TensorScatter<{attributes}> (c, u, w) }}"""
        feeds = random_feeds(model(source))
        feeds["w"] = np.array([0, 1, 3] if mode == "linear" else [0, 4, 7])
        expected = reference(model(source), feeds, None)
        check_down(source, 23, 13, 11, 9, feeds=feeds, expected=expected, refused={"unranked": "needs-rank"})


def test_no_indices() -> None:
    source = "24 (float[2,5,3] c, float[2,2,3] u) => (float[2,5,3] y) { y = TensorScatter(c, u) }"
    feeds = random_feeds(model(source))
    expected = reference(model(source), feeds, None)
    check_down(source, 23, 15, feeds=feeds, expected=expected, refused={"unranked": "needs-rank"})
