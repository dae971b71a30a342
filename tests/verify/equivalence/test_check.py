"""Verdicts: the same, different, or not known; and a sample of which faults are found."""

from __future__ import annotations

import json
import pickle

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.json_form import json_of
from onnx_migrate.model.model import Segment
from onnx_migrate.model.weights import Weights
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify import Feed, Feeds, Runnable, Settings
from onnx_migrate.verify.equivalence import feed_search
from onnx_migrate.verify.equivalence.check import check as check_task
from onnx_migrate.verify.equivalence.task import Task
from onnx_migrate.verify.evaluators.onnxruntime import OnnxRuntime
from tests.support.paths import FIXTURES
from tests.verify.harness import CONSTANT, RELU, ULP, check, mutated, net, runnable, verdict, wrong_optimiser


def test_the_same_model_is_verified_and_the_verdict_is_a_value():
    found = verdict(RELU, RELU, isolated=True)
    assert found.kind is Kind.VERIFIED
    assert [entry.identical for entry in found.comparisons] == [True]
    assert {note.name for note in found.feeds} >= {"normal", "wide"}
    assert found.evaluator.endswith(" CPU, optimisation off and on")
    assert pickle.loads(pickle.dumps(found)) == found
    assert json.loads(json.dumps(json_of(found)))["kind"] == "verified"


BAD = net("(float[N,4] x) => (float[N,4] y) { r = Reshape (x, s) y = Relu (r) }", s=[5])
PICKY = net("(float[2,4] x) => (float[2,4] y) { r = Reshape (x, s) y = Relu (r) }", s=[5])
for _broken in (BAD, PICKY):
    _broken.graph.node[0].name = "bad"
UNKNOWN = net(RELU.replace("Relu", "com.acme.Relu"))
UNKNOWN.opset_import.append(onnx.helper.make_opsetid("com.acme", 1))
BOTH = "(float[4] x) => (float[4] y, float[4] z) { y = Relu (x) z = Abs (x) }"
ONE = "(float[4] x) => (float[4] y) { y = Relu (x) }"


@pytest.mark.parametrize(
    ("before", "after", "kind", "reasons", "node"),
    [
        (RELU, RELU.replace("Relu", "Abs"), "differs", ["output 'y'", "elements differ by more than the limit"], ""),
        (RELU, BAD, "differs", ["the result does not run"], "bad"),
        (BOTH, ONE, "differs", ["the result has no output 'z'"], ""),
        (UNKNOWN, UNKNOWN, "unverified", ["the original does not load"], None),
        (PICKY, PICKY, "unverified", ["the original does not run", "Input shape:{2,4}"], "bad"),
    ],
    ids=["another function", "a result that does not run", "a lost output", "an original that does not load",
         "an original that does not run on random inputs"],
)  # fmt: skip
def test_what_differs_or_cannot_be_compared_is_said_with_the_node(before, after, kind, reasons, node):
    found = check(before, after, Kind(kind), reasons)
    assert node in (found.node, None)
    assert "--input-data" not in found.reason, "no inputs help"


def test_the_newest_opset_is_verified_in_one_runtime_or_the_other():
    new = net(RELU, opset=onnx.defs.onnx_opset_version())
    found = check(new, new, Kind.VERIFIED)
    assert found.evaluator.startswith(("onnxruntime ", "onnx.reference "))


def test_random_operators_are_no_false_alarm():
    noisy = "(float[4] x) => (float[4] y) { r = RandomNormalLike (x) y = Add (x, r) }"
    found = check(noisy, noisy, Kind.VERIFIED)
    assert "RandomNormalLike" in found.notes[-1]


def test_for_a_constant_output_the_values_it_is_computed_from_are_compared():
    found = check(CONSTANT, CONSTANT, Kind.VERIFIED)
    assert {entry.output for entry in found.comparisons} == {"y", "a (inner)"}
    assert "'a'" in found.notes[0]
    check(
        CONSTANT,
        mutated(CONSTANT, operators={"Relu": "Abs"}),
        Kind.DIFFERS,
        ["output 'y' is the same", "'a' differs"],
    )


def add(bias):
    return net("(float[N,4] x) => (float[N,4] y) { y = Add (x, b) }", b=bias)


ROUNDED = 1.0 + ULP


@pytest.mark.parametrize("same", [True, False])
def test_bit_identity_is_required_where_it_is_claimed(same):
    before, result = add(1.0), add(ROUNDED)
    check(before, result, Kind.VERIFIED)
    reasons = ["bit-identity is required, but without optimisation 'y' differs in", "1.19e-07"]
    assert check(before, result if same else before, Kind.DIFFERS, reasons, exact=result).exact is False
    assert check(before, before if same else result, Kind.VERIFIED, exact=before).exact is True


def test_bit_identity_is_unknown_without_a_claim_and_false_where_the_exact_model_does_not_run():
    assert verdict(add(1.0), add(1.0)).exact is None
    broken = net("(float[N,4] x) => (float[N,4] y) { y = Reshape (x, s) }", s=[5])
    found = check(add(1.0), add(1.0), Kind.DIFFERS, "before the changes that may round", exact=broken)
    assert found.exact is False


