"""Reads the shapes that a model declares for inputs and outputs: cuts a batch into items, and checks outputs against them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import onnx

from onnx_migrate.messages import count_of
from onnx_migrate.model.dims.expressions import value_of
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.model.interface import UNNAMED

__all__ = [
    "axes_with_symbol",
    "batch_axes_of",
    "common_first_axis",
    "copies_of",
    "inputs_with_sizes",
    "item_of",
    "shape_warnings",
    "undeclared_shape",
]

_MISMATCH = re.compile(
    r"Expected shape from model of (\{.*?\}) does not match actual shape of (\{.*?\}) for output ([^\s\x1b]+)"
)
"""ONNX Runtime's warning that a value has another shape than the model declares or ONNX Runtime inferred."""


def inputs_with_sizes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> onnx.ModelProto:
    """Return a model of the declared inputs only, with numbers in place of these symbols."""
    declared = onnx.ModelProto()
    for value in fed_inputs(model.graph):
        copy = declared.graph.input.add()
        copy.CopyFrom(value)
        for dim in copy.type.tensor_type.shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    return declared


def axes_with_symbol(value: onnx.ValueInfoProto, symbols: Set[str]) -> list[int]:
    """Return the axes of an input or output that are declared as one of `symbols`."""
    return [axis for axis, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_param in symbols]


def common_first_axis(model: onnx.ModelProto) -> int | None:
    """Return the number that axis 0 of every input is declared as; None if there is no such number."""
    leading = [value.type.tensor_type.shape.dim[:1] for value in fed_inputs(model.graph)]
    sizes = {dims[0].dim_value if dims else 0 for dims in leading}
    return sizes.pop() or None if len(sizes) == 1 else None


def batch_axes_of(a: tuple[int, ...], b: tuple[int, ...], few: int, many: int) -> list[int]:
    """Return the axes that are `few` long in shape `a` and `many` in shape `b`: `a` and `b` are of those batches."""
    if len(a) != len(b):
        return []
    return [axis for axis in range(len(a)) if a[axis] == few and b[axis] == many]


def item_of(model: onnx.ModelProto, feed: Mapping[str, Any], item: int, batch: Set[str]) -> dict[str, Any]:
    """Return the inputs of one item of a feed: a batch of one, on every axis that is one of the symbols `batch`."""
    alone = dict(feed)
    for value in fed_inputs(model.graph):
        for axis in axes_with_symbol(value, batch):
            alone[value.name] = np.take(alone[value.name], [item], axis)
    return alone


def copies_of(
    model: onnx.ModelProto, alone: Mapping[str, Any], count: int, batch: Set[str]
) -> dict[str, Any]:
    """Return the inputs of a batch that has one item, given as a batch of one, `count` times."""
    copies = dict(alone)
    for value in fed_inputs(model.graph):
        for axis in axes_with_symbol(value, batch):
            copies[value.name] = np.repeat(copies[value.name], count, axis)
    return copies


def shape_warnings(printed: str) -> dict[str, list[str]]:
    """Return the values that ONNX Runtime's output warns of, each with its declared and its actual shape."""
    return {name: shapes for *shapes, name in _MISMATCH.findall(printed)}


def undeclared_shape(
    model: onnx.ModelProto, values: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[str, str] | None:
    """Return the first output whose shape is not the declared one, if symbols have these sizes, and the difference.

    An expression of symbols must have their value, and a symbol that no input has must have one size in all outputs. The result
    is None if all shapes are as declared.
    """
    bound = dict(sizes)
    for output in model.graph.output:
        declared = output.type.tensor_type
        value = values[output.name]
        if not isinstance(value, np.ndarray) or not declared.HasField("shape"):
            continue
        dims = declared.shape.dim
        if len(dims) != value.ndim:
            return (
                output.name,
                f"output {output.name!r} is declared with {count_of(len(dims), 'axis')} and has {value.ndim}",
            )
        for axis, (dim, size) in enumerate(zip(dims, value.shape, strict=True)):
            if dim.dim_value < 0 or dim.dim_param in UNNAMED:  # of any length
                continue
            if dim.HasField("dim_value"):
                expected, label = dim.dim_value, str(dim.dim_value)
            elif dim.dim_param:
                computed = value_of(dim.dim_param, sizes)
                expected = bound.setdefault(dim.dim_param, size) if computed is None else computed
                label = f"{dim.dim_param}, which is {expected} here,"
            else:
                continue
            if expected != size:
                where = f"axis {axis} of output {output.name!r}"
                return output.name, f"{where} is declared as {label} and has length {size}"
    return None
