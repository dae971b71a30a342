"""What is read from a pasted text and known of what it names: models, releases, opsets, IR versions, operators."""

from __future__ import annotations

import pytest

from onnx_migrate.explanation.facts import facts_of, model_in, release_in, target_facts
from onnx_migrate.explanation.operator_facts import attribute_facts, canonical, operator_facts, operator_names
from onnx_migrate.standard.error_texts import error_texts


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Load model from ./a b/m.onnx failed:Fatal", "'./a b/m.onnx'"),
        ("trtexec --onnx=/x/y.onnx --fp16", "/x/y.onnx"),
        (r"Load model from C:\m\a.onnx failed", r"'C:\m\a.onnx'"),
        ('File "x.py", line 3\n  sess = InferenceSession("yolo.v5.onnx")', "yolo.v5.onnx"),
        ("parsing model.onnx: done", "model.onnx"),
        ("domain ai.onnx is till", ""),
        ("import torch.onnx as t", ""),
        ("torch.onnx.errors.Unsupported", ""),
        ("[Split@ai.onnx] parse error", ""),
        ("onnx::Conv_12", ""),
        ("https://x.org/a.onnx", ""),
    ],
)
def test_paths_of_models(text: str, path: str) -> None:
    assert model_in(text) == path


@pytest.mark.parametrize(
    ("text", "runtime", "release"),
    [
        ("**TensorRT Version**: 8.2.1.8", "tensorrt", "8.2"),
        ("&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec", "tensorrt", "8.5"),
        ("[TensorRT v100300]", "tensorrt", "10.3"),
        ("ONNX Runtime version: 1.10.0", "onnxruntime", "1.10"),
        ("onnxruntime-gpu==1.14.1", "onnxruntime", "1.14"),
        ("OpenCV(4.5.1) /tmp/onnx_importer.cpp", "opencv", "4.5"),
        ("rknn-toolkit2 version: 1.4.0-22dcfef4", "rknn", "1.4"),
        ("nothing of it", "tensorrt", ""),
    ],
)
def test_releases(text: str, runtime: str, release: str) -> None:
    assert release_in(text, runtime) == release


def test_a_release_that_is_not_named_is_the_newest_known_and_said_to_be_an_example() -> None:
    facts = target_facts("tensorrt", "", "no release")
    assert facts["target"] == facts["target_example"]
    assert "target_example" not in target_facts("tensorrt", "7.0", "")


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


@pytest.mark.parametrize(
    ("name", "opset", "known"),
    [
        ("Range", 10, "op_newer"),
        ("Range", 11, "op_in_opset"),
        ("LayerNormalization", 16, "op_newer"),
        ("Upsample", 11, "op_gone"),
        ("Upsample", 9, "op_in_opset"),
        ("ConstantFill", 8, "op_experimental"),
        ("ATen", 9, "op_of_torch"),
        ("MeanVarianceNormalization", 13, "op_in_opset"),
        ("Scaler", 3, "op_in_other_domain"),
        ("SkipLayerNormalization", 17, "op_contributed"),
        ("SimplifiedLayerNormalization", 17, "op_contributed"),
        ("FooBar", 17, "op_unknown"),
    ],
)
def test_operators_are_told_apart(name: str, opset: int, known: str) -> None:
    facts = operator_facts(name, opset)
    assert known in facts
    assert name in facts["op_history"]
    kinds = {"op_newer", "op_in_opset", "op_gone", "op_in_other_domain", "op_contributed", "op_unknown"}
    assert kinds & set(facts) <= {known}


def test_the_first_and_last_opset() -> None:
    assert operator_facts("range", 10)["op"] == "Range"
    assert operator_facts("Range", 10)["op_since"] == "11"
    assert operator_facts("Upsample", 11)["op_last"] == "9"


def test_attributes_come_and_go() -> None:
    assert attribute_facts("ReduceMean", "axes", None) == {"attribute_last": "17", "attribute_gone": "18"}
    assert attribute_facts("DequantizeLinear", "block_size", 19) == {"attribute_since": "21"}
    assert attribute_facts("Relu", "foo", None) == {}


def test_names_in_any_spelling() -> None:
    assert canonical("ai.onnx.ml.scaler") == ("ai.onnx.ml", "Scaler")
    assert canonical("com.microsoft:Resize") is None
    assert operator_names()["resize"] == (("", "Resize"),)
