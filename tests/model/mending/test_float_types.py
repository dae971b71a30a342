"""Models that converters to float16 broke: two floating-point types where an operator takes one."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import onnx_migrate
from onnx_migrate.engine.validity import accepted
from onnx_migrate.errors import InvalidModel
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import loads, model

F16, F32 = TensorProto.FLOAT16, TensorProto.FLOAT

HALF = "<float16[3] k = {15360, 16384, 16896}>"
"""1, 2 and 3, as the parser takes the bits of float16."""

BROKEN = {
    "a Cast that was left behind": f"""17 (float[2,3] x) => (float[2,3] y) {HALF} {{
        a = Cast<to = 1>(x) b = Mul(a, k) y = Relu(b) }}""",
    "a float32 constant": """17 (float[2,3] x) => (float16[2,3] y) <float[3] k = {1e9, 2, 3}> {
        a = Cast<to = 10>(x) b = Mul(a, k) y = Sigmoid(b) }""",
    "an output of another type": f"17 (float[2,3] x) => (float[2,3] y) {HALF} {{ a = Cast<to = 10>(x) y = Add(a, k) }}",
    "an output that is read": f"""17 (float[2,3] x) => (float[2,3] y, float16[2,3] z) {HALF} {{
        a = Cast<to = 10>(x) y = Add(a, k) z = Abs(y) }}""",
    "scales of a Resize": """17 (float[1,1,2,3] x) => (float[1,1,4,6] y) <float16[4] s = {15360, 15360, 16384, 16384}> {
        a = Cast<to = 10>(x) b = Resize<mode = "linear">(a, , s) y = Cast<to = 1>(b) }""",
    "an operator without float16": """17 (float[1,4,4] x, float[1,1,4] s) => (int64[n,3] y) {
        a = Cast<to = 10>(x) b = Cast<to = 10>(s) y = NonMaxSuppression(a, b) }""",
    "branches of two types": """17 (float[2,3] x, bool c) => (float[2,3] y) {
        a = Cast<to = 10>(x) b = If(c) <then_branch = t () => (float16[2,3] t) { t = Relu(a) },
            else_branch = e () => (float[2,3] e) { e = Relu(x) }> y = Cast<to = 1>(b) }""",
    "a loop whose state changes its type": """17 (float[2,3] x) => (float[2,3] y)
        <int64 n = {3}, bool t = {1}, float16[3] k = {15360, 16384, 16896}> {
        y = Loop(n, t, x) <body = b (int64 i, bool c, float[2,3] v) => (bool d, float[2,3] w) {
            d = Identity(c) h = Cast<to = 10>(v) w = Add(h, k) }> }""",
    "nodes out of order": f"17 (float[2,3] x) => (float[2,3] y) {HALF} {{ y = Cast<to = 1>(b) b = Mul(a, k) a = Identity(x) }}",
}  # fmt: skip


def mended(source: onnx.ModelProto) -> tuple[onnx.ModelProto, ChangeLog]:
    log = ChangeLog()
    return accepted(Model(source), log).proto, log


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("options", [{}, {"precision": "fp16"}, {"precision": "fp32"}], ids=str)
def test_a_broken_model_becomes_one_that_loads(name: str, options: dict[str, str]) -> None:
    source = model(BROKEN[name])
    assert not loads(source)
    proto, log = mended(source)
    onnx.checker.check_model(proto, full_check=True)
    assert loads(proto)
    assert [note.code for note in log.notes] == ["mended"] * len(log.notes) != []
    assert [port.type for port in proto.graph.output] == [port.type for port in source.graph.output]

    result = onnx_migrate.migrate(source, isolated=False, **options)
    assert loads(result.model)


def test_declared_types_that_are_wrong_are_removed() -> None:
    source = model(
        "17 (float[2,3] x) => (float[2,3] y) { a = Cast<to = 10>(x) b = Relu(a) y = Cast<to = 1>(b) }"
    )
    source.graph.value_info.append(helper.make_tensor_value_info("a", F32, [2, 3]))
    source.graph.value_info.append(helper.make_tensor_value_info("b", F16, [2, 3]))
    assert not loads(source)
    proto, log = mended(source)
    assert [value.name for value in proto.graph.value_info] == ["b"]
    assert (
        log.notes[0].message
        == "the declared types of 1 value are not those that nodes give out, or that are stored"
    )


def test_an_initializer_that_is_listed_as_an_input_has_its_own_type() -> None:
    source = model("17 (float[2,3] x, float[3] k) => (float[2,3] y) { a = Mul(x, k) y = Relu(a) }")
    source.graph.initializer.append(helper.make_tensor("k", F16, [3], [1, 2, 3]))
    assert not loads(source)
    assert loads(mended(source)[0])


def test_numbers_that_float16_does_not_hold_stay() -> None:
    proto, _ = mended(model(BROKEN["a float32 constant"]))
    given = {"x": np.full((2, 3), 1e-9, np.float32)}
    (found,) = ort.InferenceSession(proto.SerializeToString()).run(None, given)
    assert np.isfinite(found).all()


def test_a_clash_of_other_types_is_refused_as_before() -> None:
    source = model(
        f"17 (float[2,3] x, int64[3] i) => (float[2,3] y) {HALF} {{ a = Add(x, i) y = Mul(a, k) }}"
    )
    with pytest.raises(InvalidModel, match="Add-14 takes only of one type"):
        onnx_migrate.migrate(source, isolated=False)


def test_strictly_the_model_is_refused() -> None:
    with pytest.raises(InvalidModel):
        onnx_migrate.migrate(model(BROKEN["a Cast that was left behind"]), strict=True, isolated=False)
