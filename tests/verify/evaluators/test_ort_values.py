"""Tensors of types that numpy lacks go into ONNX Runtime and come out."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.evaluators.ort_values import from_ort_value, is_foreign, to_ort_value
from tests.support.skips import Elsewhere, skip_if
from tests.verify.harness import check, net, outputs

needs_types = skip_if(
    onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16) == np.float32,
    "onnx before 1.19 represents these types by float32 in NumPy",
    Elsewhere.NEWEST,
)


@needs_types
@pytest.mark.parametrize(
    "kind", ["bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]
)
def test_foreign_types_pass_through_unchanged(kind):
    model = net(
        f"({kind}[2,3] x, float[2] z) => ({kind}[2,3] y, float[2] w) {{ y = Identity(x) w = Relu(z) }}",
        opset=19,
    )
    model.ir_version = 9
    dtype = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    x = np.array([[1, 0, -2], [0.5, 3, 4]]).astype(dtype)
    found = outputs(model, {"x": x, "z": np.array([-1, 1], np.float32)})
    assert found["y"].dtype == dtype
    assert np.array_equal(found["y"].view(np.uint8), x.view(np.uint8))
    assert found["w"].tolist() == [0, 1]
    assert is_foreign(f"tensor({kind})")
    assert not is_foreign("tensor(float16)")
    empty = outputs(model, {"x": x, "z": np.zeros(2, np.float32)})["y"]
    assert empty.shape == (2, 3)


@needs_types
def test_a_model_of_bfloat16_is_compared():
    before = net(
        "(bfloat16[4,8] x) => (bfloat16[4,8] y) { c = Cast<to=1>(x) r = Relu(c) y = Cast<to=16>(r) }",
        opset=19,
    )
    after = net(
        "(bfloat16[4,8] x) => (bfloat16[4,8] y) { c = Cast<to=1>(x) r = Abs(c) y = Cast<to=16>(r) }", opset=19
    )
    check(before, before, Kind.VERIFIED)
    check(before, after, Kind.DIFFERS)


@needs_types
@pytest.mark.parametrize("kind", ["INT4", "UINT4"])
def test_packed_integers_go_in_and_come_out(kind):
    model = net("(float[3] x) => (float[3] y) { y = Cast<to=1>(x) z = Cast<to=1>(x) }", opset=21, ir=10)
    element = onnx.TensorProto.DataType.Value(kind)
    model.graph.input[0].type.tensor_type.elem_type = element
    del model.graph.node[1]
    back = net("(float[3] x) => (float[3] y) { y = Cast<to=1>(x) }", opset=21, ir=10)
    back.graph.node[0].attribute[0].i = element
    back.graph.output[0].type.tensor_type.elem_type = element
    values = [3, -8, 5] if kind == "INT4" else [3, 15, 5]
    narrow = np.array(values).astype(onnx.helper.tensor_dtype_to_np_dtype(element))
    assert outputs(model, {"x": narrow})["y"].tolist() == values
    assert outputs(back, {"x": np.array(values, np.float32)})["y"].astype(int).tolist() == values
    check(model, model, Kind.VERIFIED)
    check(back, back, Kind.VERIFIED)


def test_an_onnx_that_widens_a_type_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of bfloat16 must not be read as float32."""

    class Value:
        def data_type(self) -> str:
            return "tensor(bfloat16)"

    monkeypatch.setattr("onnx.helper.tensor_dtype_to_np_dtype", lambda element_type: np.dtype(np.float32))

    with pytest.raises(TypeError, match=r"represents BFLOAT16 by float32.*onnx 1\.19"):
        to_ort_value(np.zeros(2, np.float32), "tensor(bfloat16)")
    with pytest.raises(TypeError, match=r"onnx 1\.19"):
        from_ort_value(Value())
