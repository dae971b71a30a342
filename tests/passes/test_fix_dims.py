"""Symbols become numbers in inputs and in what is computed from them."""

from __future__ import annotations

from typing import Any

import pytest

import onnx_migrate
from onnx_migrate.errors import UsageError
from onnx_migrate.model.interface import Interface
from tests.harness import model

NET = """17 (float[N,3,H,W] x, float[N] z) => (float[N,3,h2,w2] y, float[N,M] v)
  <float[4] k = {1., 1., 2., 2.}, int64[2] m = {0, 1}> {
  y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, , k)
  v = Reshape(z, m)
}"""


def shapes(fix: Any, source: str = NET) -> dict[str, Any]:
    migration = onnx_migrate.migrate(model(source), fix=fix, simplify=False)
    assert migration.report.verification is not None
    assert migration.report.verification.kind.value == "verified"
    interface = Interface.of(migration.model)
    return {port.name: port.shape for port in (*interface.inputs, *interface.outputs)}


def test_a_symbol_becomes_a_number_everywhere() -> None:
    assert shapes("N=1") == {"x": (1, 3, "H", "W"), "z": (1,), "y": (1, 3, "h2", "w2"), "v": (1, 1)}


@pytest.mark.parametrize(
    "fix", ["x:1,3,8,6", {"x": [1, 3, 8, 6]}, {"N": 1, "H": 8, "W": 6}, ["N=1", "x:1,3,8,6"]]
)
def test_all_sizes_of_an_input_at_once(fix: Any) -> None:
    assert shapes(fix) == {"x": (1, 3, 8, 6), "z": (1,), "y": (1, 3, 16, 12), "v": (1, 1)}


@pytest.mark.parametrize(
    ("fix", "code"),
    [
        ("K=1", "unknown-symbol"),
        ("q:1", "no-such-input"),
        ("x:1,3", "no-such-axis"),
        ("x:1,4,8,8", "other-size"),
        (["N=1", "x:2,3,8,8"], "other-size"),
        ("x=", "usage"),
        ("x:a,b", "usage"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(fix: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        shapes(fix)
    assert caught.value.code == code


def test_fixing_a_dynamic_dim_restores_the_original() -> None:
    """A network with the batch fixed and simplified is made dynamic again, as it was."""
    fixed = onnx_migrate.migrate(model(NET), fix="x:1,3,8,6").model

    back = onnx_migrate.migrate(fixed, dynamic_batch=True)

    assert back.report.dynamic is not None
    assert back.report.dynamic.holds
    assert Interface.of(back.model).outputs[0].shape == ("N", 3, 16, 12)


def test_an_expression_of_a_symbol_becomes_its_value() -> None:
    text = "17 (float[N,4] x, int64[2] s) => (float[A,B] y) { y = Reshape(x, s) }"
    source = model(text)
    for dim, expression in zip(
        source.graph.output[0].type.tensor_type.shape.dim, ("2*N", "N + M"), strict=True
    ):
        dim.dim_param = expression
    migration = onnx_migrate.migrate(source, fix="N=3", simplify=False, verify=False)
    assert Interface.of(migration.model).outputs[0].shape == (6, "N + M")
