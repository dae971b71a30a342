"""Operators on bits, over all pairs of special values of every integer type, and BitCast between types of one width."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import INTEGERS, SIGNED, UNSIGNED, dtype_of
from tests.steps import check_down, element_wise, lower, refuses, special_values
from tests.support.skips import Elsewhere, import_or_skip

ml_dtypes = import_or_skip("ml_dtypes", Elsewhere.NEWEST)

BITWISE = {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}
ALL = ("plain", "symbolic", "unranked", "if")


def pool(dtype: str) -> np.ndarray:  # type: ignore[type-arg]
    info = np.iinfo(dtype)
    random = np.random.default_rng(0).integers(info.min, info.max, 20, dtype, endpoint=True)
    return np.concatenate([special_values(np.dtype(dtype)), random])


@pytest.mark.parametrize("operator", BITWISE)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise(operator: str, dtype: str) -> None:
    feeds = {"a": pool(dtype)[:, None], "b": pool(dtype)[None, :]}
    source, expected = element_wise(18, f"{operator} (a, b)", feeds), [BITWISE[operator](*feeds.values())]
    check_down(source, 17, 11, feeds=feeds, expected=expected, variants=ALL)
    check_down(source, 10, 9, 7, feeds=feeds, expected=expected, variants=("plain",))


@pytest.mark.parametrize("operator", BITWISE)
@pytest.mark.parametrize(
    ("left", "right", "result"),
    [("[2,3]", "[3]", "[2,3]"), ("[]", "[2,1]", "[2,1]"), ("[2,0]", "[1]", "[2,0]")],
)
def test_bitwise_with_other_ranks(operator: str, left: str, right: str, result: str) -> None:
    source = f"18 (int32{left} a, int32{right} b) => (int32{result} y) {{ y = {operator} (a, b) }}"
    check_down(source, 17, 13, specials=False)


@pytest.mark.parametrize("mask", [0, 1, 7, 255, 6, -1])
@pytest.mark.parametrize("dtype", ["int32", "int16", "int64"])
@pytest.mark.parametrize("shape", ["", "[1]"])
def test_bitwise_and_with_a_known_mask(mask: int, dtype: str, shape: str) -> None:
    x = pool(dtype)
    kind = f"{dtype}[{len(x)}]"
    source = f"""18 ({kind} x) => ({kind} y, {kind} z) <{dtype}{shape} mask = {{{mask}}}>
        {{ y = BitwiseAnd (x, mask) z = BitwiseAnd (mask, x) }}"""
    check_down(source, 17, 9, feeds={"x": x}, variants=("plain", "function"))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise_not(dtype: str) -> None:
    feeds = {"x": pool(dtype)}
    check_down(element_wise(18, "BitwiseNot (x)", feeds), 17, 9, 7, feeds=feeds, expected=[~feeds["x"]])


def shifted(x: np.ndarray, y: np.ndarray, direction: str) -> np.ndarray:  # type: ignore[type-arg]
    """Shift by the text of version 28."""
    width = x.dtype.itemsize * 8
    inside = (y >= 0) & (y < width)
    amount = np.where(inside, y, 0).astype(x.dtype)
    moved = np.left_shift(x, amount) if direction == "LEFT" else np.right_shift(x, amount)
    outside = np.where((x < 0) & (direction == "RIGHT"), -1, 0).astype(x.dtype)
    return np.where(inside, moved, outside).astype(x.dtype)


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize(
    ("dtype", "opset"), [*((kind, 28) for kind in INTEGERS), *((kind, 11) for kind in UNSIGNED)]
)
def test_bit_shift(dtype: str, opset: int, direction: str) -> None:
    amounts = np.arange(np.dtype(dtype).itemsize * 8, dtype=dtype)
    if opset == 28:
        outside = [-1, -5] if dtype in SIGNED else []
        amounts = np.array([0, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 100, *outside], dtype)
    feeds = {"x": pool(dtype)[:, None], "y": amounts[None, :]}
    source = element_wise(opset, f'BitShift <direction = "{direction}"> (x, y)', feeds)
    expected = [shifted(*feeds.values(), direction)]
    check_down(
        source, *((26, 11) if opset == 28 else (10, 9, 7)), feeds=feeds, expected=expected, variants=ALL
    )
    if opset == 28:
        check_down(source, 10, 7, feeds=feeds, expected=expected, variants=("plain",))


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_bit_shift_28_by_a_known_amount(dtype: str, direction: str) -> None:
    x = pool(dtype)
    source = f"""28 ({dtype}[{x.size}] x) => ({dtype}[{x.size}] z) <{dtype} y = {{3}}>
        {{ z = BitShift <direction = "{direction}"> (x, y) }}"""
    check_down(source, 26, 9, feeds={"x": x}, expected=[shifted(x, np.array(3, dtype), direction)])


CODES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "float16": 10, "double": 11,
    "uint32": 12, "uint64": 13,
}  # fmt: skip
WHOLE = [("int32", "uint32"), ("uint8", "int8"), ("int64", "int64"), ("uint64", "int64"), ("int16", "uint16"),
         ("float", "float"), ("bool", "uint8")]  # fmt: skip
REAL = [("float", "int32"), ("float", "uint32"), ("double", "int64"), ("double", "uint64"), ("float16", "int16"),
        ("float16", "uint16")]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), WHOLE)
def test_bit_cast_of_integers(source: str, target: str) -> None:
    feeds = {"x": special_values(dtype_of(source)) if source in ("float", "bool") else pool(source)}
    text = element_wise(26, f"BitCast <to = {CODES[target]}> (x)", feeds, target)
    check_down(text, 25, 13, 7, feeds=feeds, expected=[feeds["x"].view(dtype_of(target))])


def numbers(name: str) -> np.ndarray:  # type: ignore[type-arg]
    """All special values but NaN, powers of two and their neighbours, and numbers of random bits."""
    dtype = dtype_of(name)
    info = np.finfo(dtype)
    exponents = np.linspace(info.minexp - info.nmant, info.maxexp - 1, 40).astype(np.int32)
    powers = np.ldexp(np.ones(40, dtype), exponents)
    bits = np.random.default_rng(0).integers(0, 256, 400 * dtype.itemsize, np.uint8).view(dtype)
    near = [np.nextafter(powers, dtype.type(side)) for side in (0, np.inf)]
    found = np.concatenate([special_values(dtype), powers, *near, -powers, bits])
    return found[~np.isnan(found)]


@pytest.mark.parametrize(("real", "integer"), REAL)
def test_bits_of_floats(real: str, integer: str) -> None:
    feeds = {"x": numbers(real)}
    source = element_wise(26, f"BitCast <to = {CODES[integer]}> (x)", feeds, integer)
    expected = [feeds["x"].view(np.dtype(integer))]
    check_down(source, 25, 13, 10, 7, feeds=feeds, expected=expected, variants=("plain", "symbolic"))
    assert lower(source, 25)[1].changes[0].exactness is Exactness.ASSUMED


@pytest.mark.parametrize(("real", "integer"), REAL)
def test_floats_of_bits(real: str, integer: str) -> None:
    y = np.append(numbers(real), dtype_of(real).type(np.nan))
    y = np.resize(y, (2, y.size))
    feeds = {"x": y.view(np.dtype(integer))}
    source = element_wise(26, f"BitCast <to = {CODES[real]}> (x)", feeds, real)
    check_down(source, 25, 13, 10, 7, feeds=feeds, expected=[y], variants=("plain", "symbolic"))


def test_bits_of_bfloat16() -> None:
    x = np.array([0, -0.0, 1, -2.5, 3e38, 1e-40, np.inf], ml_dtypes.bfloat16)
    source = "26 (float[7] x) => (int16[7] y) { b = Cast <to = 16> (x) y = BitCast <to = 5> (b) }"
    feeds, expected = {"x": x.astype(np.float32)}, [x.view(np.int16)]
    check_down(source, 25, 13, feeds=feeds, expected=expected, variants=("plain",))


@pytest.mark.parametrize(("source", "result", "to"), [("uint8", "bool", 9), ("float16", "bfloat16", 16)])
def test_other_types_are_refused(source: str, result: str, to: int) -> None:
    refuses("no-equal", lower, f"26 ({source}[2] x) => ({result}[2] y) {{ y = BitCast <to = {to}> (x) }}", 25)