@wrong_optimiser
def test_an_optimiser_that_is_wrong_about_the_original_is_no_alarm():
    original = Runnable(FIXTURES / "pad_maxpool_opset9.onnx")
    right = onnx.load(FIXTURES / "pad_maxpool_opset11.onnx")
    found = check(original, right, Kind.VERIFIED)
    assert "ONNX Runtime's optimisation changes 'y' of the original itself" in found.notes[0]
    right.graph.node[0].op_type = "Identity"
    bias = next(tensor.name for tensor in right.graph.initializer if tensor.name.endswith("bias"))
    check(original, mutated(right, tensors={bias: lambda values: values + 1e-4}), Kind.DIFFERS)


def test_a_difference_from_zeros_is_relative_to_the_result():
    text = "(float[N,4] x) => (float[N,4] y, float[N,4] z) { d = Sub (x, x) y = Abs (d) z = Relu (x) }"
    entry = verdict(text, text.replace("Abs (d)", "Cos (d)")).comparisons[0]
    assert (entry.largest_absolute, entry.largest_relative) == (1.0, 1.0)


def test_external_data_may_be_inside_the_onnx_file_itself(tmp_path):
    weights = np.arange(4, dtype=np.float32)
    model = net("(float[N,4] x) => (float[N,4] y) { y = Add (x, w) }", w=weights)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    offset = path.read_bytes().index(weights.tobytes())
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", path.name), ("offset", str(offset)), ("length", "16")):
        tensor.external_data.add(key=key, value=value)
    check(
        Runnable(path),
        Runnable(structure=model.SerializeToString(), weights=Weights(tmp_path)),
        Kind.VERIFIED,
    )


def test_the_users_inputs_and_recorded_outputs_are_compared():
    x = np.array([[-1, 0, 1, 2]], np.float32)
    found = check(
        RELU, RELU, Kind.VERIFIED, input_data=Feeds((Feed("mine", {"x": x}, {"y": np.maximum(x, 0)}),))
    )
    assert {entry.output for entry in found.comparisons} == {"y", "y (recorded)"}
    assert found.feeds[0].seed is None
    other = verdict(RELU, RELU, input_data=Feeds((Feed("mine", {"x": x}, {"y": x}),)))
    assert "mine: the recorded output 'y' is not compared" in other.notes[0]
    with pytest.raises(UsageError, match="'x'"):
        verdict(RELU, RELU, input_data=Feeds((Feed("mine", {"q": x}),)))


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
    return net(text, **tensors)


def test_a_folded_batch_normalization_is_no_false_alarm():
    assert not check(conv_bn(fused=False), conv_bn(fused=True), Kind.VERIFIED).comparisons[0].identical


def one_weight(values):
    values[0, 0, 0, 0] += 0.1 * values.std()
    return values


def thousandth(values):
    return values * 1.001


@pytest.mark.parametrize(
    "change",
    [
        {"tensors": {"w": one_weight}},
        {"tensors": {"b": thousandth, "bias": thousandth}},
        {"operators": {"Relu": "Identity"}},
        {"operators": {"Relu": "Abs"}},
    ],
    ids=["one weight", "bias", "no Relu", "Abs"],
)
@pytest.mark.parametrize("fused", [False, True])
def test_a_fault_is_found_although_a_fold_rounds_differently(change, fused):
    check(conv_bn(fused=False), mutated(conv_bn(fused), **change), Kind.DIFFERS)


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
def test_a_changed_attribute_or_table_row_is_found(text, old, new):
    check(text, text, Kind.VERIFIED)
    check(text, text.replace(old, new), Kind.DIFFERS)


@pytest.fixture
def runs(monkeypatch):
    """How many times a model was run in ONNX Runtime, where every run counts as one that takes long."""
    monkeypatch.setattr(feed_search, "EXPENSIVE", -1.0)
    counted, run = [], OnnxRuntime.run
    monkeypatch.setattr(OnnxRuntime, "run", lambda *args: (counted.append(args[0]), run(*args))[1])
    return counted


FOLDED = "(float[2,3] x) => (float[2,3] y) { a = Mul(x, w) b = Add(a, v) y = Relu(b) }"
MODEL = net(FOLDED, w=[1.0, 2, 3], v=0.5)
OTHER_NAMES = net(FOLDED.replace("a =", "c =").replace("(a,", "(c,"), w=[1.0, 2, 3], v=0.5)


def test_six_runs_prove_a_result_of_which_each_run_takes_long(runs):
    found = check(MODEL, MODEL, Kind.VERIFIED, exact=MODEL)
    assert (found.exact, found.grade, len(runs)) == (True, "bit-identical", 6), (
        "the corner feed without optimisation alone"
    )
    assert "fewer runs were made" in found.notes[0]
    assert check(MODEL, OTHER_NAMES, Kind.VERIFIED, exact=MODEL).exact is True
    assert len(runs) == 6 + 8, "the simplified model is run with optimisation only, on the corner feed too"


