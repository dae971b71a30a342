"""Where below opset 9, for every type and broadcasting."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.lowering import NUMPY_TYPES, check_down, special_values


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_every_type_and_all_special_values(name: str) -> None:
    dtype = np.dtype(name)
    text = onnx_type(dtype)
    pool = special_values(dtype)
    condition = np.arange(len(pool)) % 3 == 0
    x, y = pool, np.roll(pool, 1)
    source = f"""<ir_version: 3, opset_import: ["": 9]> g (bool[{len(pool)}] c, {text}[{len(pool)}] x, {text}[{len(pool)}] y)
        => ({text}[{len(pool)}] z) {{ z = Where (c, x, y) }}"""
    check_down(
        source,
        8,
        7,
        feeds={"c": condition, "x": x, "y": y},
        expected=[np.where(condition, x, y)],
        variants=("plain", "symbolic", "if"),
    )


def onnx_type(dtype: np.dtype) -> str:  # type: ignore[type-arg]
    return {"float32": "float", "float64": "double"}.get(dtype.name, dtype.name)


SHAPES = [
    ([2, 3], [2, 3], [2, 3]),
    ([], [2, 3], [2, 3]),
    ([3], [2, 1], []),
    ([2, 1], [1, 3], [4, 1, 1]),
    ([1], [1], [1]),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("text", ["float", "int32"])
def test_broadcasting(shapes: tuple[list[int], ...], text: str) -> None:
    c, x, y = shapes
    out = list(np.broadcast_shapes(*map(tuple, shapes)))
    source = f"""<ir_version: 3, opset_import: ["": 9]> g (bool{c} c, {text}{x} x, {text}{y} y) => ({text}{out} z)
        {{ z = Where (c, x, y) }}"""
    check_down(source, 8, 7, variants=("plain", "symbolic", "unranked", "if"), specials=False)


def test_empty_tensor() -> None:
    for text in ("float", "int64", "bool"):
        check_down(
            f"""<ir_version: 3, opset_import: ["": 9]> g (bool[0] c, {text}[2,0] x, {text}[2,0] y)
            => ({text}[2,0] z) {{ z = Where (c, x, y) }}""",
            8,
            expected=[
                np.zeros((2, 0), helper.tensor_dtype_to_np_dtype({"float": 1, "int64": 7, "bool": 9}[text]))
            ],
            variants=("plain",),
        )


def test_strings_of_fixed_shapes() -> None:
    feeds = {
        "c": np.array([True, False]),
        "x": np.array(["a", "b"], object),
        "y": np.array(["c", "d"], object),
    }
    check_down(
        """<ir_version: 3, opset_import: ["": 9]> g (bool[2] c, string[2] x, string[2] y) => (string[2] z)
        { z = Where (c, x, y) }""",
        8,
        feeds=feeds,
        refused={"symbolic": "needs-shape"},
        variants=("plain", "symbolic"),
    )
