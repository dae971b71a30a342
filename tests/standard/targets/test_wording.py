"""What users write, in whatever words."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.standard.targets import resolve
from onnx_migrate.standard.targets.wording import understand


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("TensorRT 8.6", "TensorRT 8.6"), ("tensorrt=8.6", "TensorRT 8.6"), ("trt@8.6.1", "TensorRT 8.6.1"),
        ("tensorrt-8.6", "TensorRT 8.6"), ("trt8.6", "TensorRT 8.6"), ("TensorRT v8.6", "TensorRT 8.6"),
        ("ONNX Runtime 1.14", "ONNX Runtime 1.14"), ("onnxruntime version 1.14", "ONNX Runtime 1.14"),
        ("ONNX Runtime Web 1.14", "ONNX Runtime Web 1.14"), ("OpenVINO release 2023.1", "OpenVINO 2023.1"),
        ("opencv-python-headless==4.8.1.78", "OpenCV 4.8.1.78"), ("OpenCV DNN 4.8", "OpenCV 4.8"),
        ("Windows 10 build 19041", "Windows ML 19041"), ("windows10==19041", "Windows ML 19041"),
        ("win10-19041", "Windows ML 19041"), ("Windows 10 2004", "Windows ML 19041"),
        ("I need it on a Jetson with TensorRT 8.2", "TensorRT 8.2"), ("TensorRT 8.2 on a Jetson", "TensorRT 8.2"),
        ("Jetson AGX Orin, TensorRT 8.5", "TensorRT 8.5"), ("Jetson Orin with JetPack 5.1", "TensorRT 8.5"),
        ("NVIDIA TensorRT 8.6 GA", "TensorRT 8.6"), ("Intel OpenVINO 2023.1", "OpenVINO 2023.1"),
        ("onnx runtime 1.10 on android", "ONNX Runtime 1.10"), ("ort-mobile 1.12", "ONNX Runtime 1.12"),
        ("Rockchip RK3588 with RKNN 1.5", "RKNN-Toolkit2 1.5"), ("X-CUBE-AI 8.1", "ST Edge AI Core 1.0"),
        ("the Hailo-8 accelerator", "Hailo Dataflow Compiler"),
    ],
)  # fmt: skip
def test_the_words_of_newcomers(text: str, name: str) -> None:
    targets = resolve([text])

    assert str(targets) == name
    assert targets.requests == (text,)


@pytest.mark.parametrize("text", ["RK3588", "Rockchip RK3588", "rknn", "rknpu2"])
def test_a_chip_is_its_toolkit(text: str) -> None:
    assert understand(text).table.name == "rknn"


@pytest.mark.parametrize("text", ["an old ONNX Runtime", "my onnxruntime"])
def test_a_sentence_without_a_release_is_not_completed_by_the_installed_one(text: str) -> None:
    with pytest.raises(UsageError, match="the ONNX Runtime release is needed") as error:
        resolve([text])
    assert error.value.code == "release-needed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "onnxruntime 1.14 and TensorRT 8.6",
            "names ONNX Runtime and TensorRT(?s:.*)--for onnxruntime==1.14 --for",
        ),
        ("snapdragon 8 gen 2", r"not a known runtime\nHint: did you mean snapdragon\?"),
        ("tensort==8.6", r"did you mean tensorrt\?"),
        ("a big abacus", "not a known runtime"),
        ("", "not a known runtime"),
        ("onnxruntime==", "names no release"),
    ],
)
def test_what_is_not_understood_is_said(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        understand(text)
