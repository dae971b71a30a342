"""Operators on bits, over all pairs of special values of every integer type."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, special_values

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = [*SIGNED, *UNSIGNED]
BITWISE = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}
ALL = ("plain", "symbolic", "unranked", "if")


def pool(dtype: str) -> np.ndarray:  # type: ignore[type-arg]
    info = np.iinfo(dtype)
    random = np.random.default_rng(0).integers(info.min, info.max, 20, dtype, endpoint=True)
    return np.concatenate([special_values(np.dtype(dtype)), random])


@pytest.mark.parametrize("operator", BITWISE)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise(operator: str, dtype: str) -> None:
    a, b = pool(dtype)[:, None], pool(dtype)[None, :]
    n = a.size
    source = f"""<ir_version: 8, opset_import: ["": 18]> g ({dtype}[{n},1] a, {dtype}[1,{n}] b) => ({dtype}[{n},{n}] y)
        {{ y = {operator} (a, b) }}"""
    feeds, expected = {"a": a, "b": b}, [BITWISE[operator](a, b)]
    check_down(source, 17, 11, feeds=feeds, expected=expected, variants=ALL)
    check_down(source, 10, 9, 7, feeds=feeds, expected=expected, variants=("plain",))


@pytest.mark.parametrize("operator", BITWISE)
def test_bitwise_with_other_ranks(operator: str) -> None:
    for left, right in (([2, 3], [3]), ([], [2, 1]), ([2, 0], [1])):
        check_down(
            f"""<ir_version: 8, opset_import: ["": 18]> g (int32{left} a, int32{right} b) => (int32[?,?] y)
            {{ y = {operator} (a, b) }}""".replace(
                "[?,?]", str(list(np.broadcast_shapes(tuple(left), tuple(right))))
            ),
            17,
            13,
            specials=False,
        )


@pytest.mark.parametrize("mask", [0, 1, 7, 255, 6, -1])
def test_bitwise_and_with_a_known_mask(mask: int) -> None:
    for dtype in ("int32", "int16", "int64"):
        x = pool(dtype)
        for shape, value in (("", f"{{{mask}}}"), ("[1]", f"{{{mask}}}")):
            check_down(
                f"""<ir_version: 8, opset_import: ["": 18]> g ({dtype}[{len(x)}] x) => ({dtype}[{len(x)}] y, {dtype}[{len(x)}] z)
                <{dtype}{shape} mask = {value}> {{ y = BitwiseAnd (x, mask) z = BitwiseAnd (mask, x) }}""",
                17,
                9,
                feeds={"x": x},
                variants=("plain", "function"),
            )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise_not(dtype: str) -> None:
    x = pool(dtype)
    check_down(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({dtype}[{len(x)}] x) => ({dtype}[{len(x)}] y) {{ y = BitwiseNot (x) }}""",
        17,
        9,
        7,
        feeds={"x": x},
        expected=[~x],
    )


def shifted(x: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:  # type: ignore[type-arg]
    """Shift by the text of version 28."""
    width = x.dtype.itemsize * 8
    inside = (y >= 0) & (y < width)
    amount = np.where(inside, y, 0).astype(x.dtype)
    moved = np.left_shift(x, amount) if direction == "LEFT" else np.right_shift(x, amount)
    outside = np.where((x < 0) & (direction == "RIGHT"), -1, 0).astype(x.dtype)
    return np.where(inside, moved, outside).astype(x.dtype)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bit_shift_28(dtype: str, direction: str) -> None:
    x = pool(dtype)[:, None]
    amounts = np.array(
        [0, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 100, *([-1, -5] if dtype in SIGNED else [])], dtype
    )
    y = amounts[None, :]
    source = f"""<ir_version: 14, opset_import: ["": 28]> g ({dtype}[{x.size},1] x, {dtype}[1,{y.size}] y)
        => ({dtype}[{x.size},{y.size}] z) {{ z = BitShift <direction = "{direction}"> (x, y) }}"""
    feeds, expected = {"x": x, "y": y}, [shifted(x, y, direction)]
    check_down(source, 26, 11, feeds=feeds, expected=expected, variants=ALL)
    check_down(source, 10, 7, feeds=feeds, expected=expected, variants=("plain",))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_bit_shift_28_by_a_known_amount(dtype: str, direction: str) -> None:
    x = pool(dtype)
    check_down(
        f"""<ir_version: 14, opset_import: ["": 28]> g ({dtype}[{x.size}] x) => ({dtype}[{x.size}] z) <{dtype} y = {{3}}>
        {{ z = BitShift <direction = "{direction}"> (x, y) }}""",
        26,
        9,
        feeds={"x": x},
        expected=[shifted(x, np.array(3, dtype), direction)],
    )


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_bit_shift_11(dtype: str, direction: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    x, y = pool(dtype)[:, None], np.arange(width, dtype=dtype)[None, :]
    check_down(
        f"""<ir_version: 7, opset_import: ["": 11]> g ({dtype}[{x.size},1] x, {dtype}[1,{width}] y)
        => ({dtype}[{x.size},{width}] z) {{ z = BitShift <direction = "{direction}"> (x, y) }}""",
        10,
        9,
        7,
        feeds={"x": x, "y": y},
        expected=[shifted(x, y, direction)],
        variants=ALL,
    )