def test_a_second_input_finds_what_the_first_one_does_not_show(runs):
    """A simplified model is run with optimisation, where a run costs least, on two inputs."""
    text = "(float[2,99] x) => (float[2,99] y) { a = Clip(x, low, high) b = Mul(a, w) y = Add(b, w) }"
    before = net(text, low=-6.0, high=6.0, w=0.5)
    found = check(
        before,
        net(text.replace("a =", "c =").replace("(a,", "(c,"), low=-6.0, high=6.0, w=0.5),
        Kind.VERIFIED,
        exact=before,
    )
    assert [feed.name for feed in found.feeds] == ["normal", "corners"]
    assert len(runs) == 8
    check(before, net(text, low=-6.0, high=7.0, w=0.5), Kind.DIFFERS, "'y'", exact=before)


def test_a_second_input_reads_more_rows_of_a_table_whatever_is_claimed(runs):
    text = "(int64[2,6] ids) => (float[2,6,1] y) { y = Gather (w, ids) }"
    rows = np.arange(20.0)[:, None]
    before = net(text, w=rows)
    check(before, before, Kind.VERIFIED, exact=before)
    assert len(runs) == 8
    for row in range(20):
        other = rows.copy()
        other[row] = -1
        check(before, net(text, w=other), Kind.DIFFERS, exact=net(text, w=other))


@pytest.mark.usefixtures("without_corners")
def test_what_outputs_hide_is_found_by_few_runs_without_a_claim(runs):
    dead = "(float[2,3] x) => (float[2,3] y) { a = Mul(x, w) b = Sub(a, v) c = Relu(b) y = Add(c, x) }"
    before = net(dead, w=[1.0, 2, 3], v=100.0)
    check(before, before, Kind.VERIFIED, unsimplified=before, by_value=True)
    wrong = net(dead, w=[1.0, 2, 4], v=100.0)
    check(before, wrong, Kind.DIFFERS, "computes another 'a'", unsimplified=wrong, by_value=True)


def test_a_second_input_is_not_run_where_that_costs_much(runs, monkeypatch):
    monkeypatch.setattr("onnx_migrate.verify.equivalence.original_run._LONG", 0.0)
    monkeypatch.setattr("onnx_migrate.verify.equivalence.original_run.EXPENSIVE", 0.0)
    monkeypatch.setattr("onnx_migrate.verify.equivalence.original_run._AFFORDABLE_LONG", 0.0)
    assert [feed.name for feed in check(MODEL, OTHER_NAMES, Kind.VERIFIED, exact=MODEL).feeds] == [
        "normal",
        "corners",
    ]
    assert len(runs) == 8


def test_as_few_runs_prove_it_where_the_outputs_do_not_vary_too(runs):
    """What the output is computed from is recorded with it, and of the simplified model compared where it is optimised."""
    before = net(CONSTANT)
    renamed = CONSTANT.replace("a = ", "b = ").replace("(a, a)", "(b, b)")
    found = check(before, renamed, Kind.VERIFIED, exact=before)
    assert {entry.output for entry in found.comparisons} == {"y", "a (inner)"}
    assert (found.exact, len(runs)) == (True, 8), "four of them on the corner feed"
    wrong = mutated(renamed, operators={"Relu": "Abs"})
    check(before, wrong, Kind.UNVERIFIED, "the result from 'b'", exact=before)
    check(before, mutated(CONSTANT, operators={"Relu": "Abs"}), Kind.DIFFERS, "'a' differs", exact=before)


def test_a_fault_is_found_by_few_runs(runs):
    hidden = net(FOLDED, w=[1.0, 2, 3], v=0.5 + ULP)
    assert check(MODEL, hidden, Kind.DIFFERS, "bit-identity is required", exact=hidden).exact is False
    check(MODEL, net(FOLDED, w=[1.0, 2, 4], v=0.5), Kind.DIFFERS, "'y'", exact=MODEL)


@pytest.mark.usefixtures("without_corners")
def test_where_few_runs_find_a_difference_that_rounding_may_explain_all_are_made(runs):
    """The sine of a large number moves by more than 8 units where its argument moves by one, which noise alone shows."""
    text = "(float[64] x) => (float[64] y) { a = Mul(x, big) y = Sin(a) }"
    found = check(net(text, big=1e3), net(text, big=1e3 * (1 + ULP)), Kind.VERIFIED)
    assert [feed.name for feed in found.feeds] == ["normal", "wide"]
    assert not any("fewer runs" in note for note in found.notes)
    assert len(runs) == 6 + 10


def test_it_runs_in_whatever_process_it_is_called():
    task = Task(Segment(runnable(RELU), runnable(RELU)), Settings())
    assert check_task(task).kind is Kind.VERIFIED
    assert check_task(task).seconds == 0, "the parent measures"


def test_a_result_is_loaded_though_the_original_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_migrate.verify.equivalence.check.why_not_run", lambda *_: "it never ends")
    text = "(float[2] x) => (float[2] y) { y = %s (x) }"
    before, after = (Runnable(structure=net(text % name).SerializeToString()) for name in ("Relu", "Nothing"))

    found = verdict(before, after)

    assert found.load is not None
    assert found.kind is Kind.DIFFERS
    assert verdict(before, before).kind is Kind.UNVERIFIED
