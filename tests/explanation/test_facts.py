from __future__ import annotations

from onnx_migrate.explanation.facts import facts_of
from onnx_migrate.standard.error_texts import error_texts

ENTRY = next(entry for entry in error_texts() if entry.name == "unsupported-model-ir-version")


def test_what_follows_from_an_ir_version() -> None:
    facts = facts_of(ENTRY, {"ir": "10", "max_ir": "9"}, "")
    assert (facts["ir_ort"], facts["max_ir_ort"], facts["max_ir_opset"]) == ("1.18", "1.15", "20")


def test_lists_of_operators_are_taken_apart() -> None:
    facts = facts_of(ENTRY, {"ops": "ONNX::Gelu, ai.onnx.Range ,Gelu"}, "")
    assert (facts["ops"], facts["op"], facts["several"]) == ("Gelu, Range", "Gelu", "yes")


def test_the_path_that_was_given_counts_before_that_of_the_text() -> None:
    assert facts_of(ENTRY, {}, "in a.onnx there")["model"] == "a.onnx"
    assert facts_of(ENTRY, {}, "in a.onnx there", "b.onnx")["model"] == "b.onnx"
    assert "model_named" not in facts_of(ENTRY, {}, "")


def test_domains_are_told_apart() -> None:
    assert "standard_domain" in facts_of(ENTRY, {}, "")
    assert "ml_domain" in facts_of(ENTRY, {"domain": "ai.onnx.ml"}, "")
    assert "other_domain" in facts_of(ENTRY, {"domain": "com.microsoft"}, "")


def test_versions_before_opset_7() -> None:
    assert "version_before_7" in facts_of(ENTRY, {"op": "Relu", "version": "1"}, "")
    assert facts_of(ENTRY, {"op": "GridSample", "version": "20"}, "")["opset_before_version"] == "19"
