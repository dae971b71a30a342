"""Error texts are found in sentences, tracebacks and logs."""

from __future__ import annotations

import random
import time

import pytest

from onnx_migrate.standard.error_texts import error_texts
from onnx_migrate.standard.error_texts.find import find


def names(text: str) -> list[str]:
    return [found.entry.name for found in find(text, error_texts())]


def test_several_errors_are_found_in_the_order_of_the_text() -> None:
    log = """
    Op registered for Upsample is deprecated in domain_version of 11
    and then Unsupported model IR version: 10, max supported IR version: 9
    """
    assert names(log) == [
        "op-registered-for-is-deprecated-in-domain-version-of",
        "unsupported-model-ir-version",
    ]


def test_warnings_come_after_errors() -> None:
    warning = next(entry for entry in error_texts() if entry.severity == "warning")
    log = f"{warning.example}\nUnsupported model IR version: 10, max supported IR version: 9"
    assert names(log) == ["unsupported-model-ir-version", warning.name]


def test_what_says_little_is_told_only_alone() -> None:
    alone = "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. In Node"
    assert names(alone) == ["onnxruntime-error-invalid-graph"]
    assert names(f"{alone} No Op registered for Range with domain_version of 10") == [
        "no-op-registered-for-with-domain-version-of"
    ]


def test_the_longer_text_at_a_place_counts_and_gives_all_values() -> None:
    (found,) = find(
        "Error in Node:Range_5 : No Op registered for Range with domain_version of 10", error_texts()
    )
    assert found.captures == ({"node": "Range_5", "op": "Range", "opset": "10"},)
    assert found.said == "Error in Node:Range_5 : No Op registered for Range with domain_version of 10"


def test_the_same_error_with_other_values_is_one_finding() -> None:
    log = "\n".join(
        f"No Op registered for {op} with domain_version of 10" for op in ("Range", "Round", "Range")
    )
    (found,) = find(log, error_texts())
    assert [captured["op"] for captured in found.captures] == ["Range", "Round"]


@pytest.mark.long
def test_megabytes_are_quick() -> None:
    """A log of words from all error texts in any order, where most of the fixed words stand thousands of times."""
    rng = random.Random(1)
    pieces = [word for entry in error_texts() for word in entry.example.split()]
    pieces += [pattern.anchor for entry in error_texts() for pattern in entry.patterns]
    log = " ".join(rng.choices(pieces, k=2_000_000 // 14))
    assert len(log) > 1_600_000
    start = time.process_time()
    find(log, error_texts())
    assert time.process_time() - start < 4


@pytest.mark.parametrize("width", [79, 80, 100, 120])
def test_a_text_that_a_terminal_cut_within_words(width: int) -> None:
    text = (
        f"{'x' * 70} No Op registered for Range with domain_version of 10, which the model of {'y' * 90} has"
    )
    cut = "\n".join(text[at : at + width] for at in range(0, len(text), width))
    (found,) = find(cut, error_texts())
    assert found.captures[0] == {"op": "Range", "opset": "10"}
