"""What shape arithmetic makes of known numbers: the few operators that exporters compute shapes with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

__all__ = ["LARGEST", "compute"]

Array = np.ndarray[Any, Any]

LARGEST = 1024
"""Elements above which no shape, size or scale is meant."""


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    quotient = np.abs(a) // np.abs(b)  # towards zero, as C++ does
    return np.asarray(np.where((a < 0) != (b < 0), -quotient, quotient), a.dtype)


def _constant_of_shape(attributes: dict[str, Any], shape: Array) -> Array:
    value = attributes.get("value")
    fill = np.zeros(1, np.float32) if value is None else _elements(value)
    return np.full(shape.tolist(), fill.reshape(-1)[0], fill.dtype)


def _elements(tensor: Any) -> Array:
    """Return a small tensor's elements."""
    from onnx import numpy_helper

    return np.asarray(numpy_helper.to_array(tensor))


def _slice(attributes: dict[str, Any], x: Array, *rest: Array) -> Array:
    if "starts" in attributes:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes"), None
    else:
        given = [part.tolist() for part in rest]
        starts, ends = given[0], given[1]
        axes = given[2] if len(given) > 2 else None
        steps = given[3] if len(given) > 3 else None
    cuts = [slice(None)] * x.ndim
    for index, axis in enumerate(axes if axes is not None else range(len(starts))):
        step = steps[index] if steps else 1
        whole = step < 0 and ends[index] < -x.shape[axis]  # which numpy writes as no end
        cuts[axis] = slice(starts[index], None if whole else ends[index], step)
    return x[tuple(cuts)]


def _axes(attributes: dict[str, Any], rest: tuple[Array, ...]) -> tuple[int, ...] | None:
    if attributes.get("axes") is not None:
        return tuple(attributes["axes"])
    return tuple(rest[0].tolist()) if rest else None


def _reshape(attributes: dict[str, Any], x: Array, shape: Array) -> Array:
    sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(shape.tolist())]
    return x.reshape(sizes)


_OPERATORS: dict[str, Callable[..., Array]] = {
    "Add": lambda _, a, b: a + b,
    "Sub": lambda _, a, b: a - b,
    "Mul": lambda _, a, b: a * b,
    "Div": lambda _, a, b: _divide(a, b),
    "Mod": lambda at, a, b: np.fmod(a, b) if at.get("fmod") else np.mod(a, b),
    "Min": lambda _, *parts: np.minimum.reduce(np.broadcast_arrays(*parts)),
    "Max": lambda _, *parts: np.maximum.reduce(np.broadcast_arrays(*parts)),
    "Neg": lambda _, x: -x,
    "Abs": lambda _, x: np.abs(x),
    "Floor": lambda _, x: np.floor(x),
    "Ceil": lambda _, x: np.ceil(x),
    "Sqrt": lambda _, x: np.sqrt(x),
    "Not": lambda _, x: ~x,
    "Equal": lambda _, a, b: a == b,
    "Less": lambda _, a, b: a < b,
    "Greater": lambda _, a, b: a > b,
    "LessOrEqual": lambda _, a, b: a <= b,
    "GreaterOrEqual": lambda _, a, b: a >= b,
    "And": lambda _, a, b: a & b,
    "Or": lambda _, a, b: a | b,
    "Where": lambda _, c, a, b: np.asarray(np.where(c, a, b)),
    "Identity": lambda _, x: x,
    "Cast": lambda at, x: x.astype(helper.tensor_dtype_to_np_dtype(at["to"])),
    "Concat": lambda at, *parts: np.concatenate(parts, at["axis"]),
    "Gather": lambda at, x, index: np.take(x, index, at.get("axis", 0)),
    "Slice": _slice,
    "Squeeze": lambda at, x, *rest: np.squeeze(x, _axes(at, rest)),
    "Unsqueeze": lambda at, x, *rest: np.expand_dims(x, _axes(at, rest) or ()),
    "Reshape": _reshape,
    "Transpose": lambda at, x: np.transpose(x, at.get("perm")),
    "ConstantOfShape": _constant_of_shape,
    "Expand": lambda _, x, shape: x * np.ones(shape.tolist(), x.dtype),
    "Range": lambda _, start, limit, delta: np.asarray(range(int(start), int(limit), int(delta)), start.dtype),
    "ReduceProd": lambda at, x, *rest: np.prod(x, _axes(at, rest), keepdims=bool(at.get("keepdims", 1)), dtype=x.dtype),
    "ReduceSum": lambda at, x, *rest: np.sum(x, _axes(at, rest), keepdims=bool(at.get("keepdims", 1)), dtype=x.dtype),
    "ReduceMin": lambda at, x, *rest: np.min(x, _axes(at, rest), keepdims=bool(at.get("keepdims", 1))),
    "ReduceMax": lambda at, x, *rest: np.max(x, _axes(at, rest), keepdims=bool(at.get("keepdims", 1))),
}  # fmt: skip


def compute(operator: str, attributes: dict[str, Any], given: list[Array]) -> Array | None:
    """Return what a node gives, or None for what is no shape arithmetic, not valid, or large."""
    function = _OPERATORS.get(operator)
    if function is None or sum(part.size for part in given) > LARGEST:
        return None
    if operator in ("ConstantOfShape", "Expand") and np.prod(given[-1].astype(float)) > LARGEST:
        return None
    if operator == "Range" and abs(given[1].item() - given[0].item()) > LARGEST:
        return None
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(function(attributes, *given))
    except (ValueError, IndexError, TypeError, KeyError, ZeroDivisionError, OverflowError):
        return None  # not a valid node; others say so
    return found if found.size <= LARGEST else None
