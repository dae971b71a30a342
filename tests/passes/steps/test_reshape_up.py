from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model


@pytest.mark.parametrize(
    ("shape", "result"), [("6,4", (6, 4)), ("0,-1", (2, 12)), ("-1", (24,)), ("0,0,4", (2, 3, 4))]
)
def test_reshape(shape: str, result: tuple[int, ...]) -> None:
    dims = ",".join(map(str, result))
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,3,4] x) => (float[{dims}] y)
        {{ y = Reshape <shape = [{shape}], consumed_inputs = [0]> (x) }}"""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check(source, to=7, feeds={"x": x}, expected=[x.reshape(result)])


def test_a_node_without_a_shape_is_refused() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[2] x) => (float[2] y) { y = Reshape (x) }"""
    with pytest.raises(CannotMigrate) as caught:
        lift(model(source), 7)
    assert caught.value.code == "invalid-node"


@pytest.mark.parametrize("opset", [7, 13])
def test_a_zero_keeps_a_length_at_every_opset(opset: int) -> None:
    source = f"""<ir_version: 7, opset_import: ["": {opset}]> g (float[2,3,4] x, int64[2] s)
        => (float[2,12] y)
        {{ y = Reshape (x, s) }}"""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    check(source, to=14, feeds={"x": x, "s": np.array([0, -1])})
