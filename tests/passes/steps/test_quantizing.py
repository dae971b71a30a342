"""The arithmetic of quantisation: halves, ends, NaN, and what a type that the target lacks says."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower

HALVES = np.array(
    [[0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, -0.49999997, 127.5, 126.5, -128.5, 254.5]], np.float32
)
ENDS = np.array(
    [[np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, -0.0, 8388609, 1e9, -1e9, 300, -300]], np.float32
)


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("x", [HALVES, ENDS], ids=["halves", "ends"])
def test_rounding_and_saturation(kind: str, x: np.ndarray) -> None:  # type: ignore[type-arg]
    source = f"""<ir_version: 5, opset_import: ["": 10]> graph (float[1,12] x, float s, {kind} z) => ({kind}[1,12] y)
        {{ y = QuantizeLinear(x, s, z) }}"""
    for zero in (0, 3, 100):
        feeds = {"x": x, "s": np.array(1, np.float32), "z": np.array(zero, kind)}
        check_down(source, 9, 8, 7, feeds=feeds)


@pytest.mark.parametrize("kind", ["uint16", "int16"])
@pytest.mark.parametrize("x", [HALVES, ENDS], ids=["halves", "ends"])
def test_words(kind: str, x: np.ndarray) -> None:  # type: ignore[type-arg]
    source = f"""<ir_version: 10, opset_import: ["": 21]> graph (float[1,12] x, float s, {kind} z) => ({kind}[1,12] y)
        {{ y = QuantizeLinear(x, s, z) }}"""
    feeds = {"x": x, "s": np.array(1, np.float32), "z": np.array(30, kind)}
    check_down(source, 20, 12, 10, 8, feeds=feeds, refused={"unranked": "needs-rank"})


def test_a_missing_type_names_its_opset() -> None:
    source = """<ir_version: 10, opset_import: ["": 21]> graph (int4[4] x, float s) => (float[4] y)
        { y = DequantizeLinear(x, s) }"""
    with pytest.raises(CannotMigrate) as caught:
        lower(source, 20)
    assert (caught.value.code, "opset 21" in str(caught.value)) == ("no-such-type", True)
