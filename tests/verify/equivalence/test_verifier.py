"""Verdicts: the same, other, or honestly not known; and a sample of the verifier's strength."""

from __future__ import annotations

import json
import pickle
import sys

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate import isolate
from onnx_migrate.errors import UsageError
from onnx_migrate.verify import Feed, Feeds, Kind, Runnable, verify
from tests.support.paths import FIXTURES


def net(text, opset=17):
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')


def runnable(model):
    return Runnable(structure=model.SerializeToString())


def judge(before, after, **options):
    return verify(runnable(before), runnable(after), isolated=False, **options)


RELU = "(float[N,4] x) => (float[N,4] y) { y = Relu (x) }"


def test_the_same_model_is_verified_and_the_verdict_is_a_value():
    verdict = verify(runnable(net(RELU)), runnable(net(RELU)))
    assert verdict.kind is Kind.VERIFIED
    assert [entry.identical for entry in verdict.comparisons] == [True]
    assert {note.name for note in verdict.feeds} >= {"normal", "wide"}
    assert "off and on" in verdict.evaluator
    assert pickle.loads(pickle.dumps(verdict)) == verdict
    assert json.loads(json.dumps(verdict.as_dict()))["kind"] == "verified"


def test_another_function_differs():
    verdict = judge(net(RELU), net(RELU.replace("Relu", "Abs")))
    assert verdict.kind is Kind.DIFFERS
    assert "'y'" in verdict.reason


def test_a_result_that_does_not_load_differs_and_names_the_node():
    broken = "(float[N,4] x) => (float[N,4] y) <int64[1] s = {5}> { [bad] r = Reshape (x, s) y = Relu (r) }"
    verdict = judge(net(RELU), net(broken))
    assert verdict.kind is Kind.DIFFERS
    assert verdict.node == "bad"


def test_a_lost_output_differs():
    both = net("(float[4] x) => (float[4] y, float[4] z) { y = Relu (x) z = Abs (x) }")
    verdict = judge(both, net("(float[4] x) => (float[4] y) { y = Relu (x) }"))
    assert (verdict.kind, verdict.reason) == (Kind.DIFFERS, "the result has no output 'z'")


def test_an_original_that_does_not_run_is_unverified():
    lost = net("(float[4] x) => (float[4] y) { y = Relu (x) }")
    lost.graph.node[0].domain = "com.acme"
    lost.opset_import.append(helper.make_opsetid("com.acme", 1))
    verdict = judge(lost, lost)
    assert verdict.kind is Kind.UNVERIFIED
    assert "the original does not load" in verdict.reason


def test_reference_serves_what_onnx_runtime_does_not_load():
    new = net("(float[4] x) => (float[4] y) { y = Relu (x) }", opset=onnx.defs.onnx_opset_version())
    verdict = judge(new, new)
    assert verdict.kind is Kind.VERIFIED
    if "onnxruntime" not in verdict.evaluator:
        assert "onnx.reference" in verdict.evaluator


def test_random_operators_are_unverified_and_no_false_alarm():
    noisy = net("(float[4] x) => (float[4] y) { r = RandomNormalLike (x) y = Add (x, r) }")
    verdict = judge(noisy, noisy)
    assert (verdict.kind, "RandomNormalLike" in verdict.reason) == (Kind.UNVERIFIED, True)


CONSTANT = "(float[1,4] x) => (float[1,4] y) { a = Relu (x) z = Sub (a, a) y = Softmax (z) }"


def test_behind_a_constant_output_the_values_before_it_are_compared():
    verdict = judge(net(CONSTANT), net(CONSTANT))
    assert verdict.kind is Kind.VERIFIED
    assert {entry.output for entry in verdict.comparisons} == {"y", "a (inner)"}
    assert "'a'" in verdict.notes[0]
    verdict = judge(net(CONSTANT), net(CONSTANT.replace("Relu", "Abs")))
    assert verdict.kind is Kind.DIFFERS
    assert "before them differs: 'a (inner)'" in verdict.reason


def add(bias):
    return net(f"(float[N,4] x) => (float[N,4] y) <float b = {{{bias!r}}}> {{ y = Add (x, b) }}")


ROUNDED = 1.0 + 2.0**-23
"""One unit in the last place more than 1."""


