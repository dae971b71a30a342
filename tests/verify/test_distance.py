"""How far a model that computes something else on purpose is from the original, on the inputs of the verification."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate import isolate
from onnx_migrate.verdicts import Distance, Verdict
from onnx_migrate.verify import Feed, Feeds, Kind
from onnx_migrate.verify.distance import DISTANCE_STAGE
from onnx_migrate.verify.equivalence.verifier import verify
from onnx_migrate.verify.evaluators import Runnable
from tests.verify.harness import runnable

DOUBLE = runnable("(float[3] x) => (float[3] y, float[3] z) { y = Add (x, x) z = Relu (x) }")
OTHER = runnable("(float[3] x) => (float[3] y, float[3] z) { w = Add (x, x) y = Add (w, x) z = Relu (x) }")
LONGER = runnable(
    "(float[3] x) => (float[a] y, float[3] z) { w = Add (x, x) y = Concat <axis = 0> (w, x) z = Relu (x) }"
)
MINE = Feeds((Feed("mine", {"x": np.array([1, -4, 2], np.float32)}),))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (OTHER, Distance("y", 4.0, 12.0)),
        (DOUBLE, Distance("y", 0.0, 8.0)),
        (LONGER, Distance("y", float("inf"), 0.0, reshaped=True)),
        (runnable("(float[3] x) => (float[3] y, float[3] z) { y = Missing (x) z = Relu (x) }"), None),
        (None, None),
    ],
    ids=["other", "same", "reshaped", "does not load", "none"],
)
def test_the_output_that_differs_most_for_its_size(other: Runnable | None, expected: Distance | None) -> None:
    found = verify(DOUBLE, DOUBLE, other=other, feeds=MINE, isolated=False)

    assert found.kind is Kind.VERIFIED
    if expected is None or not expected.largest:
        assert (found.distance and found.distance.largest) == (expected and expected.largest)
    else:
        assert found.distance == expected


def test_random_inputs_are_those_of_the_verification() -> None:
    found = verify(DOUBLE, DOUBLE, other=OTHER, isolated=False).distance

    assert found is not None
    assert found.largest == pytest.approx(found.scale / 3)


@pytest.mark.parametrize(
    ("distance", "text"),
    [
        (Distance("y", 2.25, 3.789), "output 'y' differs by up to 2.25 of 3.79 on the verifier's inputs"),
        (Distance("y", 0.0, 3.8), "the outputs are the same on the verifier's inputs"),
        (
            Distance("y", 1.0, 0.0, reshaped=True),
            "output 'y' has another shape on the verifier's inputs",
        ),
    ],
)
def test_as_text(distance: Distance, text: str) -> None:
    assert str(distance) == text


def test_a_crash_while_measuring_says_nothing_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    endings = [isolate.Crashed("SIGSEGV", stage=DISTANCE_STAGE), isolate.Returned(Verdict(Kind.VERIFIED))]
    given = []

    def run(_: str, task: object, **__: object) -> isolate.Ending:
        given.append(task.other)  # type: ignore[attr-defined]
        return endings.pop(0)

    monkeypatch.setattr(isolate, "run", run)

    assert verify(DOUBLE, DOUBLE, other=OTHER).kind is Kind.VERIFIED
    assert given == [OTHER, None]
