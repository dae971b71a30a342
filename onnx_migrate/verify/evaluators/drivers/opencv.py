"""OpenCV's dnn module on the CPU. It drops or adds axes of tensors with fewer than two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2

__all__ = ["load", "version"]

TITLE = "OpenCV"
ALIASES = ("cv2",)
PACKAGES = "opencv-python-headless"
FLOOR = 64.0
LOSES_AXES = True  # it has no scalars and vectors


def version() -> str:
    """Return the name of the runtime and its version."""
    if not hasattr(cv2, "dnn"):
        raise ImportError("this build of OpenCV has no dnn module")
    return f"OpenCV {cv2.__version__}"


_MAT: Any = getattr(cv2, "Mat", None)  # since 4.5.4


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Load a model; OpenCV compiles it when it first runs."""
    net = cv2.dnn.readNetFromONNX(path)
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    net.setPreferableTarget(cv2.dnn.DNN_TARGET_CPU)

    def run(feed: dict[str, Any]) -> list[Any]:
        for name, value in feed.items():
            # Before 5.0 OpenCV treats the last axis of a 3-D array as the channels of an image, but not that of a Mat.
            net.setInput(_MAT(value) if _MAT and value.ndim == 3 else value, name)
        return [value.copy() for value in net.forward(outputs)]

    return run
