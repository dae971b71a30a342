"""Moves inputs and weights by one unit in the last place: the change of a model's outputs is then rounding.

If inputs are integers, moved weights show the rounding that moved inputs cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from onnx_migrate.model.payloads import byte_size
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["perturbed_by_ulp", "with_weights_moved"]

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)

_MEMORY = 1 << 26
"""Bytes of weights that are moved at most, the smallest tensors first: they become part of the structure."""

_SCALAR = 1
"""Elements of a constant that is rather a bound or a scale of sizes than a weight."""


def perturbed_by_ulp(
    feed: Mapping[str, Any],
    seed: int,
    exact: Set[str] = frozenset(),
    fixed: Mapping[str, Array] | None = None,
) -> dict[str, Any]:
    """Return the feed with every nonzero float replaced by the next larger or smaller one, at random.

    The inputs `exact` stay unchanged. NaN, infinities and the elements that `fixed` marks stay unchanged too.
    """
    rng = np.random.default_rng([seed, 1])
    moved = dict(feed)
    for name, value in feed.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.dtype.isbuiltin == 1:
            # The generator also draws for exact inputs, so that all other inputs move equally with and
            # without them.
            towards = np.where(rng.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
            if name not in exact:
                unmoved = (value == 0) | ~np.isfinite(value) | (fixed or {}).get(name, False)
                moved[name] = np.where(unmoved, value, np.nextafter(value, towards))
    return moved


def with_weights_moved(runnable: Runnable, seed: int) -> Runnable:
    """Return the model with every float weight of the main graph replaced by the next larger or smaller number."""
    model = runnable.proto()
    sized = [(byte_size(tensor.dims, tensor.data_type) or 0, tensor) for tensor in _weights(model.graph)]
    free_bytes = _MEMORY
    for index, (size, tensor) in enumerate(sorted(sized, key=lambda item: item[0])):
        free_bytes -= size
        if free_bytes < 0:
            break
        array = numpy_helper.to_array(runnable.inlined(tensor))
        moved = perturbed_by_ulp({"": array}, seed + index)[""]
        tensor.CopyFrom(numpy_helper.from_array(moved, tensor.name))
    return runnable.with_structure(model)


def _weights(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    tensors = [*graph.initializer]
    for node in graph.node:
        if node.op_type == "Constant" and is_onnx(node.domain):
            tensors += [
                attribute.t for attribute in node.attribute if attribute.type == AttributeProto.TENSOR
            ]
    for tensor in tensors:
        if tensor.data_type in _FLOATS and prod(tensor.dims) > _SCALAR:
            yield tensor
