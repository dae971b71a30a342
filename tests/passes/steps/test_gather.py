"""GatherElements and GatherND below 11: every axis, negative indices, batch axes and every kind of type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering import check_down

SHAPELESS = {"unranked": "needs-rank"}


def elements(
    shape: list[int], places: list[int], axis: int | None, dtype: str = "float", index: str = "int64"
) -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"""<ir_version: 7, opset_import: ["": 12]>
        graph ({dtype}{shape} x, {index}{places} i) => ({dtype}{places} y) {{ y = GatherElements {attribute} (x, i) }}"""


def nd(
    shape: list[int], places: list[int], result: list[int], batch: int | None = None, dtype: str = "float"
) -> str:
    attribute = "" if batch is None else f"<batch_dims = {batch}>"
    return f"""<ir_version: 7, opset_import: ["": 12]>
        graph ({dtype}{shape} x, int64{places} i) => ({dtype}{result} y) {{ y = GatherND {attribute} (x, i) }}"""


def data(shape: list[int], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Distinct values, with NaN and the negative zero among them for floats."""
    values = (np.arange(np.prod(shape)) - 3).astype(dtype)
    if np.dtype(dtype).kind == "f":
        values[:2] = [np.nan, -0.0][: values.size]
    return values.reshape(shape)


def indices(shape: list[int], sizes: list[int]) -> np.ndarray[Any, Any]:
    """Random indices into axes of these sizes, one for each place of the last axis, or one size for all."""
    rng = np.random.default_rng(3)
    size = np.array(sizes)
    return np.asarray(rng.integers(-size, size, shape), np.int64)


@pytest.mark.parametrize(
    ("shape", "places"),
    [([5], [3]), ([3, 4], [3, 6]), ([3, 4, 5], [3, 4, 5]), ([3, 4, 5], [2, 3, 1]), ([2, 3, 2, 3], [2, 1, 2, 2])],
)  # fmt: skip
def test_elements(shape: list[int], places: list[int]) -> None:
    for axis in (*range(-len(shape), len(shape)), None):
        own = axis or 0
        place = list(places)
        other = [
            min(a, b) if d != own % len(shape) else a
            for d, (a, b) in enumerate(zip(place, shape, strict=True))
        ]
        feeds = {"x": data(shape), "i": indices(other, [shape[own]])}
        check_down(elements(shape, other, axis), 10, 9, feeds=feeds, refused=SHAPELESS)
        check_down(elements(shape, other, axis), 11, feeds=feeds, variants=("plain", "unranked"))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint8, np.int64, np.uint64])
def test_types_of_elements(dtype: Any) -> None:
    names = {"float64": "double"}
    name = names.get(np.dtype(dtype).name, np.dtype(dtype).name)
    feeds = {"x": data([3, 4], dtype), "i": indices([3, 2], [4])}
    check_down(elements([3, 4], [3, 2], 1, name), 10, 9, feeds=feeds, variants=("plain",))
    where = {"x": data([3, 4], dtype), "i": indices([5, 2], [3, 4])}
    check_down(nd([3, 4], [5, 2], [5], dtype=name), 10, 9, feeds=where, variants=("plain",))


def test_strings_and_booleans() -> None:
    words = np.array([["a", "b"], ["c", ""]], object)
    i = np.array([[1, -1], [0, 0]])
    for name, x in (("string", words), ("bool", np.array([[True, False], [False, False]]))):
        check_down(elements([2, 2], [2, 2], 1, name), 10, feeds={"x": x, "i": i}, variants=("plain",))
        check_down(nd([2, 2], [2, 2], [2], dtype=name), 10, feeds={"x": x, "i": i}, variants=("plain",))


def test_int32_indices() -> None:
    feeds = {"x": data([3, 4]), "i": indices([3, 2], [4]).astype(np.int32)}
    check_down(elements([3, 4], [3, 2], 1, index="int32"), 10, 9, feeds=feeds, refused=SHAPELESS)


def test_no_elements() -> None:
    none = np.zeros((0, 4), np.int64)
    check_down(elements([3, 4], [0, 4], 0), 10, 9, feeds={"x": data([3, 4]), "i": none}, refused=SHAPELESS)
    feeds = {"x": np.zeros((3, 0), np.float32), "i": np.zeros((3, 0), np.int64)}
    check_down(elements([3, 0], [3, 0], 1), 10, 9, feeds=feeds, refused=SHAPELESS)
    feeds = {"x": data([3, 4]), "i": np.zeros((0, 1), np.int64)}
    check_down(nd([3, 4], [0, 1], [0, 4]), 10, 9, feeds=feeds, variants=("plain",))


@pytest.mark.parametrize(
    ("shape", "places", "result"),
    [
        ([5], [3, 1], [3]),
        ([3, 4], [5, 2], [5]),
        ([3, 4], [5, 1], [5, 4]),
        ([3, 4, 5], [2, 3, 2], [2, 3, 5]),
        ([3, 4, 5, 2], [6, 3], [6, 2]),
        ([3, 4, 5, 2], [6, 1], [6, 4, 5, 2]),
        ([3, 4], [2], []),
    ],
)
def test_nd(shape: list[int], places: list[int], result: list[int]) -> None:
    feeds = {"x": data(shape), "i": indices(places, shape[: places[-1]])}
    below = SHAPELESS if result else {"symbolic": "needs-shape", **SHAPELESS}  # [] declares no rank
    check_down(nd(shape, places, result), 10, 9, feeds=feeds, refused=below)
    check_down(nd(shape, places, result, 0), 11, feeds=feeds)


@pytest.mark.parametrize(
    ("shape", "places", "result", "batch"),
    [
        ([2, 3, 4], [2, 1], [2, 4], 1),
        ([2, 3, 4], [2, 2], [2], 1),
        ([2, 3, 4], [2, 5, 1], [2, 5, 4], 1),
        ([2, 3, 4], [2, 3, 1], [2, 3], 2),
        ([2, 3, 4, 5], [2, 3, 6, 1], [2, 3, 6, 5], 2),
    ],
)
def test_nd_of_batches(shape: list[int], places: list[int], result: list[int], batch: int) -> None:
    feeds = {"x": data(shape), "i": indices(places, shape[batch : batch + places[-1]])}
    check_down(nd(shape, places, result, batch), 11, feeds=feeds, refused=SHAPELESS)
    below = SHAPELESS
    check_down(nd(shape, places, result, batch), 10, 9, feeds=feeds, refused=below)


def test_nd_of_known_indices() -> None:
    text = """<ir_version: 7, opset_import: ["": 12]> graph (float[a, b] x) => (float[n] y)
        <int64[2, 2] i = {0, 1, -1, -2}> { y = GatherND (x, i) }"""
    check_down(text, 10, 9, feeds={"x": data([3, 4])}, refused=SHAPELESS)
