"""This module replaces sparse initializers by dense ones, including the zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto, numpy_helper

from onnx_migrate.advice import Advice
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import BufferPayload, byte_size
from onnx_migrate.model.weights import INLINE_LIMIT

__all__ = ["make_dense"]

_LIMIT = 1 << 27
"""Sparse tensors become dense ones of up to this many bytes."""


def make_dense(model: Model) -> list[str]:
    """Make each sparse initializer of the main graph and of sub-graphs a dense one, in place; return their names.

    Raises CannotMigrate, code `no-such-ir`, for a tensor that is too large with its zeros.
    """
    names = []
    for located in bodies(model.proto):
        graph = located.body
        if not isinstance(graph, GraphProto):
            continue
        for sparse in graph.sparse_initializer:
            name, values = sparse.values.name, sparse.values
            # The zeros of a sparse tensor may need enormous space.
            size = byte_size(sparse.dims, values.data_type)
            if size is None or size > _LIMIT:
                raise CannotMigrate(
                    f"this sparse initializer, of shape {list(sparse.dims)}, is too large to be stored with its zeros,"
                    " and sparse tensors came with IR version 6",
                    code="no-such-ir",
                    where=Where(located.path, name),
                    hint=Advice("use IR version 6", options={"ir_version": 6}),
                )
            dense = _dense(
                model.weights.array(values), model.weights.array(sparse.indices), tuple(sparse.dims)
            )
            graph.initializer.append(_tensor(model, dense, name))
            names.append(name)
        graph.ClearField("sparse_initializer")
    return names


def _dense(
    values: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Return a dense array; `indices` are positions in the flat array, or one row of coordinates for each value.

    The comments of SparseTensorProto in onnx.proto describe both forms.
    """
    dense = np.zeros(shape, values.dtype)
    if indices.ndim == 1:
        dense.reshape(-1)[indices] = values
    else:
        dense[tuple(indices.T)] = values
    return dense


def _tensor(model: Model, array: np.ndarray[Any, Any], name: str) -> TensorProto:
    tensor = numpy_helper.from_array(array, name)
    if len(tensor.raw_data) > INLINE_LIMIT:
        data = tensor.raw_data
        model.weights.keep(tensor, BufferPayload(memoryview(data), len(data)))
    return tensor
