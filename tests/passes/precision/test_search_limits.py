"""The report says if the search for nodes that stay ended early, and on which inputs errors were measured."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_migrate.passes.precision import islands

import onnx_migrate
from onnx_migrate.report import Report
from onnx_migrate.verify.precision import groups
from tests.harness import model

SUMS = f"""17 (float[2,64] x) => (float[2,64] y) <float[64,64] w = {{{", ".join(["0.05", "-0.04"] * 2048)}}},
    float one = {{1.0}}, float near = {{0.98828125}}, float k = {{1.5}}> {{
    h = MatMul (x, w)  a = Mul (h, one)  b = Mul (h, near)  p = Mul (a, k)  q = Mul (b, k)  y = Sub (p, q) }}"""
"""y is 1.8 % of p and q, so that not all nodes can compute in float16."""


def report(**options: object) -> Report:
    return onnx_migrate.migrate(
        model(SUMS), precision="fp16", simplify=False, isolated=False, **options
    ).report  # type: ignore[arg-type]


def messages(found: Report, code: str) -> list[str]:
    return [note.message for note in found.notes if note.code == code]


def test_a_search_that_ends_by_itself_has_no_note() -> None:
    assert not messages(report(), "precision-search")


def test_the_clock_that_ends_a_search_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "_CLOCK", -1.0)
    found = report()

    (message,) = messages(found, "precision-search")
    assert "its time was up" in message
    assert "--input-data" in message
    assert found.verified


def test_a_child_that_does_not_end_well_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(islands, "NARROWED", "onnx_migrate.verify.precision.groups:missing")
    found = report()

    (message,) = messages(found, "precision-search")
    assert message.startswith("more nodes may stay in float32 than must")
    assert "the child process that measures groups of nodes ended" in message
    assert found.verified


def test_the_error_names_the_inputs_on_which_it_was_measured() -> None:
    (generated,) = messages(report(), "precision-error")
    (own,) = messages(report(input_data={"x": np.ones((2, 64), np.float32)}), "precision-error")

    assert "measured on generated inputs (--input-data measures yours)" in generated
    assert "measured on" not in own


def test_a_run_that_takes_too_long_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(islands, "estimated_seconds", lambda *_: 28.0)
    (message,) = messages(report(), "precision-unverified")

    assert "one run of the original takes about 28 s" in message


def test_the_verdict_has_the_errors_of_the_pass() -> None:
    found = report()

    assert found.precision is not None
    assert found.verification is not None
    assert found.verification.rounded == found.precision.outputs
    assert found.verification.rounded[0].error > 0
