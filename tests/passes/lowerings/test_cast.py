"""Cast below 24 and 19: attributes of types that go away."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower


@pytest.mark.parametrize("to", [6, 7, 9, 10, 11])
def test_saturate(to: int) -> None:
    source = f"""<ir_version: 10, opset_import: ["": 19]> graph (float[2, 3] x) => (y)
        {{ y = Cast <to = {to}, saturate = 1> (x) }}"""
    check_down(source, 18, 13, 9, 7, feeds={"x": np.array([[1.5, -2.5, 0], [3, 4, 100]], np.float32)})


def test_round_mode() -> None:
    source = """<ir_version: 11, opset_import: ["": 24]> graph (float[2, 3] x) => (y)
        { y = Cast <to = 10, round_mode = "nearest"> (x) }"""
    check_down(source, 23, 19, 18, 9, feeds={"x": np.array([[1.5, -2.5, 0], [3, 4, 100]], np.float32)})


@pytest.mark.parametrize(("opset", "to", "below"), [(19, 17, 18), (24, 24, 23)])
def test_a_type_that_goes_away(opset: int, to: int, below: int) -> None:
    source = f"""<ir_version: 11, opset_import: ["": {opset}]> graph (float[2, 3] x) => (float[] z)
        {{ y = Cast <to = {to}> (x)  z = Cast <to = 1> (y) }}"""
    with pytest.raises(CannotMigrate) as caught:
        lower(source, below)
    assert caught.value.code == "no-such-type"
