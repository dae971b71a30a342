"""Limits for every output, or for some by name, in each way that users write them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_migrate import compare
from onnx_migrate.errors import UsageError
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.kernel import Tolerance
from onnx_migrate.verify.tolerances import require_outputs, tolerance_for, tolerance_of
from tests.verify.harness import net

TWO = "(float[4] x) => (float[4] a, float[4] b) {{ a = Mul(x, k) b = Mul(x, m) }}"
HERE = {"isolated": False, "input_data": {"x": np.float32([1, 2, 3, 4])}}


@pytest.mark.parametrize(
    "atol", ["logits:0:1e-3", ("logits:0:1e-3",), {"logits:0": 1e-3}, ["logits:0:0.001"]]
)
def test_a_limit_for_one_output_is_a_text_or_a_dict(atol: Any) -> None:
    tolerance = tolerance_of(None, atol)
    assert tolerance.is_given
    assert tolerance_for(tolerance, "logits:0") == Tolerance(atol=1e-3)
    assert not tolerance_for(tolerance, "other").is_given


def test_a_limit_for_one_output_replaces_that_for_all() -> None:
    tolerance = tolerance_of(("1e-2", "y:0.5"), 1e-6)
    assert tolerance_for(tolerance, "y") == Tolerance(0.5, 1e-6)
    assert tolerance_for(tolerance, "z") == Tolerance(0.01, 1e-6)
    assert tolerance_of(0.1, None) == Tolerance(0.1)
    assert not tolerance_of(None, None).is_given
    assert not tolerance_of((), ()).is_given


@pytest.mark.parametrize("value", ["x", "y:", "y:-1", "y:nan", "inf", -1.0, {"y": "a"}])
def test_a_limit_that_is_no_number_is_misuse(value: Any) -> None:
    with pytest.raises(UsageError, match=r"atol: .* is not a finite number of at least 0"):
        tolerance_of(None, value)


def test_a_name_that_is_no_output_is_misuse() -> None:
    with pytest.raises(UsageError) as caught:
        require_outputs(tolerance_of("logit:1", None), ["logits", "boxes"])
    assert str(caught.value) == "the model has no output 'logit', for which you allow 1"
    assert caught.value.hint == "did you mean logits? the outputs are logits, boxes"
    with pytest.raises(UsageError, match="the model has no output 'c'"):
        compare(net(TWO.format(), k=1, m=1), net(TWO.format(), k=1, m=1), atol="c:1", **HERE)


@pytest.mark.parametrize(
    ("options", "kind", "grade"),
    [
        ({}, Kind.DIFFERS, "differs"),
        ({"atol": "a:0.5"}, Kind.VERIFIED, "within-tolerance"),
        ({"rtol": "a:0.11"}, Kind.VERIFIED, "within-tolerance"),
        ({"rtol": "a:0.09"}, Kind.DIFFERS, "differs"),
        ({"atol": "b:0.5"}, Kind.DIFFERS, "differs"),
    ],
)
def test_outputs_are_judged_by_their_own_limits(options: Any, kind: Kind, grade: str) -> None:
    original, other = net(TWO.format(), k=1.0, m=1.0), net(TWO.format(), k=1.1, m=1.0)
    verdict = compare(original, other, **options, **HERE)
    assert (verdict.kind, verdict.grade) == (kind, grade)


def test_a_limit_for_one_output_leaves_the_others_strict() -> None:
    original, other = net(TWO.format(), k=1.0, m=1.0), net(TWO.format(), k=1.1, m=1.1)
    verdict = compare(original, other, atol="a:0.5", **HERE)
    assert verdict.kind is Kind.DIFFERS
    assert "output 'b'" in verdict.reason
