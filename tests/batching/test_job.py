from __future__ import annotations

import pickle

from onnx_migrate.batching.job import FAILED, MIGRATED, REFUSED, UNCHANGED, Job, Outcome, Summary
from onnx_migrate.errors import LoadError, MigrateError
from onnx_migrate.report.failure import Failure


def outcome(kind: str, code: str = "", *, cached: bool = False) -> Outcome:
    return Outcome("in.onnx", "out.onnx", kind, code, cached=cached)


def test_totals_count_outcomes_reasons_and_cached() -> None:
    summary = Summary(models=4)
    for item in (
        outcome(MIGRATED, cached=True),
        outcome(UNCHANGED),
        outcome(REFUSED, "no-adapter"),
        outcome(FAILED, "crashed"),
    ):
        summary.add(item)
    summary.complete = True

    line = summary.as_dict()

    assert (summary.ended, summary.ok, line["cached"]) == (4, False, 1)
    assert line["outcomes"] == {"migrated": 1, "unchanged": 1, "refused": 1, "invalid": 0, "failed": 1}
    assert line["reasons"] == {"no-adapter": 1, "crashed": 1}


def test_all_is_well_only_when_every_model_was_tried() -> None:
    summary = Summary(models=1)
    summary.add(outcome(UNCHANGED))

    assert not summary.ok
    summary.complete = True
    assert summary.ok


def test_a_line_of_an_outcome_counts_above_its_report() -> None:
    failure = Failure.of("temporary", LoadError("no model"))
    line = Outcome("a", "b", MIGRATED, report=failure).as_dict()
    assert (line["kind"], line["model"], line["output"], line["outcome"], line["notes"]) == (
        "model", "a", "b", "migrated", [],
    )  # fmt: skip
    assert "error" not in Outcome("a", "b", MIGRATED, cached=True).as_dict()


def test_jobs_and_outcomes_cross_processes() -> None:
    class Own(MigrateError):
        """An error of a user's own pass, which cannot be pickled."""

    failed = Outcome("a", None, FAILED, report=Failure.of("a", Own("no")))
    for item in (Job("a", None, {"opset": 17}), outcome(FAILED, "crashed"), failed):
        assert pickle.loads(pickle.dumps(item)) == item


def test_totals_count_what_is_known_of_the_results() -> None:
    summary = Summary(models=1021)
    for index in range(1021):
        known = "unverified" if index < 48 else "verified"
        summary.add(Outcome("in.onnx", "out.onnx", MIGRATED, verification=known, doubt="why"))
    summary.add(outcome(REFUSED, "no-adapter"))

    assert summary.text == "1,021 migrated, 973 verified, 48 unverified"
    assert summary.as_dict()["verification"] == {"verified": 973, "unverified": 48, "not verified": 0}
