"""A model of float16 runs with every value rounded, and with no more nodes than that takes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import STRICT, UNOPTIMIZED, open_model
from onnx_migrate.verify.evaluators.strict import rounded_weights, strict
from tests.harness import model
from tests.steps import operators

X = np.linspace(-3, 3, 16, dtype=np.float16).reshape(4, 4)


def half_product(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one.astype(np.float32) @ other.astype(np.float32)).astype(np.float16)


def check(text: str, expected: dict[str, np.ndarray], casts: int) -> None:
    """A model on X gives these bits, and its strict form has so many Casts."""
    runnable = Runnable(structure=model(text).SerializeToString())
    given = open_model(runnable, STRICT).run({"x": X})
    for name, value in expected.items():
        np.testing.assert_array_equal(given[name], value)
    assert operators(strict(runnable).model).count("Cast") == casts


def test_what_gives_numbers_that_it_reads_is_not_rounded_again() -> None:
    """The input and two products are rounded and read, or given out; what stands between the products is not."""
    product = np.maximum(half_product(X, X), 0).T
    check(
        "17 (float16[4,4] x) => (float16[4,4] y) { a = MatMul(x, x)  b = Relu(a)  c = Transpose(b)  y = MatMul(c, x) }",
        {"y": half_product(product, X)},
        4,
    )


def test_what_is_given_out_or_read_as_it_is_written_has_the_narrow_type() -> None:
    """An output, what a Cast reads, and what a body reads."""
    product = half_product(X, X)
    check(
        """17 (float16[4,4] x) => (float16[4,4] b, float[4,4] d, float16[4,4] y) { a = MatMul(x, x)  b = Neg(a)  c = Abs(a)
        d = Cast<to = 1>(c)  e = Transpose(a)  k = Constant<value = bool {1}>()
        y = If (k) <then_branch = p () => (float16[4,4] r) { r = MatMul(e, x) },
                    else_branch = q () => (float16[4,4] s) { s = Identity(e) }> }""",
        {
            "b": -product,
            "d": np.abs(product).astype(np.float32),
            "y": half_product(product.T, X),
        },
        7,
    )


@pytest.mark.parametrize("opset", [7, 11])
def test_bounds_of_a_clip_are_rounded(opset: int) -> None:
    """As an attribute, 0.1 is no number of float16."""
    if opset == 7:
        text = (
            "7 (float16[4,4] x) => (float16[4,4] y) { c = Clip<min = -0.1, max = 0.1>(x)  y = MatMul(c, x) }"
        )
    else:
        text = """11 (float16[4,4] x) => (float16[4,4] y) { l = Constant<value = float[1] {-0.1}>()
            m = Cast<to = 10>(l)  s = Squeeze<axes = [0]>(m)  c = Clip(x, s)  y = MatMul(c, x) }"""
    largest = np.float16(0.1) if opset == 7 else np.inf
    clipped = np.clip(X, -np.float16(0.1), largest).astype(np.float16)
    check(text, {"y": half_product(clipped, X)}, 4)


def test_small_constants_are_stored_in_float32() -> None:
    proto = model("17 (float16[4,4] x) => (float16[4,4] y) { y = MatMul(x, w) }")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(X, "w"))
    runnable = Runnable(structure=proto.SerializeToString())
    given = open_model(runnable, STRICT).run({"x": X})
    np.testing.assert_array_equal(given["y"], half_product(X, X))
    assert operators(strict(runnable).model).count("Cast") == 2  # of the input and the output


def test_weights_are_rounded_where_a_branch_inside_a_branch_reads_them() -> None:
    """The constant is that of the outer branch, and the node that reads it is in the inner one."""
    numbers = np.linspace(1, 2, 300, dtype=np.float32)
    text = f"""17 (float[300] x, bool c) => (float[300] y) {{
        y = If (c) <then_branch = t () => (float[300] p) <float[300] w = {{{", ".join(map(repr, numbers.tolist()))}}}> {{
            p = If (c) <then_branch = tt () => (float[300] r) {{ r = Mul (x, w) }},
                        else_branch = te () => (float[300] s) {{ s = Abs (x) }}> }},
                    else_branch = e () => (float[300] q) {{ q = Neg (x) }}> }}"""
    original = Runnable(structure=model(text).SerializeToString())
    for stored in (True, False):
        rounded = rounded_weights(original, TensorProto.FLOAT16, stored=stored)
        given = open_model(rounded, UNOPTIMIZED).run({"x": np.ones(300, np.float32), "c": np.array(True)})
        assert given["y"].tolist() == numbers.astype(np.float16).tolist()
