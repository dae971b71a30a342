"""What TensorRT's importer wants: axes of a Squeeze, a constant K, and int8 around 0; and what it is warned of."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.harness import model

SQUEEZE = "17 (float[B,3,T,C] x) => (float[B,T,C] y) <float[1,3,1,1] w = {1, 2, 3}> { c = Conv (x, w) y = Squeeze (c) }"
TOP_K = """17 (float[1,A] x) => (float[1,K] v, int64[1,K] i) <int64[1] one = {1}, int64[1] ten = {10}>
{ s = Shape (x) d = Gather (s, one) k = Min (d, ten) v, i = TopK (x, k) }"""


def codes(migration: onnx_migrate.Migration) -> list[str]:
    return [note.code for note in migration.report.notes if note.severity == "warning"]


def to_tensorrt(source: str, release: str = "8.6", **options: object) -> onnx_migrate.Migration:
    return onnx_migrate.migrate(
        model(source), runtime=f"tensorrt=={release}", simplify=False, verify="off", **options
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("opset", [11, 17])
def test_axes_of_a_squeeze_are_written_where_they_are_known(opset: int) -> None:
    found = to_tensorrt(SQUEEZE.replace("17 ", f"{opset} ", 1))

    (node,) = [node for node in found.model.graph.node if node.op_type == "Squeeze"]
    assert len(node.input) == 2  # TensorRT 8.6 gets opset 17
    assert codes(found) == []


def test_axes_of_a_squeeze_that_are_not_known_are_warned_of() -> None:
    found = to_tensorrt(
        "17 (float[B,M,T] x) => (float y) { y = Squeeze (x) }".replace("float y", "float[p,q,r] y")
    )
    assert "form-kept" not in codes(found)  # three axes stay, so that there is none of length 1

    found = to_tensorrt("17 (float[B,M,T] x) => (float[p,q] y) { y = Squeeze (x) }")
    assert set(codes(found)) == {"form-kept", "runtime-fault"}


def test_a_computed_k_is_refused_up_to_8_5_and_warned_of_later() -> None:
    with pytest.raises(CannotMigrate, match="TopK with constant K"):
        to_tensorrt(TOP_K, "8.5")
    assert codes(to_tensorrt(TOP_K)) == ["possible-runtime-fault"]
    assert codes(to_tensorrt(TOP_K.replace("k = Min (d, ten)", "k = Identity (ten)"))) == []


PAIRS = {
    "data": ("17 (float[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {128}>"
             " { q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }"),
    "a constant": ("17 (float[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {128}, uint8[4] w = {0, 127, 128, 255}>"
                   " { d = DequantizeLinear (w, s, z) y = Add (x, d) }"),
    "by channel": ("17 (float[2,3] x) => (float[2,3] y) <float[2] s = {0.1, 0.2}, uint8[2] z = {128, 128}>"
                   " { q = QuantizeLinear <axis = 0> (x, s, z) y = DequantizeLinear <axis = 0> (q, s, z) }"),
    "two readers": ("17 (float[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {128}> { q = QuantizeLinear (x, s, z)"
                    " a = DequantizeLinear (q, s, z) b = DequantizeLinear (q, s, z) y = Add (a, b) }"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_uint8_around_128_becomes_int8_around_0(name: str) -> None:
    proto = model(PAIRS[name])

    found = to_tensorrt(PAIRS[name]).model

    types = {tensor.data_type for tensor in found.graph.initializer}
    assert onnx.TensorProto.UINT8 not in types
    x = np.linspace(-20, 20, 6 if name == "by channel" else 4, dtype=np.float32)
    x = x.reshape(2, 3) if name == "by channel" else x
    for one, other in zip(
        *(ort.InferenceSession(item.SerializeToString()).run(None, {"x": x}) for item in (proto, found)),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


REFUSED = {
    "another zero point": PAIRS["data"].replace("{128}", "{3}"),
    "int8 not around 0": PAIRS["data"].replace("uint8 z = {128}", "int8 z = {3}"),
    "no zero point": PAIRS["data"].replace(", s, z)", ", s)"),
    "an output": PAIRS["data"].replace("float[4] y)", "float[4] y, uint8[4] q)"),
    "an input": "17 (uint8[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {128}> { y = DequantizeLinear (x, s, z) }",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_zero_points_are_refused(name: str) -> None:
    with pytest.raises(CannotMigrate) as caught:
        to_tensorrt(REFUSED[name])
    assert caught.value.code == "target-form"


def test_int8_around_0_stays() -> None:
    source = PAIRS["data"].replace("uint8 z = {128}", "int8 z = {0}")
    assert (
        to_tensorrt(source).model.graph.node == model(source).graph.node or codes(to_tensorrt(source)) == []
    )


def test_products_of_numbers_that_are_quantised_at_run_time_need_floats() -> None:
    source = """17 (float[N,4] x) => (float[N,3] y) <int8[4,3] w = {8,3,2,-5,-4,-7,-8,-3,-8,7,3,1}, int8 wz = {0},
    float ws = {0.01}>
    { q, s, z = DynamicQuantizeLinear (x) i = MatMulInteger (q, w, z, wz)
    f = Cast <to = 1> (i) t = Mul (s, ws) y = Mul (f, t) }"""
    with pytest.raises(CannotMigrate) as caught:
        onnx_migrate.migrate(model(source), runtime="tensorrt==8.6")
    assert "uint8" in caught.value.reason
    assert "--quantized-form float" in caught.value.hint
    found = onnx_migrate.migrate(
        model(source), runtime="tensorrt==8.6", quantized="float", verify="off"
    ).model
    assert {"MatMulInteger", "QuantizeLinear"}.isdisjoint(node.op_type for node in found.graph.node)
