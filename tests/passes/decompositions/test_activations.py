"""Activations written out compute the same at the opsets of their forms."""

from __future__ import annotations

import pytest

from onnx_migrate.engine.steps.decomposition_registry import decomposition_of
from tests.written_out import at, check_written_out

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
