"""The simulator of rknn-toolkit2, which computes on this machine the float16 numbers of an RK3588, without quantisation.

It needs the shapes of the inputs when it builds. This driver makes it read tensors of four axes in the order of ONNX.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from typing import Any

import numpy as np
from rknn.api import RKNN

__all__ = ["load", "version"]

TITLE = "RKNN's simulator"
ALIASES = ("rknn-toolkit2",)
PACKAGES = "rknn-toolkit2"
FLOOR = 131072.0  # 2**17: it computes in float16
LOSES_AXES = True  # it has a batch of its own

_PLATFORM = "rk3588"


def version() -> str:
    """Return the name of the runtime and its version."""
    return f"RKNN simulator {metadata.version('rknn-toolkit2')}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Build a model for inputs of the shapes of `example`, which are in the model's order."""
    toolkit = RKNN(verbose=False)
    toolkit.config(target_platform=_PLATFORM)
    shapes = [list(value.shape) for value in example.values()]
    _done(
        toolkit.load_onnx(model=path, inputs=list(example), input_size_list=shapes, outputs=outputs),
        "does not load",
    )
    _done(toolkit.build(do_quantization=False), "does not build")
    _done(toolkit.init_runtime(), "does not start")

    def run(feed: dict[str, Any]) -> list[Any]:
        arrays = [np.ascontiguousarray(feed[name]) for name in example]
        formats = ["nchw" if value.ndim == 4 else None for value in arrays]
        results = toolkit.inference(inputs=arrays, data_format=formats if any(formats) else None)
        if results is None:
            raise RuntimeError("rknn-toolkit2 does not compute it")
        return [np.asarray(value) for value in results]

    return run


def _done(code: int, what: str) -> None:
    if code:
        raise RuntimeError(f"rknn-toolkit2 {what}")
