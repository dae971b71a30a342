"""Pairs of QuantizeLinear and DequantizeLinear behind nodes that move int8 values: the outputs stay, bit for bit."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from tests.harness import model

HEAD = """<ir_version: 10, opset_import: ["": OPSET]> g (float[2,4,4,3] x) => (float y)
<float s = {0.1}, TYPE z = {3}, int64[2] one = {1,1}, int64[2] three = {3,3}, int64[1] axis = {0}, int64[2] flat = {2,48}> {
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) BODY }"""

FORMS = {
    "Transpose": "t = Transpose<perm=[0,3,1,2]>(d) y = Sigmoid(t)",
    "an output": "y = Transpose<perm=[0,3,1,2]>(d)",
    "Reshape": "t = Reshape(d, flat) y = Sigmoid(t)",
    "Slice": "t = Slice(d, one, three) y = Sigmoid(t)",
    "MaxPool": "t = MaxPool<kernel_shape=[2,2]>(d) y = Sigmoid(t)",
    "Unsqueeze": "t = Unsqueeze(d, axis) u = Squeeze(t, axis) y = Sigmoid(u)",
    "two in turn": "t = Transpose(d) u = Reshape(t, flat) y = Sigmoid(u)",
    "two readers": "t = Transpose(d) a = Sigmoid(t) b = Relu(t) y = Add(a, b)",
    "a branch": """c = Constant<value = bool {1}>() k = Cast<to=9>(c) y = If(k) <
        then_branch = h () => (float p) { m = DequantizeLinear(q, s, z) n = Transpose(m) p = Sigmoid(n) },
        else_branch = e () => (float o) { r = Transpose(d) o = Identity(r) }>""",
}


def source(form: str, opset: int = 21, dtype: str = "int8") -> onnx.ModelProto:
    text = HEAD.replace("OPSET", str(opset)).replace("TYPE", dtype).replace("BODY", form)
    found = model(text)
    found.graph.output[0].type.tensor_type.ClearField("shape")
    return found


def paired(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    return make_pass("quantized_pairs").run(Model(proto).copy(), log).proto, log


def run(proto: onnx.ModelProto, level: onnxruntime.GraphOptimizationLevel) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    rng = np.random.default_rng(0)
    return session.run(None, {"x": rng.normal(scale=4, size=(2, 4, 4, 3)).astype(np.float32)})[0]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_outputs_stay_and_the_model_loads(form: str) -> None:
    before = source(form)
    after, log = paired(before)
    check_legal(after)
    assert log.changes
    assert all(change.exactness is Exactness.EXACT for change in log.changes)
    levels = onnxruntime.GraphOptimizationLevel
    expected = run(before, levels.ORT_DISABLE_ALL)
    np.testing.assert_array_equal(run(after, levels.ORT_DISABLE_ALL), expected)
    np.testing.assert_allclose(run(after, levels.ORT_ENABLE_ALL), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("form", "opset", "dtype"),
    [
        (FORMS["Transpose"], 20, "int8"),
        (FORMS["Transpose"], 21, "uint8"),
        ("y = Sigmoid(d)", 21, "int8"),
        ("t = Transpose(d) r = QuantizeLinear(t, s, z) y = DequantizeLinear(r, s, z)", 21, "int8"),
    ],
    ids=["an older opset", "uint8", "nothing is moved", "a pair is there"],
)
def test_what_loads_is_left_as_it_is(form: str, opset: int, dtype: str) -> None:
    before = source(form, opset, dtype)
    assert paired(before)[0] == before


def test_a_second_run_changes_nothing() -> None:
    once, _ = paired(source(FORMS["two in turn"]))
    assert paired(once)[0] == once
