"""Activations that an older opset, or a target, does not have, or has for fewer types."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from onnx_migrate.engine.steps.decomposition_registry import decomposition_of
from onnx_migrate.errors import CannotMigrate, InvalidModel
from tests.harness import check as check_up
from tests.lowering import check_down, lower, special_values
from tests.written_out import at, check_written_out

ml_dtypes = pytest.importorskip("ml_dtypes", reason="onnx before 1.19 does not bring it")

FLOATS = ["float", "double", "float16"]


def text(opset: int, node: str, dtype: str = "float", shape: str = "2,3,5") -> str:
    return f"""<ir_version: 10, opset_import: ["": {opset}]> g ({dtype}[{shape}] x) => ({dtype}[{shape}] y) {{ y = {node} }}"""


def check(opset: int, node: str, dtype: str, *targets: int, rtol: float = 0.0, atol: float = 0.0) -> None:
    """ONNX Runtime has no kernels of double for the parts, and onnx.reference warns of NaN, so no special values there."""
    double = dtype == "double"
    check_down(
        text(opset, node, dtype),
        *targets,
        specials=not double,
        rtol=max(rtol, 1e-12 if double else 0),
        atol=max(atol, 1e-14 if double else 0),
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_hard_swish(dtype: str) -> None:
    for opset in (14, 22):
        check(opset, "HardSwish (x)", dtype, 13, 9, 7)


@pytest.mark.parametrize("dtype", FLOATS)
def test_mish(dtype: str) -> None:
    for opset in (18, 22):
        check(opset, "Mish (x)", dtype, 17, 9, 7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("alpha", ["", "<alpha = 1.0>", "<alpha = 1.702>"])
def test_swish(dtype: str, alpha: str) -> None:
    # ONNX Runtime keeps the float16 alpha of the original in float32, as it drops Casts there and back.
    loose = 2e-3 if dtype == "float16" and "702" in alpha else 0
    check(24, f"Swish {alpha} (x)", dtype, 23, 12, 7, rtol=loose)


@pytest.mark.parametrize("alpha", ["", "<alpha = 0.5>"])
def test_swiglu(alpha: str) -> None:
    check_down(
        f"""<ir_version: 14, opset_import: ["": 28]> g (float[2,3] a, float[2,3] b) => (float[2,3] y)
        {{ y = SwiGLU {alpha} (a, b) }}""",
        27,
        23,
        13,
        rtol=1e-6,
        specials=False,
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("approximate", ["", '<approximate = "none">', '<approximate = "tanh">'])
def test_gelu(dtype: str, approximate: str) -> None:
    check(
        20,
        f"Gelu {approximate} (x)",
        dtype,
        19,
        17,
        13,
        9,
        rtol=2e-6,
        atol=1e-6 if dtype == "float16" else 1e-7,
    )


def test_gelu_of_float16_has_the_bits_of_the_function_body() -> None:
    check(20, "Gelu (x)", "float16", 19, 13, 9)


def test_gelu_of_bfloat16_computes_in_float32() -> None:
    x = np.linspace(-6, 6, 30).reshape(2, 3, 5).astype(ml_dtypes.bfloat16)
    wide = x.astype(np.float64)
    exact = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))(wide)
    lowered, _ = lower(text(20, "Gelu (x)", "bfloat16"), 17)
    (y,) = ReferenceEvaluator(lowered).run(None, {"x": x})
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=2**-8, atol=1e-7)


@pytest.mark.parametrize("alpha", ["", "<alpha = 2.0>", "<alpha = 0.3>"])
def test_celu(alpha: str) -> None:
    # X / 0.3 overflows for the largest X.
    specials = "0.3" not in alpha
    check_down(text(12, f"Celu {alpha} (x)"), 11, 9, 7, rtol=1e-6, atol=1e-7, specials=specials)


@pytest.mark.parametrize("dtype", FLOATS)
def test_celu_28(dtype: str) -> None:
    tolerance = {"float16": 2e-3}.get(dtype, 1e-6)
    check_down(
        text(28, "Celu <alpha = 0.7> (x)", dtype), 27, 11, specials=False, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "int32"])
def test_relu(dtype: str) -> None:
    check_down(text(14, "Relu (x)", dtype), 13, 12)


@pytest.mark.parametrize("dtype", ["int16", "int64"])
def test_relu_of_integers_without_a_kernel(dtype: str) -> None:
    x = special_values(np.dtype(dtype))[:12]
    check_down(text(14, "Relu (x)", dtype, "12"), 13, 12, feeds={"x": x}, expected=[np.maximum(x, 0)])


@pytest.mark.parametrize("alpha", ["", "<alpha = 0.0>", "<alpha = -1.5>"])
def test_thresholded_relu(alpha: str) -> None:
    for dtype in ("float", "float16"):
        check(10, f"ThresholdedRelu {alpha} (x)", dtype, 9, 8)


@pytest.mark.parametrize("attributes", ["", "<bias = 1.5, lambd = 1.5>", "<lambd = -0.5, bias = 0.5>"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_shrink(attributes: str, dtype: str) -> None:
    # ONNX Runtime rounds doubles to float32 here.
    loose = 1e-6 if dtype == "double" else 0
    check_down(
        text(9, f"Shrink {attributes} (x)", dtype), 8, rtol=loose, atol=loose, specials=dtype != "double"
    )


def test_shrink_of_integers_is_refused() -> None:
    with pytest.raises(CannotMigrate) as caught:
        lower(text(9, "Shrink <lambd = 1.5> (x)", "int32"), 8)
    assert caught.value.code == "no-equal"


def test_empty_tensors() -> None:
    for opset, node in (
        (24, "Swish"),
        (20, "Gelu"),
        (14, "HardSwish"),
        (12, "Celu"),
        (10, "ThresholdedRelu"),
    ):
        check_down(text(opset, f"{node} (x)", shape="2,0"), 9, variants=("plain",))


def test_an_unknown_formula_of_gelu_is_invalid() -> None:
    with pytest.raises(InvalidModel):
        lower(text(20, 'Gelu <approximate = "sigmoid"> (x)'), 19)


CASES = [
    ("HardSigmoid", "<alpha = 0.3, beta = 0.4>", 1e-7),
    ("HardSigmoid", "", 1e-7),
    ("Softplus", "", 1e-6),
    ("Elu", "<alpha = 0.7>", 2e-7),
    ("Elu", "", 2e-7),
    ("Selu", "", 1e-6),
    ("LeakyRelu", "<alpha = 0.2>", 0.0),
    ("LeakyRelu", "", 0.0),
    ("Softsign", "", 1e-7),
    ("Sigmoid", "", 2e-7),
    ("Tanh", "", 5e-7),
]


@pytest.mark.parametrize("opset", [7, 13, 22])
@pytest.mark.parametrize(("operator", "attributes", "atol"), CASES)
def test_an_activation(operator: str, attributes: str, atol: float, opset: int) -> None:
    text = at(opset, f"g (float[2,3,4] x) => (float[2,3,4] y) {{ y = {operator} {attributes} (x) }}")
    check_written_out(text, operator, atol=atol, rtol=atol)
    assert decomposition_of("", operator)


@pytest.mark.parametrize("opset", [9, 13])
def test_erf_is_approximated(opset: int) -> None:
    text = at(opset, "g (float[5,200] x) => (float[5,200] y) { y = Erf (x) }")
    check_written_out(text, "Erf", atol=5e-7)


@pytest.mark.parametrize("opset", [7, 9, 16])
def test_prelu(opset: int) -> None:
    check_written_out(
        at(opset, "g (float[2,3,4] x, float[3,1] s) => (float[2,3,4] y) { y = PRelu (x, s) }"),
        "PRelu",
    )


def test_one_is_written_by_another_that_is_written_out_too() -> None:
    check_written_out(
        at(17, "g (float[2,3] x) => (float[2,3] y) { y = HardSwish (x) }"),
        "HardSwish",
        "HardSigmoid",
        atol=1e-6,
    )


@pytest.mark.parametrize("alpha", ["", "<alpha = 2.0>", "<alpha = -1.0>"])
def test_thresholded_relu_upward(alpha: str) -> None:
    check_up(text(10, f"ThresholdedRelu {alpha} (x)"), to=22)
