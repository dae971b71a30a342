"""QuantizeLinear, DequantizeLinear and QLinearMatMul up; DynamicQuantizeLinear, rounding and saturation down."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from onnx_migrate.errors import CannotMigrate
from tests.harness import model, run
from tests.steps import check, check_down, lift, lower, operators


def quantize(
    opset: int, zero: str, *, scale: str = "float s", attributes: str = "", dtype: str = "float"
) -> str:
    kind = zero.split("[")[0].split()[0] if zero else "uint8"
    given = ", z" if zero else ""
    return f"""{opset} ({dtype}[2, 3, 4] x, {scale}{", " + zero if zero else ""}) => ({kind}[2, 3, 4] y)
        {{ y = QuantizeLinear {attributes} (x, s{given}) }}"""


def dequantize(opset: int, kind: str, zero: bool, *, dims: str = "", attributes: str = "") -> str:
    return f"""{opset} ({kind}[2, 3, 4] x, float{dims} s{f", {kind}{dims} z" if zero else ""}) => (float[2, 3, 4] y)
        {{ y = DequantizeLinear {attributes} (x, s{", z" if zero else ""}) }}"""


X = (np.random.default_rng(0).standard_normal((2, 3, 4)) * 40).astype(np.float32)
PER_TENSOR = {"x": X, "s": np.array(0.5, np.float32)}
PER_AXIS = {"x": X, "s": np.array([0.5, 0.25, 2], np.float32)}


@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_quantize_per_tensor(opset: int, kind: str) -> None:
    result = check(quantize(opset, f"{kind} z"), to=21, feeds={**PER_TENSOR, "z": np.array(3, kind)})
    assert not result.graph.node[0].attribute


def test_quantize_without_zero_point() -> None:
    check(quantize(10, ""), to=21, feeds=PER_TENSOR)


def test_quantize_by_a_scale_of_one_element() -> None:
    """The standard requires a scalar, but ONNX Runtime accepts one element at version 10, and exporters wrote it."""
    feeds = {"x": X, "s": np.array([0.5], np.float32), "z": np.array([3], np.int8)}
    check(quantize(10, "int8[1] z", scale="float[1] s"), to=13, feeds=feeds)


@pytest.mark.parametrize("attributes", ["", "<axis = 1>", "<axis = -2>"])
def test_quantize_per_axis(attributes: str) -> None:
    source = quantize(13, "int8[3] z", scale="float[3] s", attributes=attributes)
    check(source, to=21, feeds={**PER_AXIS, "z": np.array([0, 3, -4], np.int8)})


@pytest.mark.parametrize("target", [18, 19, 21, 22, 23, 26])
def test_quantize_integers(target: int) -> None:
    """ONNX Runtime has no kernel for them: the expected values follow the formula, with a division in float."""
    x = np.array([-70000, -3, -1, 0, 1, 2, 3, 5, 7, 100, 300, 2**30], np.int32).reshape(1, 3, 4).repeat(2, 0)
    scale, zero = np.array(2, np.float32), np.array(3, np.int8)
    expected = np.clip(np.rint(x.astype(np.float32) / scale) + 3, -128, 127).astype(np.int8)
    result, _ = lift(model(quantize(13, "int8 z", dtype="int32")), target)
    found = operators(result)
    assert found == (["CastLike"] if 19 <= target < 23 else []) + ["QuantizeLinear"]
    np.testing.assert_array_equal(run(result, {"x": x, "s": scale, "z": zero})[0], expected)


def test_float8_saturates_as_before() -> None:
    source = model(
        """19 (float[4] x, float s) => (float[4] y)
        { z = Constant <value = float {0}> ()  e = Cast <to = 17> (z)
          q = QuantizeLinear <saturate = 0> (x, s, e)  y = DequantizeLinear (q, s) }"""
    )
    assert TensorProto.FLOAT8E4M3FN == 17
    check(source, to=23, feeds={"x": np.array([1, 2, 1e6, -3], np.float32), "s": np.array(1, np.float32)})


@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("kind", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("zero", [True, False])
def test_dequantize_per_tensor(opset: int, kind: str, zero: bool) -> None:
    if kind == "int32" and zero:
        return  # ONNX Runtime has no kernel for int32.
    x = np.random.default_rng(0).integers(0, 100, (2, 3, 4)).astype(kind)
    feeds = {"x": x, "s": np.array(0.3, np.float32), **({"z": np.array(3, kind)} if zero else {})}
    check(dequantize(opset, kind, zero), to=23, feeds=feeds)


@pytest.mark.parametrize("attributes", ["", "<axis = 1>", "<axis = -2>"])
def test_dequantize_per_axis(attributes: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, (2, 3, 4)).astype(np.uint8)
    feeds = {"x": x, "s": np.array([0.3, 2, 5], np.float32), "z": np.array([1, 2, 3], np.uint8)}
    check(dequantize(13, "uint8", True, dims="[3]", attributes=attributes), to=21, feeds=feeds)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_matmul(kind: str) -> None:
    source = f"""10 ({kind}[2, 4] a, float p, {kind} q, {kind}[4, 3] b, float r, {kind} s, float t, {kind} u)
            => ({kind}[2, 3] y)
        {{ y = QLinearMatMul (a, p, q, b, r, s, t, u) }}"""
    rng = np.random.default_rng(0)
    feeds = {name: rng.integers(0, 100, shape).astype(kind) for name, shape in (("a", (2, 4)), ("b", (4, 3)))}
    feeds |= {name: np.array(value, np.float32) for name, value in (("p", 0.1), ("r", 0.2), ("t", 3))}
    feeds |= {name: np.array(value, kind) for name, value in (("q", 2), ("s", 5), ("u", 7))}
    check(source, to=21, feeds=feeds)


def test_up_to_28() -> None:
    """Only onnx.reference runs version 28."""
    feeds = {**PER_TENSOR, "z": np.array(3, np.int8)}
    check(quantize(10, "int8 z"), to=28, newest=28, feeds=feeds)
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    check(dequantize(13, "uint8", False), to=28, newest=28, feeds={"x": x, "s": np.array(0.5, np.float32)})


HALVES = np.array(
    [[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -0.49999997, 127.5, 126.5, -128.5, 254.5]], np.float32
)
ENDS = np.array(
    [[np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0, 8388609, 1e9, -1e9, 300, -300]], np.float32
)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("x", [HALVES, ENDS], ids=["halves", "ends"])
def test_rounding_and_saturation(kind: str, x: np.ndarray) -> None:  # type: ignore[type-arg]
    source = f"10 (float[1,12] x, float s, {kind} z) => ({kind}[1,12] y) {{ y = QuantizeLinear(x, s, z) }}"
    for zero in (0, 3, 100):
        feeds = {"x": x, "s": np.array(1, np.float32), "z": np.array(zero, kind)}
        check_down(source, 9, 8, 7, feeds=feeds)


@pytest.mark.parametrize("kind", ["uint16", "int16"])
@pytest.mark.parametrize("x", [HALVES, ENDS], ids=["halves", "ends"])
def test_words(kind: str, x: np.ndarray) -> None:  # type: ignore[type-arg]
    source = f"21 (float[1,12] x, float s, {kind} z) => ({kind}[1,12] y) {{ y = QuantizeLinear(x, s, z) }}"
    feeds = {"x": x, "s": np.array(1, np.float32), "z": np.array(30, kind)}
    check_down(source, 20, 12, 10, 8, feeds=feeds, refused={"unranked": "needs-rank"})


def test_a_missing_type_names_its_opset() -> None:
    source = "21 (int4[4] x, float s) => (float[4] y) { y = DequantizeLinear(x, s) }"
    with pytest.raises(CannotMigrate) as caught:
        lower(source, 20)
    assert (caught.value.code, "opset 21" in str(caught.value)) == ("no-such-type", True)


def test_dynamic_quantize_linear() -> None:
    source = "11 (float[3,4] x) => (uint8[3,4] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }"
    for x in (
        None,
        np.zeros((3, 4)),
        np.full((3, 4), 2.5),
        -np.arange(12).reshape(3, 4),
        np.arange(12).reshape(3, 4) + 0.5,
    ):
        feeds = None if x is None else {"x": x.astype(np.float32)}
        check_down(source, 10, 9, feeds=feeds, specials=False)
        check_down(source, 7, feeds=feeds, variants=("plain", "if"), specials=False)
