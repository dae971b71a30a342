"""Broadcasting by `axis` and `broadcast`, compared with NumPy on explicitly aligned shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model

SHAPE = (2, 3, 4, 5)
RNG = np.random.default_rng(1)
A = RNG.standard_normal(SHAPE).astype(np.float32)

# The shape of the second operand, the attributes, and that shape aligned with the first operand's.
SHAPES: list[tuple[tuple[int, ...], str, tuple[int, ...]]] = [
    ((), "broadcast = 1", ()),
    ((1, 1), "broadcast = 1", (1, 1)),
    ((5,), "broadcast = 1", (5,)),
    ((4, 5), "broadcast = 1", (4, 5)),
    ((3, 4), "broadcast = 1, axis = 1", (3, 4, 1)),
    ((2,), "broadcast = 1, axis = 0", (2, 1, 1, 1)),
    ((4, 5), "broadcast = 1, axis = 2", (4, 5)),
    ((5,), "broadcast = 1, axis = -1", (5,)),
    ((1,), "broadcast = 1, axis = 1", (1,)),
    (SHAPE, "", SHAPE),
    (SHAPE, "axis = 1", SHAPE),
    (SHAPE, "broadcast = 1, axis = 0", SHAPE),
]
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
}
LOGICAL: dict[str, Callable[[Any, Any], Any]] = {
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
}
COMPARISON: dict[str, Callable[[Any, Any], Any]] = {
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}


def _source(
    operator: str, shape: tuple[int, ...], attributes: str, kind: str = "float", result: str = ""
) -> str:
    dims = f"[{','.join(map(str, shape))}]" if shape else ""
    written = f"<{attributes}>" if attributes else ""
    return f"""<ir_version: 3, opset_import: ["": 6]> g ({kind}[2,3,4,5] a, {kind}{dims} b)
        => ({result or kind}[2,3,4,5] y) {{ y = {operator} {written} (a, b) }}"""


@pytest.mark.parametrize(("shape", "attributes", "aligned"), SHAPES)
def test_shapes(shape: tuple[int, ...], attributes: str, aligned: tuple[int, ...]) -> None:
    b = np.asarray(RNG.standard_normal(shape), np.float32)
    check(
        _source("Sub", shape, attributes),
        feeds={"a": A, "b": b},
        expected=[A - b.reshape(aligned)],
        variants=RANKED,
    )
    if "axis = -" not in attributes:
        at_7 = {"unranked": "needs-rank"} if "axis" in attributes and "broadcast" in attributes else {}
        source = _source("Sub", shape, attributes)
        check(source, feeds={"a": A, "b": b}, expected=[A - b.reshape(aligned)], variants=["unranked"], to=10)
        if at_7:
            with pytest.raises(CannotMigrate) as caught:
                lift(_unranked(source), 7)
            assert caught.value.code == "needs-rank"


RANKED = ("plain", "symbolic", "if", "function")


def _unranked(source: str) -> onnx.ModelProto:
    proto = model(source)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.ClearField("shape")
    return proto


@pytest.mark.parametrize("operator", ARITHMETIC)
def test_arithmetic(operator: str) -> None:
    b = RNG.standard_normal((3, 4)).astype(np.float32)
    expected = ARITHMETIC[operator](A, b[:, :, None])
    source = _source(operator, (3, 4), "broadcast = 1, axis = 1")
    check(source, feeds={"a": A, "b": b}, expected=[expected], variants=RANKED)
    check(source, feeds={"a": A, "b": b}, expected=[expected], variants=["unranked"], to=10)


@pytest.mark.parametrize("operator", LOGICAL)
def test_logical(operator: str) -> None:
    a, b = A > 0, RNG.random((3, 4)) < 0.5
    expected = LOGICAL[operator](a, b[:, :, None])
    source = _source(operator, (3, 4), "broadcast = 1, axis = 1", "bool")
    check(source, feeds={"a": a, "b": b}, expected=[expected], variants=RANKED)
    check(source, feeds={"a": a, "b": b}, expected=[expected], variants=["unranked"], to=10)


@pytest.mark.parametrize("operator", COMPARISON)
def test_comparison(operator: str) -> None:
    kind, dtype = ("int32", np.int32) if operator == "Equal" else ("float", np.float32)
    a, b = np.round(A).astype(dtype), np.round(RNG.standard_normal((3, 4))).astype(dtype)
    expected = COMPARISON[operator](a, b[:, :, None])
    source = _source(operator, (3, 4), "broadcast = 1, axis = 1", kind, "bool")
    check(source, feeds={"a": a, "b": b}, expected=[expected], variants=RANKED)
    check(source, feeds={"a": a, "b": b}, expected=[expected], variants=["unranked"], to=10)


def test_pow() -> None:
    a, b = np.abs(A), np.array([0, 1, 2], np.float32)
    source = _source("Pow", (3,), "broadcast = 1, axis = 1")
    expected = [a ** b[:, None, None]]
    check(source, feeds={"a": a, "b": b}, expected=expected, variants=RANKED, rtol=1e-6)
    check(source, feeds={"a": a, "b": b}, expected=expected, variants=["unranked"], to=10, rtol=1e-6)


def test_a_constant_operand_is_reshaped_if_the_rank_of_the_first_is_unknown() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[2,3,4,5] a) => (float[2,3,4,5] y)
        <float[3] b = {1, 2, 3}> { y = Add <broadcast = 1, axis = 1, consumed_inputs = [0, 0]> (a, b) }"""
    b = np.array([1, 2, 3], np.float32)[:, None, None]
    check(source, to=7, feeds={"a": A}, expected=[A + b])


