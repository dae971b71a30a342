"""Finds the tools that a pasted text comes from, by words that only one tool prints."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["named_tools", "owners"]

_MARKS: Mapping[str, tuple[str, ...]] = {
    "burn": ("burn_import", "burn-import", "burn_onnx", "burn-onnx", "onnx_ir::"),
    "mxnet2ncnn": ("mxnet2ncnn",),
    "ncnn": ("onnx2ncnn", "pnnx"),
    "opencv": ("opencv(", "cv::dnn", "cv2.error"),
    "tensorrt": ("tensorrt", "[trt]", "trtexec", "onnx2trt"),
    "onnx runtime": ("onnxruntimeerror",),
    "arm nn": ("armnn::",),
    "migraphx": ("migraphx",),
    "rknn": ("rknn",),
    "hailo": ("hailo_sdk", "hailo_model_zoo", "hailo_virtualenv"),
    "qnn": ("qnnexecutionprovider", "qnnbackend", "qnndsp", "qnn graph"),
    "openvino": ("openvino", "src/frontends/onnx/frontend"),
}
"""Parts of messages that identify a tool, in lower case, by the tool's name in the tables of error texts."""


def named_tools(lowered: str) -> frozenset[str]:
    """Return the tools that a text in lower case names."""
    return frozenset(tool for tool, marks in _MARKS.items() if any(mark in lowered for mark in marks))


def owners(tool: str) -> frozenset[str]:
    """Return which of the tools an entry's field `tool` names; none for one without marks, as for "an importer"."""
    lowered = tool.lower()
    return frozenset(name for name in _MARKS if name in lowered)
