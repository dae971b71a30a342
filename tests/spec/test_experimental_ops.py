"""What is known of values behind operators that onnx no longer has."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from onnx_migrate.analysis.value_types import TypeTable, ValueType
from tests.harness import model


def _known(body: str, opset: int = 9) -> ValueType:
    proto = model(f"""<ir_version: 4, opset_import: ["": {opset}]> g (float16[2,3,5,7] x) => (float16[A,B,C,D] y)
        {{ t = {body} (x)  u = Relu (t)  y = Neg (u) }}""")
    del proto.graph.output[:]
    before = proto.SerializeToString()
    found = TypeTable(proto).lookup(None, (), "u")
    assert proto.SerializeToString() == before
    return found


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("ImageScaler <bias = [1.0, 2.0, 3.0]>", (2, 3, 5, 7)),
        ("ScaledTanh <alpha = 1.0, beta = 2.0>", (2, 3, 5, 7)),
        ("Crop <border = [1, 2, 3, 0]>", (2, 3, 3, 3)),
        ("Crop <border = [0, 0, 0, 0]>", (2, 3, 5, 7)),
        ("Crop <border = [1, 2, 9, 9], scale = [2, 3]>", (2, 3, 2, 3)),
    ],
)
def test_types_go_through_what_onnx_does_not_know(body: str, shape: tuple[int, ...]) -> None:
    assert _known(body) == ValueType(TensorProto.FLOAT16, shape)


def test_the_experimental_form_does_not_stop_them() -> None:
    assert _known("MeanVarianceNormalization <across_channels = 1>", 8).rank == 4


@pytest.mark.parametrize("body", ["Crop <border = [1]>", "Softermax"])
def test_what_is_not_understood_is_unknown(body: str) -> None:
    assert _known(body) == ValueType()


def test_inside_functions_too() -> None:
    proto = model("""<ir_version: 8, opset_import: ["": 13, "local": 1]> g (float[2,3] x) => (y)
        { y = local.F (x) }
        <opset_import: ["": 9], domain: "local"> F (a) => (b) { t = Scale <scale = 2.0> (a)  b = Relu (t) }""")
    table = TypeTable(proto)
    assert table.lookup(("local", "F", ""), (), "b").shape == (2, 3)
    assert table.lookup(None, (), "y").shape == (2, 3)
