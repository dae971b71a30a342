"""Slice and Gather up, and Slice, Gather, GatherElements and GatherND down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.steps import check, check_down, lower


def text(
    starts: list[int],
    ends: list[int],
    axes: list[int] | None,
    steps: list[int] | None = None,
    opset: int = 11,
) -> str:
    lists = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    given = {name: values for name, values in lists.items() if values is not None}
    constants = ", ".join(
        f"int64[{len(values)}] {name} = {{{', '.join(map(str, values))}}}" for name, values in given.items()
    )
    names = ", ".join(name if name in given else "" for name in list(lists)[: 4 if steps else len(given)])
    return f"{opset} (float[4, 5, 6] x) => (float[] y) <{constants}> {{ y = Slice (x, {names}) }}"


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [3], [-1], None),
        ([1, 0], [-1, 99], [-2, 0], None),
        ([-1, 4], [-99, 0], [-1, -2], [-1, -2]),
        ([0, 1, 2], [4, 5, 6], None, None),
    ],
)
def test_negative_axes(
    starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None
) -> None:
    check_down(text(starts, ends, axes, steps), 10)
    result, log = lower(text(starts, ends, axes, steps), 10)
    assert not log.changes or log.changes[0].exactness.value == "exact"
    assert all(
        (np.frombuffer(t.raw_data, np.int64) >= 0).all()
        for t in result.graph.initializer
        if t.name == result.graph.node[0].input[3:4]
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [[0, 2], [-1, 1], [-2, -3]], ids=str)
def test_gather(axis: int, indices: list[int]) -> None:
    given = ", ".join(map(str, indices))
    source = f"""11 (float[4, 5, 6] x) => (float[] y)
        <int64[2] i = {{{given}}}> {{ y = Gather <axis = {axis}> (x, i) }}"""
    check_down(source, 10, 7)
    assert {change.exactness.value for change in lower(source, 10)[1].changes} <= {"exact"}


def test_gather_at_run_time_is_assumed() -> None:
    source = "11 (float[4, 5] x, int32[2] i) => (float[] y) { y = Gather (x, i) }"
    check_down(source, 10, 7, feeds={"x": np.eye(4, 5, dtype=np.float32), "i": np.array([-1, 3], np.int32)})
    assert [change.exactness.value for change in lower(source, 10)[1].changes] == ["assumed"]


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1, 0], [-1, 99], [1, 0], None),
        ([-2], [9223372036854775807], [2], None),
        ([-99], [-1], [2], [1]),
        ([0], [99], [2], [2]),
        ([-1], [-99], [1], [-1]),
        ([99, 4, 0], [0, -99, 5], [2, 1, 0], [-2, -3, 1]),
        ([-99], [-999], [0], [-1]),
        ([3], [1], [0], [1]),
    ],
)
def test_constant_bounds(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int] | None
) -> None:
    source = text(starts, ends, axes, steps, opset=10)
    check_down(source, 9)
    check_down(source, 8, 7, variants=("plain",) if steps else ("plain", "symbolic"))


@pytest.mark.parametrize("step", [1, 2, -1, -3])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bounds_at_run_time(step: int, dtype: str) -> None:
    source = f"""10 (float[2, 5] x, {dtype}[2] s, {dtype}[2] e) => (float[] y)
        <{dtype}[2] axes = {{1, 0}}, {dtype}[2] steps = {{{step}, 1}}> {{ y = Slice (x, s, e, axes, steps) }}"""
    kind = np.int32 if dtype == "int32" else np.int64
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    bounds = [(0, 3), (-2, 99), (1, -1), (-99, 2), (3, 1), (99, -99), (-1, -99)]
    feeds = [{"x": x, "s": np.array([s, 0], kind), "e": np.array([e, 2], kind)} for s, e in bounds]
    check_down(source, 9, feeds=feeds)


def test_axes_at_run_time_are_refused() -> None:
    source = """10 (float[2, 5] x, int64[1] axes) => (float[] y)
        <int64[1] s = {0}, int64[1] e = {1}> { y = Slice (x, s, e, axes) }"""
    feeds = {"x": np.zeros((2, 5), np.float32), "axes": np.array([1])}
    check_down(source, 9, feeds=feeds, refused="needs-constant")


CASES = [
    "starts = [1], ends = [3]",
    "starts = [0, 1], ends = [2, -1]",
    "starts = [0, 1, 2, 3], ends = [9223372036854775807, 2147483647, 3, -1]",
    "starts = [-2, 1], ends = [9, 3], axes = [3, 1]",
    "starts = [-100], ends = [100], axes = [2]",
    "starts = [2], ends = [1], axes = [1]",
]


@pytest.mark.parametrize("attributes", CASES)
@pytest.mark.parametrize("opset", [7, 9])
def test_slice(attributes: str, opset: int) -> None:
    source = f"{opset} (float[3,4,5,6] x) => (float[A,B,C,D] y) {{ y = Slice <{attributes}> (x) }}"
    result = check(source, to=10)
    assert not result.graph.node[-1].attribute
    assert len(result.graph.node[-1].input) == 4  # axes are always set


@pytest.mark.parametrize("axes", ["", "axes = [0], "])
def test_starts_that_are_an_attribute_of_a_function(axes: str) -> None:
    source = f"""9 (float[5] x) => (float[N] y) {{ y = local.Part <at = [1], till = [-1]> (x) }}
        <opset_import: ["": 9], domain: "local"> Part <at, till> (a) => (b)
        {{ b = Slice <{axes}starts: ints = @at, ends: ints = @till> (a) }}"""
    x = np.arange(5, dtype=np.float32)
    check(source, to=12, feeds={"x": x}, expected=[x[1:-1]], variants=["plain"])


@pytest.mark.parametrize("axis", [0, 2])
def test_gather_up(axis: int) -> None:
    source = f"7 (float[2,3,4] x, int64[2] i) => (float[A,B,C] y) {{ y = Gather <axis = {axis}> (x, i) }}"
    check(source, to=11, feeds={"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "i": np.array([1, 0])})


SHAPELESS = {"unranked": "needs-rank"}


def elements(
    shape: list[int], places: list[int], axis: int | None, dtype: str = "float", index: str = "int64"
) -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"12 ({dtype}{shape} x, {index}{places} i) => ({dtype}{places} y) {{ y = GatherElements {attribute} (x, i) }}"


def nd(
    shape: list[int], places: list[int], result: list[int], batch: int | None = None, dtype: str = "float"
) -> str:
    attribute = "" if batch is None else f"<batch_dims = {batch}>"
    return (
        f"12 ({dtype}{shape} x, int64{places} i) => ({dtype}{result} y) {{ y = GatherND {attribute} (x, i) }}"
    )


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
    text = "12 (float[a, b] x) => (float[n] y) <int64[2, 2] i = {0, 1, -1, -2}> { y = GatherND (x, i) }"
    check_down(text, 10, 9, feeds={"x": data([3, 4])}, refused=SHAPELESS)
