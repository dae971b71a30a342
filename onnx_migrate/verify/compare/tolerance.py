"""How much an output may differ: the tolerance, and what of a model determines it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.model.graphs import all_nodes, initializer_types

__all__ = ["Tolerance", "allowance", "coarsest_eps", "is_quantized"]

_EPS: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-23,
    TensorProto.FLOAT16: 2.0**-10,
    TensorProto.BFLOAT16: 2.0**-7,
    TensorProto.DOUBLE: 2.0**-52,
}
"""The distance from 1 to the next larger number of a type."""


@dataclass(frozen=True)
class Tolerance:
    """What may differ. With `rtol` or `atol`: `|after - before| <= atol + rtol * |before|`, per element.

    Otherwise, per output: `max(floor * eps * scale, min(factor * noise, ceiling * scale))`. The scale is the largest
    finite magnitude of the original's output, eps that of the coarsest float type in the model, and noise the
    difference measured between runs of the original (noise.py). `quantum` lets int8 and uint8 outputs differ by one
    quantisation step. Other integers, bools and strings must be equal.
    """

    rtol: float | None = None
    atol: float | None = None
    floor: float = 8.0
    factor: float = 10.0
    ceiling: float = 1e-2
    quantum: bool = False
    eps: float = 0.0

    @property
    def is_given(self) -> bool:
        """Whether the user said what may differ, in place of the rule."""
        return self.rtol is not None or self.atol is not None


def allowance(tolerance: Tolerance, scale: float, noise: float, dtype: np.dtype[Any]) -> float:
    """Return the absolute difference that rounding explains in an output of this scale, noise and type."""
    eps = max(tolerance.eps, _eps(dtype))
    floor = tolerance.floor * eps * scale
    return max(floor, min(tolerance.factor * noise, tolerance.ceiling * scale))


def coarsest_eps(model: onnx.ModelProto) -> float:
    """Return the largest eps of the float types of inputs, constants and casts; 0 without any."""
    kinds = {dtype for _, dtype, _ in initializer_types(model.graph)}
    kinds.update(value.type.tensor_type.elem_type for value in model.graph.input)
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                kinds.add(attribute.t.data_type)
            elif node.op_type == "Cast" and attribute.name == "to":
                kinds.add(attribute.i)
    return max((_EPS[kind] for kind in kinds if kind in _EPS), default=0.0)


def is_quantized(model: onnx.ModelProto) -> bool:
    """Whether the model rounds to integers by design, so that a rounding error can become a quantisation step."""
    return any(
        "QLinear" in n.op_type or "Quantize" in n.op_type or "Integer" in n.op_type for n in all_nodes(model)
    )


def _eps(dtype: np.dtype[Any]) -> float:
    if dtype.kind == "c":
        return float(np.finfo(dtype).eps)
    known = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
    return known.get(dtype.name, 2.0**-3)
