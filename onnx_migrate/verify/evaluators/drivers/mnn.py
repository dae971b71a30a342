"""MNN on the CPU, by its Python package: mnnconvert's own module first converts the model to MNN's format.

The driver does not use the program `mnnconvert` itself, which installs a logging package with pip and reports each use to its
makers. MNN has no 64-bit integers and no doubles in most operators, so it gets and returns 32-bit ones.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import _tools  # of the same package: the converter
import MNN
import MNN.expr as expr
import numpy as np
from MNN import nn

__all__ = ["load", "version"]

TITLE = "MNN"
PACKAGES = "MNN"
FLOOR = 4096.0

_WINOGRAD_MEMORY_LEVEL = 3
"""The hint that chooses the tiles of MNN's Winograd convolutions (Interpreter::HintMode).

By default MNN uses large tiles. After one convolution their results had errors of 0.1 % of the largest value. At level 0 the
errors were 1e-6 of it.
"""

_NARROWED = {"int64": "int32", "float64": "float32", "bool": "int32", "float16": "float32", "int16": "int32",
             "uint16": "int32", "uint32": "int32", "uint64": "int32"}  # fmt: skip
_TYPES = {"float32": expr.float, "int32": expr.int, "uint8": expr.uint8, "int8": expr.int8}


def version() -> str:
    """Return the name of the runtime and its version."""
    return f"MNN {MNN.version()}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Convert a model, and load it with the precision of float32: convolutions without large Winograd tiles."""
    with tempfile.TemporaryDirectory() as folder:
        converted = os.path.join(folder, "model.mnn")
        options = ["--bizCode", "onnx-migrate", "--keepInputFormat=1"]
        _tools.mnnconvert(
            ["mnnconvert", "-f", "ONNX", "--modelFile", path, "--MNNModel", converted, *options]
        )
        if not os.path.exists(converted) or not os.path.getsize(converted):
            raise RuntimeError("mnnconvert does not convert it")
        names = list(example)
        runtime = nn.create_runtime_manager(({"precision": "high", "backend": "CPU", "numThread": 1},))
        # Large Winograd tiles lose digits.
        runtime.set_hint(_WINOGRAD_MEMORY_LEVEL, 0)
        module = nn.load_module_from_file(converted, names, outputs, runtime_manager=runtime)
    if module is None:
        raise RuntimeError("MNN does not load what mnnconvert made of it")

    def run(feed: dict[str, Any]) -> list[Any]:
        results = module.onForward([_variable(name, feed[name]) for name in names])
        if len(results) != len(outputs):
            raise RuntimeError(f"MNN returns {len(results)} outputs in place of {len(outputs)}")
        return [_array(value) for value in results]

    return run


def _variable(name: str, value: Any) -> Any:
    wanted = _NARROWED.get(value.dtype.name, value.dtype.name)
    if wanted not in _TYPES:
        raise TypeError(f"input {name!r} is of {value.dtype}, which MNN does not take")
    array = np.array(value, wanted, order="C")  # np.ascontiguousarray would give a scalar an axis
    if value.dtype.kind in "iu" and not np.array_equal(array.astype(value.dtype), value):
        raise TypeError(f"input {name!r} holds integers beyond 32 bits, which MNN does not have")
    return expr.const(array, list(value.shape), expr.NCHW, _TYPES[wanted])


def _array(value: Any) -> Any:
    if value.data_format == expr.NC4HW4:
        value = expr.convert(value, expr.NCHW)
    return np.array(value.read()).reshape(value.shape)
