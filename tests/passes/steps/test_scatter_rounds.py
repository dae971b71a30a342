"""Scatters with a reduction that update an element more than once: in rounds, known or computed, in the updates' order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down
from tests.passes.steps.scatters import FEEDS, SHAPELESS, reduced


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
    return f"""<ir_version: 8, opset_import: ["": 18]>
        graph ({dtype}[4, 3] x, int64[2, {places}] i, {dtype}[2, 3] u) => ({dtype}[4, 3] y)
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
    for rows in ([[3], [3]], [[0], [-1]], [[-1], [3]]):
        feeds = {**FEEDS, "i": np.array(rows)}
        text = computed("ScatterND", reduction, "1")
        check_down(text, 15, 11, feeds=feeds, refused=SHAPELESS)
        check_down(text, 10, 9, feeds=feeds, variants=("plain",))


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
    check_down(
        computed("ScatterElements", reduction, "3", dtype=dtype),
        15,
        11,
        10,
        9,
        feeds=feeds,
        variants=("plain",),
    )


def test_many_updates_are_added_in_their_order() -> None:
    """2,000 updates of 5 elements: as many rounds as the most frequent one has."""
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.standard_normal(5).astype(np.float32),
        "i": rng.integers(-5, 5, 2000),
        "u": rng.standard_normal(2000).astype(np.float32),
    }
    text = """<ir_version: 8, opset_import: ["": 16]> graph (float[n] x, int64[k] i, float[k] u) => (float[n] y)
        { y = ScatterElements <reduction = "add"> (x, i, u) }"""
    check_down(text, 15, 11, feeds=feeds, refused=SHAPELESS)
    check_down(text, 10, 9, feeds=feeds, variants=("plain",))
    feeds["i"], feeds["u"] = feeds["i"][:0], feeds["u"][:0]
    check_down(text, 15, 11, feeds=feeds, refused=SHAPELESS)
    check_down(text, 10, 9, feeds=feeds, variants=("plain",))
