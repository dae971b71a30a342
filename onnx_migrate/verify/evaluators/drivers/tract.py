"""tract on the CPU, by its Python package. It wants to know shapes and types of the inputs before it optimises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tract

__all__ = ["load", "version"]

TITLE = "tract"
FLOOR = 64.0

_TYPES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip


def version() -> str:
    """Return the name of the runtime and its version."""
    return f"tract {tract.version()}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Load a model for inputs of the shapes of `example`."""
    model = tract.onnx().load(path)
    names = [model.input_name(index) for index in range(model.input_count())]
    for index, name in enumerate(names):
        value = example[name]
        dims = [str(dim) for dim in value.shape]
        model.set_input_fact(index, ",".join([*dims, _type(name, value)]))
    ready = model.into_model().into_runnable()

    def run(feed: dict[str, Any]) -> list[Any]:
        return [
            _array(value)
            for value in ready.run(
                [np.ascontiguousarray(feed[name]).reshape(feed[name].shape) for name in names]
            )
        ]

    return run


def _array(value: Any) -> Any:
    try:
        return value.to_numpy()
    except tract.TractError:  # sizes of shapes are of a type of tract's own, TDim
        return value.convert_to(tract.DatumType.I64).to_numpy()


def _type(name: str, value: Any) -> str:
    if value.dtype.name not in _TYPES:
        raise TypeError(f"input {name!r} is of {value.dtype}, which tract's Python package does not take")
    return _TYPES[value.dtype.name]