@pytest.mark.parametrize("same", [True, False])
def test_bit_identity_is_held_where_it_is_claimed(same):
    before, result = add(1.0), add(ROUNDED)
    assert judge(before, result).kind is Kind.VERIFIED, "rounding explains it"
    verdict = judge(before, result if same else before, exact=runnable(result))
    assert (verdict.kind, verdict.exact) == (Kind.DIFFERS, False)
    assert "bit-identity was claimed, but 'y'" in verdict.reason
    assert "1.19e-07" in verdict.reason
    verdict = judge(before, before if same else result, exact=runnable(before))
    assert (verdict.kind, verdict.exact) == (Kind.VERIFIED, True)


def test_a_claim_is_none_without_an_exact_model_and_false_where_it_does_not_run():
    assert judge(add(1.0), add(1.0)).exact is None
    broken = net("(float[N,4] x) => (float[N,4] y) <int64[1] s = {5}> { y = Reshape (x, s) }")
    verdict = judge(add(1.0), add(1.0), exact=runnable(broken))
    assert (verdict.kind, verdict.exact) == (Kind.DIFFERS, False)


def test_an_optimiser_that_is_wrong_about_the_original_is_no_alarm():
    fixture = FIXTURES / "pad_maxpool_opset9.onnx"
    right = onnx.load(FIXTURES / "pad_maxpool_opset11.onnx")
    verdict = verify(Runnable(fixture), runnable(right), isolated=False)
    assert verdict.kind is Kind.VERIFIED, verdict.reason
    assert "optimised, the original itself gives another 'y'" in verdict.notes[0]
    right.graph.node[0].op_type = "Identity"
    tensor = next(t for t in right.graph.initializer if t.name.endswith("bias"))
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) + np.float32(1e-4), tensor.name))
    assert verify(Runnable(fixture), runnable(right), isolated=False).kind is Kind.DIFFERS


def test_a_difference_to_zeros_has_a_size():
    text = "(float[N,4] x) => (float[N,4] y, float[N,4] z) { d = Sub (x, x) y = Abs (d) z = Relu (x) }"
    entry = judge(net(text), net(text.replace("Abs (d)", "Cos (d)"))).comparisons[0]
    assert (entry.largest_absolute, entry.largest_relative) == (1.0, 1.0)


def test_weights_may_lie_in_the_onnx_file_itself(tmp_path):
    weights = np.arange(4, dtype=np.float32)
    model = net("(float[N,4] x) => (float[N,4] y) { y = Add (x, w) }")
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    offset = path.read_bytes().index(weights.tobytes())
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", path.name), ("offset", str(offset)), ("length", "16")):
        tensor.external_data.add(key=key, value=value)
    verdict = verify(
        Runnable(path), Runnable(structure=model.SerializeToString(), folder=tmp_path), isolated=False
    )
    assert verdict.kind is Kind.VERIFIED, verdict.reason


def test_the_users_inputs_and_recorded_outputs_count():
    x = np.array([[-1, 0, 1, 2]], np.float32)
    same = Feeds((Feed("mine", {"x": x}, {"y": np.maximum(x, 0)}),))
    verdict = judge(net(RELU), net(RELU), feeds=same)
    assert verdict.kind is Kind.VERIFIED
    assert {entry.output for entry in verdict.comparisons} == {"y", "y (recorded)"}
    other = Feeds((Feed("mine", {"x": x}, {"y": x}),))
    assert "the original itself" in judge(net(RELU), net(RELU), feeds=other).notes[0]
    with pytest.raises(UsageError, match="'x'"):
        judge(net(RELU), net(RELU), feeds=Feeds((Feed("mine", {"q": x}),)))


def test_misuse_comes_through_the_child():
    with pytest.raises(UsageError, match="'x'"):
        verify(runnable(net(RELU)), runnable(net(RELU)), feeds=Feeds((Feed("mine", {}),)))


@pytest.mark.parametrize(
    ("stage", "kind"), [("result: running, optimisation off", "differs"), ("original: running", "unverified")]
)
def test_a_crash_is_blamed_on_the_model_that_ran(monkeypatch, stage, kind):
    monkeypatch.setattr(isolate, "run", lambda *_, **__: isolate.Crashed("SIGSEGV", stage=stage))
    verdict = verify(runnable(net(RELU)), runnable(net(RELU)))
    assert (verdict.kind, verdict.reason) == (kind, f"{stage}: the process crashed (SIGSEGV)")


