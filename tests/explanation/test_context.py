"""Paths of models and releases of runtimes are read from the text around an error."""

from __future__ import annotations

import pytest

from onnx_migrate.explanation.facts import model_in, release_in, target_facts


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
