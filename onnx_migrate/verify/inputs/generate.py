"""Random inputs that fit a model: the declared types and shapes, and the values that its nodes accept."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.errors import UsageError
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import Array
from onnx_migrate.verify.inputs.operator_ranges import Range
from onnx_migrate.verify.inputs.sizes import SizeChoice, shape_of_input
from onnx_migrate.verify.inputs.value_ranges import input_ranges

__all__ = ["generate_feed"]

_LARGEST = 1 << 28
"""Bytes, at eight for each element, above which no input is generated."""


def generate_feed(
    model: onnx.ModelProto,
    other: onnx.ModelProto | None,
    choice: SizeChoice,
    distribution: str,
    seed: int,
) -> dict[str, Any] | None:
    """Return a value for every input, None if one would be too large. Raises UsageError for a type without a generator.

    `distribution` is that of floats: "normal" (standard normal), "wide" (ten times that, with zeros), "uniform" (0 to
    1), "pixels" (0 to 255) or "small" (a hundredth of "normal"). A dim that `model` leaves open has the number that
    `other`, a model of the same inputs, declares for it, if any.
    """
    rng = np.random.default_rng([seed, *distribution.encode()])
    ranges = input_ranges(model)
    counterparts = {value.name: value for value in other.graph.input} if other is not None else {}
    symbols: dict[str, int] = {}
    feed: dict[str, Any] = {}
    for value in fed_inputs(model.graph):
        kind = value.type
        copies = 1
        if kind.WhichOneof("value") == "optional_type":
            kind = kind.optional_type.elem_type
        if kind.WhichOneof("value") == "sequence_type":
            kind, copies = kind.sequence_type.elem_type, 3
        if kind.WhichOneof("value") != "tensor_type":
            raise UsageError(
                f"input {value.name!r} is neither a tensor nor a sequence of tensors, so no random value can be generated",
                code="input-data",
            )
        shape = shape_of_input(kind, counterparts.get(value.name), choice, symbols)
        if prod(shape) * 8 > _LARGEST:
            return None
        element = kind.tensor_type.elem_type
        values = [
            _values(rng, element, shape, ranges.get(value.name), value.name, distribution)
            for _ in range(copies)
        ]
        feed[value.name] = values if copies > 1 else values[0]
    return feed


def _values(
    rng: np.random.Generator,
    element: int,
    shape: tuple[int, ...],
    accepted: Range | None,
    name: str,
    distribution: str,
) -> Array:
    if element == TensorProto.STRING:
        words = np.array(["", "a", "Straße", "zebra 7"], dtype=object)
        return words[rng.integers(0, len(words), shape)]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    if element == TensorProto.BOOL:
        if accepted is not None and accepted.low == accepted.high == 1:
            return np.ones(shape, dtype)
        return np.full(shape, distribution != "wide", dtype) if prod(shape) <= 1 else rng.random(shape) < 0.5
    if accepted is not None and accepted.pattern:
        return np.resize(np.array(accepted.pattern), shape).astype(dtype)
    if dtype.kind in "iu":
        return _integers(rng, dtype, shape, accepted, name, distribution)
    if accepted is not None and not accepted.weak:
        return rng.uniform(accepted.low, accepted.high, shape).astype(dtype)
    if accepted is not None and "mask" in name.lower():
        return (rng.random(shape) < 0.8).astype(dtype)
    values = _floats(rng, shape, distribution)
    if dtype.kind == "c":
        values = values + 1j * _floats(rng, shape, distribution)
    return np.asarray(values).astype(dtype)


def _floats(rng: np.random.Generator, shape: tuple[int, ...], distribution: str) -> Array:
    if distribution in ("uniform", "pixels"):
        return rng.random(shape) * (255.0 if distribution == "pixels" else 1.0)
    values = rng.standard_normal(shape) * {"normal": 1.0, "wide": 10.0, "small": 0.01}[distribution]
    return np.where(rng.random(shape) < 0.05, 0.0, values) if distribution == "wide" else values


def _integers(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    accepted: Range | None,
    name: str,
    distribution: str,
) -> Array:
    if (accepted is None or accepted.weak) and "mask" in name.lower():
        values = (rng.random(shape) < 0.8).astype(dtype)
        if values.ndim > 1:
            values[..., 0] = 1  # attention over a row that masks everything is NaN
        return values
    if accepted is not None:
        low, high = int(accepted.low), int(accepted.high)
    else:
        info = np.iinfo(dtype)
        reach = 255 if dtype.itemsize == 1 else 100 if distribution == "wide" else 8
        low, high = max(int(info.min), -reach), min(int(info.max), reach)
    return rng.integers(low, high + 1, shape).astype(dtype)