def test_running_out_of_time_is_unverified():
    verdict = verify(runnable(net(RELU)), runnable(net(RELU)), limits=isolate.Limits(seconds=0.01))
    assert verdict.kind is Kind.UNVERIFIED
    assert "not done after" in verdict.reason


def conv_bn(fused):
    """Conv and BatchNormalization, or the one Conv that they fold into: other rounding, same function."""
    rng = np.random.default_rng(1)
    w = (rng.standard_normal((8, 3, 3, 3)) * 0.3).astype(np.float32)
    gain, bias, mean = (rng.standard_normal(8).astype(np.float32) for _ in range(3))
    var = rng.uniform(0.5, 2, 8).astype(np.float32)
    factor = gain / np.sqrt(var + np.float32(1e-5))
    text = "(float[N,3,H,W] x) => (float[N,8,A,B] y) { c = Conv (x, w"
    if fused:
        text += ", b) y = Relu (c) }"
        tensors = {"w": w * factor[:, None, None, None], "b": bias - mean * factor}
    else:
        text += ") n = BatchNormalization (c, gain, bias, mean, var) y = Relu (n) }"
        tensors = {"w": w, "gain": gain, "bias": bias, "mean": mean, "var": var}
    model = net(text)
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in tensors.items())
    return model


def test_a_folded_batch_normalization_is_no_false_alarm():
    verdict = judge(conv_bn(fused=False), conv_bn(fused=True))
    assert verdict.kind is Kind.VERIFIED, verdict.reason
    assert not verdict.comparisons[0].identical


def one_weight(model):
    tensor = next(t for t in model.graph.initializer if t.name == "w")
    values = numpy_helper.to_array(tensor).copy()
    values[0, 0, 0, 0] += 0.1 * values.std()
    tensor.CopyFrom(numpy_helper.from_array(values, "w"))


def operator(old, new):
    def change(model):
        for node in model.graph.node:
            if node.op_type == old:
                node.op_type = new

    return change


def bias_tenth(model):
    tensor = next(t for t in model.graph.initializer if t.name in ("b", "bias"))
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.001), tensor.name))


@pytest.mark.parametrize(
    "change", [one_weight, operator("Relu", "Identity"), operator("Relu", "Abs"), bias_tenth]
)
@pytest.mark.parametrize("fused", [False, True])
def test_a_mutant_is_caught_behind_the_rounding_of_a_fold(change, fused):
    mutant = conv_bn(fused)
    change(mutant)
    assert judge(conv_bn(fused=False), mutant).kind is Kind.DIFFERS


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("(float[1,2,5,6] x) => (float[1,2,A,B] y) <float[4] s = {1.0, 1.0, 2.0, 1.5}>"
         '{ y = Resize<mode="linear", coordinate_transformation_mode="asymmetric"> (x, , s) }', "asymmetric", "half_pixel"),
        ("(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1> (x) }", "axis=1", "axis=2"),
        ("(float[2,9] x) => (float[2,9] y) { y = LeakyRelu<alpha=0.1> (x) }", "alpha=0.1", "alpha=0.1001"),
        ("(float[2,9] x) => (float[2,9] y) <float lo = {0.0}, float hi = {6.0}> { y = Clip (x, lo, hi) }", "6.0", "6.5"),
        ("(int64[N,7] i) => (float[N,7,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = Gather (w, i) }", "5,6", "5,7"),
    ],
)  # fmt: skip
def test_a_moved_attribute_or_table_row_is_caught(text, old, new):
    assert judge(net(text), net(text)).kind is Kind.VERIFIED
    assert judge(net(text), net(text.replace(old, new))).kind is Kind.DIFFERS


@pytest.mark.skipif(sys.platform != "linux", reason="the crash is of x86 Linux")
def test_a_crash_on_a_length_is_no_end():
    """ONNX Runtime divides integers by zero, and so dies, where the length is 7: the first that is tried."""
    divides = net("""(float[N,T] x) => (float[N,T] y, int64[1] z)
      <int64[1] one = {1}, int64[1] two = {2}, int64[1] seven = {7}, int64[1] many = {100}> {
      s = Shape (x) t = Slice (s, one, two) d = Sub (t, seven) z = Div (many, d) y = Relu (x) }""")
    verdict = verify(runnable(divides), runnable(divides))
    assert verdict.kind is Kind.VERIFIED
    assert 7 not in dict(verdict.feeds[0].shapes)["x"][1:]
