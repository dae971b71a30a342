"""Scatter, ScatterElements and ScatterND: reductions below 18 and 16, ScatterND below 11, refusals below 9."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering import check_down
from tests.passes.steps.scatters import BY_ELEMENT, BY_ROW, FEEDS, SHAPELESS, reduced

EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


def elements(
    shape: list[int],
    places: list[int],
    axis: int | None = None,
    dtype: str = "float",
    index: str = "int64",
) -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"""<ir_version: 7, opset_import: ["": 12]>
        graph ({dtype}{shape} x, {index}{places} i, {dtype}{places} u) => ({dtype}{shape} y)
        {{ y = ScatterElements {attribute} (x, i, u) }}"""


def nd(shape: list[int], places: list[int], dtype: str = "float") -> str:
    updates = [*places[:-1], *shape[places[-1] :]]
    return f"""<ir_version: 7, opset_import: ["": 12]>
        graph ({dtype}{shape} x, int64{places} i, {dtype}{updates} u) => ({dtype}{shape} y) {{ y = ScatterND (x, i, u) }}"""


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
    text = """<ir_version: 7, opset_import: ["": 12]> graph (float[3, 4] x, float[1, 2] u) => (float[3, 4] y)
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
