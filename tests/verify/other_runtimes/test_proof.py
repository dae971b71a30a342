"""Original and result in other runtimes, and how far off is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.errors import UsageError
from onnx_migrate.process import Limits
from onnx_migrate.verify import Feed, Feeds, Settings, Tolerance
from onnx_migrate.verify.inputs.given import GivenInputs
from onnx_migrate.verify.other_runtimes.proof import (
    Expected,
    expected_values,
    in_form_of,
    prove_in,
    prove_models,
    tolerance_of,
)
from tests.verify.harness import RELU, net, runnable

_SETTINGS = Settings(limits=Limits(20.0), isolated=False)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("", "", "right"),
        ("", "OFF=1e-7", "right"),
        ("REFUSE", "", "gained"),
        ("FAIL", "", "gained"),
        ("OFF=1", "", "mended"),
        ("OFF=1", "OFF=1", "alike"),
        ("OFF=1", "OFF=1.5", "otherwise"),
        ("", "OFF=1", "worse"),
        ("", "OFF=1e-4", "worse"),
        ("REFUSE", "OFF=1", "wrong"),
        ("", "REFUSE", "lost"),
        ("", "CRASH", "lost"),
        ("OFF=1", "FAIL", "lost"),
        ("REFUSE", "REFUSE", "refused"),
        ("", "AXIS", "worse"),
        ("", "LACK", "unknown"),
        ("LACK", "OFF=1", "unknown"),
    ],
)
def test_outcomes(faulty, saved, before, after, outcome):
    (proof,) = prove_in([faulty], saved(RELU, before), saved(RELU, after), _SETTINGS)
    assert proof.outcome == outcome, proof.text
    if outcome == "unknown":
        assert "out of memory" in proof.text
        assert "--memory-limit allows more memory" in proof.text
    assert proof.passed == (outcome in ("right", "gained", "mended", "alike"))
    assert (proof.asked, proof.runtime) == ("faulty", "Faulty 2.3.4")


def test_what_is_off_is_said_in_numbers(faulty, saved):
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "OFF=0.5"), _SETTINGS)
    worst = proof.result.worst
    assert worst is not None
    assert worst.largest_absolute == pytest.approx(0.5, rel=1e-5)
    assert "the result differs by up to " in proof.text
    assert proof.text.endswith("the original is bit-identical")


def test_the_words_of_the_runtime_are_kept(faulty, saved):
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "FAIL"), _SETTINGS)
    assert (proof.result.failed, proof.result.reason) == ("run", "it fails")
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "CRASH"), _SETTINGS)
    assert (proof.result.failed, proof.result.reason) == ("load", "the process crashed (SIGABRT)")


@pytest.mark.long
def test_a_model_that_hangs_ends(faulty, saved):
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "HANG"), replace(_SETTINGS, limits=Limits(3.0)))
    assert proof.outcome == "lost"
    assert "timed out after 3 s" in proof.result.reason


def test_integers_must_be_equal_and_may_be_narrower(faulty, saved):
    text = "(int64[4] x) => (int64[4] y) { y = Add(x, x) }"
    (proof,) = prove_in([faulty], saved(text), saved(text, "NARROW"), _SETTINGS)
    assert proof.outcome == "right"
    assert proof.notes == ("'y' is of int32 in place of int64",)
    (proof,) = prove_in([faulty], saved(text), saved(text, "OFF=1"), _SETTINGS)
    assert proof.outcome == "worse"


@pytest.mark.long
def test_the_users_inputs_are_run(faulty, saved, feed):
    text = "(float[2,4] x) => (float[2,4] y) { y = Relu(x) }"
    feeds = Feeds((Feed("mine", feed),))
    (proof,) = prove_in([faulty], saved(text), saved(text, "OFF=1"), replace(_SETTINGS, input_data=feeds))
    worst = proof.result.worst
    assert worst is not None
    assert worst.shape_before == (2, 4)
    with pytest.raises(UsageError):
        prove_in(
            [faulty],
            saved(text),
            saved(text),
            Settings(Feeds((Feed("mine", {"z": feed["x"]}),)), limits=Limits(20.0)),
        )


def test_the_users_tolerance_holds(faulty, saved):
    (proof,) = prove_in(
        [faulty], saved(RELU), saved(RELU, "OFF=0.5"), replace(_SETTINGS, tolerance=Tolerance(atol=0.6))
    )
    assert proof.outcome == "right"


def test_a_change_on_purpose_is_judged_by_what_was_intended(faulty, saved):
    doubled = "(float[N,4] x) => (float[N,4] y) { y = Add(x, x) }"
    same = "(float[N,4] x) => (float[N,4] y) { y = Identity(x) }"
    (proof,) = prove_in([faulty], saved(same), saved(doubled), _SETTINGS, intended=saved(doubled))
    assert proof.outcome == "mended"


def test_without_a_reference_nothing_is_proved(faulty, saved):
    text = "(float[2,4] x) => (float[3,5] y) { s = Constant<value = int64[2] {3, 5}>() y = Reshape(x, s) }"
    (proof,) = prove_in([faulty], saved(text), saved(text), _SETTINGS)
    assert proof.outcome == "unknown"
    assert not proof.passed
    assert "nothing to compare with" in proof.text


def test_every_runtime_has_a_line(faulty, saved):
    found = prove_in([faulty, faulty], saved(RELU), saved(RELU), _SETTINGS)
    assert [item.outcome for item in found] == ["right", "right"]
    assert np.all([item.seconds > 0 for item in found])


def loaded(graph, doc="", **tensors):
    model = net(graph, **tensors)
    model.doc_string = doc
    return files.load(model)


def test_models_in_memory_are_written_whole(faulty):
    text = "(float[N,300] x) => (float[N,300] y) { y = MatMul(x, w) }"
    w = np.random.default_rng(0).standard_normal((300, 300))
    before, after = loaded(text, w=w), loaded(text, w=w * 1.01)
    assert prove_models([faulty], before, before.copy(), _SETTINGS)[0].outcome == "right"
    assert prove_models([faulty], before, after, _SETTINGS)[0].outcome == "worse"


def test_weights_in_files_of_their_own(faulty, tmp_path):
    model = net("(float[N,4] x) => (float[N,4] y) { y = Add(x, w) }", w=[1.0, 2, 3, 4])
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    before = files.load(tmp_path / "m.onnx")
    assert prove_models([faulty], before, before, _SETTINGS)[0].outcome == "right"


def test_random_operators_are_fixed(faulty):
    text = "(float[N,4] x) => (float[N,4] y) { r = RandomNormalLike(x) y = Add(x, r) }"
    (proof,) = prove_models([faulty], loaded(text), loaded(text), _SETTINGS)
    assert proof.outcome == "right"
    assert proof.notes == ("run with fixed numbers in place of random ones",)


def test_a_file_of_the_users_inputs(faulty, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.full((5, 4), 0.25, np.float32))
    before, after = loaded(RELU), loaded(RELU, "OFF=1")
    feeds = GivenInputs(tmp_path / "in.npz").bind(before.proto)
    (proof,) = prove_models([faulty], before, after, replace(_SETTINGS, input_data=feeds))
    assert proof.result.comparisons[0].shape_before == (5, 4)


def test_numbers_that_were_changed_on_purpose(faulty):
    other = RELU.replace("Relu", "Neg")
    (proof,) = prove_models([faulty], loaded(RELU), loaded(other), _SETTINGS, intended=loaded(other))
    assert proof.outcome == "mended"


def test_outputs_on_every_feed():
    found = expected_values(runnable(RELU), runnable(RELU), Settings())
    assert isinstance(found, Expected)
    assert len(found.feeds) == 2
    for feed, values in zip(found.feeds, found.outputs, strict=True):
        assert list(values) == ["y"]
        assert np.array_equal(values["y"], np.maximum(feed["x"], 0))
    assert (found.tolerance.eps, found.tolerance.quantum) == (2.0**-23, False)


def test_the_users_inputs():
    feeds = Feeds((Feed("mine", {"x": np.ones((3, 4), np.float32)}),))
    found = expected_values(runnable(RELU), runnable(RELU), Settings(feeds))
    assert isinstance(found, Expected)
    assert found.outputs[0]["y"].shape == (3, 4)


def test_an_original_that_does_not_run_is_said_with_its_reason():
    broken = runnable("(float[2,4] x) => (float[3] y) { y = Reshape(x, s) }", s=[3])
    found = expected_values(broken, broken, Settings())
    assert isinstance(found, str)
    assert "nothing to compare with" in found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([1, 2], np.int32), np.array([1, 2])),
        (np.array([1.0, 0.0], np.float32), np.array([True, False])),
        (np.array([1, 0], np.uint8), np.array([True, False])),
        (np.array([1.5], np.float32), np.array([1.5])),
        (np.array([3.0], np.float32), np.array([3])),
    ],
)
def test_numbers_in_another_type_are_the_same_numbers(value, expected):
    found, notes = in_form_of({"y": value}, {"y": expected}, loses_axes=False)
    assert found["y"].dtype == expected.dtype
    assert found["y"].tolist() == expected.tolist()
    assert notes == [f"'y' is of {value.dtype} in place of {expected.dtype}"]


@pytest.mark.parametrize("value", [np.array([1.5], np.float32), np.array([np.nan], np.float32)])
def test_fractions_are_no_integers(value):
    found, notes = in_form_of({"y": value}, {"y": np.array([1])}, loses_axes=False)
    assert found["y"].dtype == np.float32
    assert notes == []


def test_axes_of_one_are_given_back_where_a_runtime_loses_them():
    value, expected = np.ones((1, 3), np.float32), np.ones(3, np.float32)
    assert in_form_of({"y": value}, {"y": expected}, loses_axes=False)[0]["y"].shape == (1, 3)
    found, notes = in_form_of({"y": value}, {"y": expected}, loses_axes=True)
    assert found["y"].shape == (3,)
    assert notes == ["'y' has the shape [1, 3] in place of [3]"]
    other = in_form_of({"y": np.ones((3, 2))}, {"y": np.ones((2, 3))}, loses_axes=True)[0]
    assert other["y"].shape == (3, 2)


def test_doubles_are_compared_as_floats_but_by_onnx_runtime():
    assert tolerance_of("tract", Tolerance(eps=2.0**-52)).eps == 2.0**-23
    assert tolerance_of("onnxruntime", Tolerance(eps=2.0**-52)).eps == 2.0**-52
    assert tolerance_of("tract", Tolerance(eps=2.0**-10, quantum=True)).quantum