def test_a_length_of_zero() -> None:
    source = """<ir_version: 3, opset_import: ["": 6]> g (float[2,3,0] a) => (float[2,3,0] y)
        <float[3] b = {1, 2, 3}> { y = Add <broadcast = 1, axis = 1> (a, b) }"""
    a = np.zeros((2, 3, 0), np.float32)
    check(source, feeds={"a": a}, expected=[a])


def test_a_negative_axis_counts_from_the_last() -> None:
    b = RNG.standard_normal(3).astype(np.float32)
    source = _source("Mul", (3,), "broadcast = 1, axis = -3")
    check(source, feeds={"a": A, "b": b}, expected=[A * b[:, None, None]], refused={"unranked": "needs-rank"})


@pytest.mark.parametrize(
    ("shape", "aligned"), [((3,), (3, 1, 1)), ((1,), (1,)), ((3, 1, 1), (3, 1, 1)), (SHAPE, SHAPE)]
)
def test_prelu(shape: tuple[int, ...], aligned: tuple[int, ...]) -> None:
    slope = RNG.random(shape).astype(np.float32)
    dims = ",".join(map(str, shape))
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,3,4,5] x, float[{dims}] s)
        => (float[2,3,4,5] y) {{ y = PRelu <consumed_inputs = [0, 0]> (x, s) }}"""
    expected = np.where(A < 0, A * slope.reshape(aligned), A)
    check(source, to=7, feeds={"x": A, "s": slope}, expected=[expected], variants=RANKED)
    check(source, to=10, feeds={"x": A, "s": slope}, expected=[expected], variants=["unranked"])


def test_prelu_of_two_dimensions() -> None:
    x, slope = A[0, 0], np.array([0.5, 0.25, 2, 3, 4], np.float32)
    source = """<ir_version: 3, opset_import: ["": 6]> g (float[4,5] x) => (float[4,5] y)
        <float[5] s = {0.5, 0.25, 2, 3, 4}> { y = PRelu (x, s) }"""
    check(source, feeds={"x": x}, expected=[np.where(x < 0, x * slope, x)])


@pytest.mark.parametrize(
    ("c", "attributes"), [("2,4", ""), ("4", ", broadcast = 1"), ("1", ", broadcast = 1")]
)
def test_gemm(c: str, attributes: str) -> None:
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[3,2] a, float[3,4] b, float[{c}] c)
        => (float[2,4] y)
        {{ y = Gemm <transA = 1, alpha = 0.5, beta = 2.0{attributes}> (a, b, c) }}"""
    a, b = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in ((3, 2), (3, 4)))
    bias = RNG.integers(-4, 5, [int(dim) for dim in c.split(",")]).astype(np.float32)
    feeds = {"a": a, "b": b, "c": bias}
    check(source, to=7, feeds=feeds, expected=[np.float32(0.5) * (a.T @ b) + 2 * bias])
