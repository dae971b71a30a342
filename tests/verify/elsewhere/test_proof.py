"""What comes of a result in another runtime: each outcome, with a runtime whose faults are known."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.isolate import Limits
from onnx_migrate.verify import Feed, Feeds
from onnx_migrate.verify.elsewhere.proof import prove_in
from tests.verify.harness import RELU

_LIMITS = Limits(20.0)


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
    (proof,) = prove_in([faulty], saved(RELU, before), saved(RELU, after), limits=_LIMITS, isolated=False)
    assert proof.outcome == outcome, proof.text
    if outcome == "unknown":
        assert "out of memory" in proof.text
        assert "--memory-limit allows more memory" in proof.text
    assert proof.passed == (outcome in ("right", "gained", "mended", "alike"))
    assert (proof.asked, proof.runtime) == ("faulty", "Faulty 2.3.4")


def test_what_is_off_is_said_in_numbers(faulty, saved):
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "OFF=0.5"), limits=_LIMITS, isolated=False)
    worst = proof.result.worst
    assert worst is not None
    assert worst.largest_absolute == pytest.approx(0.5, rel=1e-5)
    assert "the result is off by 0.5 of " in proof.text
    assert proof.text.endswith("the original is bit for bit the same")


def test_the_words_of_the_runtime_are_kept(faulty, saved):
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "FAIL"), limits=_LIMITS, isolated=False)
    assert (proof.result.failed, proof.result.reason) == ("run", "it fails")
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "CRASH"), limits=_LIMITS, isolated=False)
    assert (proof.result.failed, proof.result.reason) == ("load", "the process crashed (SIGABRT)")


def test_a_model_that_hangs_ends(faulty, saved):
    (proof,) = prove_in([faulty], saved(RELU), saved(RELU, "HANG"), limits=Limits(3.0), isolated=False)
    assert proof.outcome == "lost"
    assert "not done after 3 s" in proof.result.reason


def test_integers_must_be_equal_and_may_be_narrower(faulty, saved):
    text = "(int64[4] x) => (int64[4] y) { y = Add(x, x) }"
    (proof,) = prove_in([faulty], saved(text), saved(text, "NARROW"), limits=_LIMITS, isolated=False)
    assert proof.outcome == "right"
    assert proof.notes == ("'y' is of int32 in place of int64",)
    (proof,) = prove_in([faulty], saved(text), saved(text, "OFF=1"), limits=_LIMITS, isolated=False)
    assert proof.outcome == "worse"


def test_the_users_inputs_are_run(faulty, saved, feed):
    text = "(float[2,4] x) => (float[2,4] y) { y = Relu(x) }"
    feeds = Feeds((Feed("mine", feed),))
    (proof,) = prove_in(
        [faulty], saved(text), saved(text, "OFF=1"), feeds=feeds, limits=_LIMITS, isolated=False
    )
    worst = proof.result.worst
    assert worst is not None
    assert worst.shape_before == (2, 4)
    with pytest.raises(UsageError):
        prove_in(
            [faulty],
            saved(text),
            saved(text),
            feeds=Feeds((Feed("mine", {"z": feed["x"]}),)),
            limits=_LIMITS,
        )


def test_the_users_tolerance_holds(faulty, saved):
    (proof,) = prove_in(
        [faulty], saved(RELU), saved(RELU, "OFF=0.5"), atol=0.6, limits=_LIMITS, isolated=False
    )
    assert proof.outcome == "right"


def test_a_change_on_purpose_is_judged_by_what_was_intended(faulty, saved):
    doubled = "(float[N,4] x) => (float[N,4] y) { y = Add(x, x) }"
    same = "(float[N,4] x) => (float[N,4] y) { y = Identity(x) }"
    (proof,) = prove_in(
        [faulty], saved(same), saved(doubled), intended=saved(doubled), limits=_LIMITS, isolated=False
    )
    assert proof.outcome == "mended"


def test_without_a_reference_nothing_is_proved(faulty, saved):
    text = "(float[2,4] x) => (float[3,5] y) { s = Constant<value = int64[2] {3, 5}>() y = Reshape(x, s) }"
    (proof,) = prove_in([faulty], saved(text), saved(text), limits=_LIMITS, isolated=False)
    assert proof.outcome == "unknown"
    assert not proof.passed
    assert "nothing to compare with" in proof.text


def test_every_runtime_has_a_line(faulty, saved):
    found = prove_in([faulty, faulty], saved(RELU), saved(RELU), limits=_LIMITS, isolated=False)
    assert [item.outcome for item in found] == ["right", "right"]
    assert np.all([item.seconds > 0 for item in found])
