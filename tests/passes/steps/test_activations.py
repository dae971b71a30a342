"""Activations that an older opset, or a target, does not have, or has for fewer types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.errors import InvalidModel
from tests.harness import FLOATS
from tests.steps import check, check_down, check_written_out, lower, refuses, special_values
from tests.support.skips import Elsewhere, import_or_skip

ml_dtypes = import_or_skip("ml_dtypes", Elsewhere.NEWEST)


def text(opset: int, node: str, dtype: str = "float", shape: str = "2,3,5") -> str:
    return f"{opset} ({dtype}[{shape}] x) => ({dtype}[{shape}] y) {{ y = {node} }}"


CLOSE = {"rtol": 1e-6, "atol": 1e-7}
DOWN = [
    # node, opsets, types, targets, how it is compared
    ("HardSwish (x)", (14, 22), FLOATS, (13, 9, 7), {}),
    ("Mish (x)", (18, 22), FLOATS, (17, 9, 7), {}),
    ("Swish (x)", (24,), FLOATS, (23, 12, 7), {}),
    ("Swish <alpha = 1.0> (x)", (24,), FLOATS, (23, 12, 7), {}),
    ("Swish <alpha = 1.702> (x)", (24,), ["float", "double"], (23, 12, 7), {}),
    # ONNX Runtime keeps the float16 alpha of the original in float32, as it drops Casts there and back.
    ("Swish <alpha = 1.702> (x)", (24,), ["float16"], (23, 12, 7), {"rtol": 2e-3}),
    *(
        (f"Gelu {formula} (x)", (20,), [dtype], (19, 17, 13, 9), {"rtol": 2e-6, "atol": 1e-6 if dtype == "float16" else 1e-7})
        for formula in ("", '<approximate = "none">', '<approximate = "tanh">') for dtype in FLOATS
    ),
    ("Gelu (x)", (20,), ["float16"], (19, 13, 9), {}),  # the bits of the function body
    ("Celu (x)", (12,), ["float"], (11, 9, 7), CLOSE),
    ("Celu <alpha = 2.0> (x)", (12,), ["float"], (11, 9, 7), CLOSE),
    ("Celu <alpha = 0.3> (x)", (12,), ["float"], (11, 9, 7), {**CLOSE, "specials": False}),  # X / 0.3 overflows
    ("Celu <alpha = 0.7> (x)", (28,), ["float", "double"], (27, 11), {"rtol": 1e-6, "atol": 1e-6, "specials": False}),
    ("Celu <alpha = -0.7> (x)", (12,), ["float"], (11, 9, 7), {"rtol": 1e-5, "atol": 1e-5, "specials": False}),
    ("Celu <alpha = -0.7> (x)", (28,), ["double"], (27, 11), {"rtol": 1e-6, "atol": 1e-6, "specials": False}),
    ("Celu <alpha = 0.7> (x)", (28,), ["float16"], (27, 11), {"rtol": 2e-3, "atol": 2e-3, "specials": False}),
    ("Relu (x)", (14,), [*FLOATS, "int8", "int32"], (13, 12), {"specials": None, "rtol": 0.0, "atol": 0.0}),
    *(
        (f"ThresholdedRelu {alpha} (x)", (10,), ["float", "float16"], (9, 8), {})
        for alpha in ("", "<alpha = 0.0>", "<alpha = -1.5>")
    ),
    *(
        (f"Shrink {given} (x)", (9,), [dtype], (8,), how)
        for given in ("", "<bias = 1.5, lambd = 1.5>", "<lambd = -0.5, bias = 0.5>")
        # ONNX Runtime rounds doubles to float32 here.
        for dtype, how in (("float", {}), ("float16", {}), ("double", {"rtol": 1e-6, "atol": 1e-6}))
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("node", "opset", "dtype", "targets", "how"),
    [
        (node, opset, dtype, *rest)
        for node, opsets, dtypes, *rest in DOWN
        for opset in opsets
        for dtype in dtypes
    ],
)
def test_down(node: str, opset: int, dtype: str, targets: tuple[int, ...], how: dict[str, Any]) -> None:
    """ONNX Runtime has no kernels of double for the parts, and onnx.reference warns of NaN, so no special values there."""
    double = {"specials": False, "rtol": 1e-12, "atol": 1e-14} if dtype == "double" else {}
    check_down(text(opset, node, dtype), *targets, **{**double, **how})


@pytest.mark.parametrize("alpha", ["", "<alpha = 0.5>"])
def test_swiglu(alpha: str) -> None:
    source = f"28 (float[2,3] a, float[2,3] b) => (float[2,3] y) {{ y = SwiGLU {alpha} (a, b) }}"
    check_down(source, 27, 23, 13, rtol=1e-6, specials=False)


def test_gelu_of_bfloat16_computes_in_float32() -> None:
    x = np.linspace(-6, 6, 30).reshape(2, 3, 5).astype(ml_dtypes.bfloat16)
    exact = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))(x.astype(np.float64))
    lowered, _ = lower(text(20, "Gelu (x)", "bfloat16"), 17)
    (y,) = ReferenceEvaluator(lowered).run(None, {"x": x})
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=2**-8, atol=1e-7)


@pytest.mark.parametrize("dtype", ["int16", "int64"])
def test_relu_of_integers_without_a_kernel(dtype: str) -> None:
    x = special_values(np.dtype(dtype))[:12]
    check_down(text(14, "Relu (x)", dtype, "12"), 13, 12, feeds={"x": x}, expected=[np.maximum(x, 0)])


def test_shrink_of_integers_is_refused() -> None:
    refuses("no-equal", lower, text(9, "Shrink <lambd = 1.5> (x)", "int32"), 8)


@pytest.mark.parametrize(
    ("opset", "node"), [(24, "Swish"), (20, "Gelu"), (14, "HardSwish"), (12, "Celu"), (10, "ThresholdedRelu")]
)
def test_empty_tensors(opset: int, node: str) -> None:
    check_down(text(opset, f"{node} (x)", shape="2,0"), 9, variants=("plain",))


def test_an_unknown_formula_of_gelu_is_invalid() -> None:
    with pytest.raises(InvalidModel):
        lower(text(20, 'Gelu <approximate = "sigmoid"> (x)'), 19)


@pytest.mark.parametrize("opset", [7, 13, 22])
@pytest.mark.parametrize(
    ("node", "atol"),
    [
        ("HardSigmoid <alpha = 0.3, beta = 0.4> (x)", 1e-7), ("HardSigmoid (x)", 1e-7), ("Softplus (x)", 1e-6),
        ("Elu <alpha = 0.7> (x)", 2e-7), ("Elu (x)", 2e-7), ("Selu (x)", 1e-6), ("LeakyRelu <alpha = 0.2> (x)", 0.0),
        ("LeakyRelu (x)", 0.0), ("Softsign (x)", 1e-7), ("Sigmoid (x)", 2e-7), ("Tanh (x)", 5e-7),
    ],
)  # fmt: skip
def test_written_out(node: str, atol: float, opset: int) -> None:
    operator = node.split()[0]
    check_written_out(text(opset, node, shape="2,3,4"), operator, atol=atol, rtol=atol)
    assert decomposition_of("", operator)


@pytest.mark.parametrize("opset", [9, 13])
def test_erf_is_approximated(opset: int) -> None:
    check_written_out(text(opset, "Erf (x)", shape="5,200"), "Erf", atol=5e-7)


@pytest.mark.parametrize("opset", [7, 9, 16])
def test_prelu(opset: int) -> None:
    source = f"{opset} (float[2,3,4] x, float[3,1] s) => (float[2,3,4] y) {{ y = PRelu (x, s) }}"
    check_written_out(source, "PRelu")


def test_one_is_written_by_another_that_is_written_out_too() -> None:
    check_written_out(text(17, "HardSwish (x)", shape="2,3"), "HardSwish", "HardSigmoid", atol=1e-6)


@pytest.mark.parametrize("alpha", ["", "<alpha = 2.0>", "<alpha = -1.0>"])
def test_thresholded_relu_upward(alpha: str) -> None:
    check(text(10, f"ThresholdedRelu {alpha} (x)"), to=22)
