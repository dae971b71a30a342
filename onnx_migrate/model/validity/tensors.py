"""Checks a tensor: its dims, its element type, and the one form in which it holds its data.

Source: onnx.proto, comments of TensorProto and SparseTensorProto. Payloads are not read, but for the
indices of sparse tensors: their lengths suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.messages import count_of
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.validity.fault import Problem

__all__ = [
    "ELEMENT_TYPES",
    "FIELD_OF_TYPE",
    "Array",
    "IntArray",
    "array_of",
    "dims_fault",
    "dtype_fault",
    "flat_places",
    "sparse_fault",
    "tensor_fault",
    "unordered",
]

ELEMENT_TYPES = frozenset(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
"""The element types that the installed onnx knows."""

_LARGEST = 2**63 - 1
"""The most elements, or bytes, of a tensor: runtimes count them in 64 bits with a sign."""

_MOST_AXES = 64
"""The most axes of a tensor that has data; this is the limit of ONNX Runtime and NumPy."""

FIELD_OF_TYPE = dict.fromkeys(
    (6, 5, 3, 4, 2, 9, 10, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28), "int32_data"
)
FIELD_OF_TYPE |= {1: "float_data", 14: "float_data", 11: "double_data", 15: "double_data", 7: "int64_data"}
FIELD_OF_TYPE |= {12: "uint64_data", 13: "uint64_data", 8: "string_data"}
"""The field for the elements of each element type where they are not in raw_data (onnx.proto)."""

_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)


IntArray = np.ndarray[Any, np.dtype[np.int64]]
Array = Callable[[TensorProto], "IntArray | None"]
"""Reads the indices of a sparse tensor; None if they are in an unknown file."""


def array_of(tensor: TensorProto) -> IntArray | None:
    """Return the indices of a sparse tensor that the model itself holds."""
    return None if tensor.data_location == TensorProto.EXTERNAL else numpy_helper.to_array(tensor)


def tensor_fault(tensor: TensorProto, length: int | None = None) -> Problem | None:
    """Return the problem of a tensor; None if it is valid.

    `length` is the number of bytes that a tensor marked EXTERNAL refers to; None if that is not known.
    """
    problem = dims_fault(tensor.dims) or dtype_fault(tensor.data_type)
    if problem:
        return problem
    if tensor.HasField("segment"):
        return Problem(
            code="data-size", reason="it is stored in segments, which the standard does not support"
        )
    if tensor.data_location == TensorProto.EXTERNAL and not tensor.HasField("raw_data"):
        return _external_fault(tensor, length)
    forms = [name for name in DATA_FIELDS if len(getattr(tensor, name))]
    if tensor.HasField("raw_data") and "raw_data" not in forms and forms:
        forms.insert(0, "raw_data")  # empty, and yet what programs read
    if len(forms) > 1:
        return Problem(
            code="two-data-forms", reason=f"it holds data in {' and in '.join(forms)}: only one may be set"
        )
    if forms == ["raw_data"]:
        return _raw_fault(tensor, len(tensor.raw_data))
    if not forms:
        return _raw_fault(tensor, 0) if tensor.data_type != TensorProto.STRING else _count_fault(tensor, 0)
    wanted = FIELD_OF_TYPE.get(tensor.data_type)
    if wanted is not None and forms != [wanted]:
        return Problem(
            code="wrong-data-field",
            reason=f"its elements of type {_name(tensor)} are in {forms[0]}, and must be in {wanted} or raw_data",
        )
    return _count_fault(tensor, len(getattr(tensor, forms[0])))


def sparse_fault(
    sparse: onnx.SparseTensorProto, length: int | None = None, array: Array = array_of
) -> Problem | None:
    """Return the problem of a sparse tensor: in its dims, values, indices, or their agreement; None if it is valid.

    `length` is the number of bytes of the values if they are EXTERNAL; `array` reads the indices. The order of the
    indices does not matter, as ONNX Runtime supports any (see `unordered`).
    """
    # The dims come first, because the checks below multiply them.
    problem = dims_fault(sparse.dims)
    if problem:
        return problem
    for part, tensor in (("values", sparse.values), ("indices", sparse.indices)):
        problem = tensor_fault(tensor, length if part == "values" else None)
        if problem:
            return Problem(problem.code, f"its {part}: {problem.reason}")
    values, indices = list(sparse.values.dims), list(sparse.indices.dims)
    if len(values) != 1:
        return Problem(
            code="bad-sparse", reason=f"its values have the shape {values}, and must have one axis"
        )
    if sparse.indices.data_type != TensorProto.INT64:
        return Problem(
            code="bad-sparse", reason=f"its indices are of type {_name(sparse.indices)}, and must be INT64"
        )
    if indices not in (values, [*values, len(sparse.dims)]):
        return Problem(
            code="bad-sparse",
            reason=f"its indices have the shape {indices} for {count_of(values[0], 'value')} of a tensor {list(sparse.dims)}",
        )
    # The indices are read last, because this may read a file.
    return _places_fault(sparse, array)


def unordered(sparse: onnx.SparseTensorProto, array: Array = array_of) -> bool:
    """Return whether the indices of a valid sparse tensor are not in ascending order, as onnx.proto wants them."""
    flat_indices = flat_places(sparse, array)
    return flat_indices is not None and bool((np.diff(flat_indices) < 0).any())


def _places_fault(sparse: onnx.SparseTensorProto, array: Array) -> Problem | None:
    """Return the problem of an index that is out of range, or given twice."""
    indices = array(sparse.indices)
    if indices is None or not indices.size:
        return None
    # Indices of one axis count the elements of the flat tensor.
    limits = np.array(sparse.dims if indices.ndim == 2 else [math.prod(sparse.dims)], np.int64)
    rows = indices.reshape(len(indices), -1)
    outside = ((rows < 0) | (rows >= limits)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        return Problem(
            code="bad-sparse",
            reason=f"its index {row} is {indices[row].tolist()}, which is outside a tensor {list(sparse.dims)}",
        )
    flat_indices = flat_places(sparse, array)
    if (
        flat_indices is not None
        and (np.diff(flat_indices) <= 0).any()
        and len(np.unique(flat_indices)) < len(flat_indices)
    ):
        return Problem(code="bad-sparse", reason="two of its values have the same index")
    return None


def flat_places(sparse: onnx.SparseTensorProto, array: Array) -> IntArray | None:
    """Return the positions in the flat tensor; None if the indices cannot be read, or are none."""
    indices = array(sparse.indices)
    if indices is None or not indices.size:
        return None
    if indices.ndim == 1:
        return indices
    steps = [math.prod(sparse.dims[axis + 1 :]) for axis in range(len(sparse.dims))]
    # Row-major order, as ONNX stores dense tensors.
    flat_indices: IntArray = indices @ np.array(steps, np.int64)
    return flat_indices


def dims_fault(dims: object) -> Problem | None:
    """Return the problem of the dims of a tensor that has data: a negative dim, too many dims, or more elements than 2^63."""
    sizes = list(dims)  # type: ignore[call-overload]
    if len(sizes) <= _MOST_AXES and min(sizes, default=0) < 0:
        return Problem(code="bad-dims", reason=f"its dims {sizes} are not all 0 or more")
    if len(sizes) > _MOST_AXES:
        return Problem(
            code="bad-dims", reason=f"it has {len(sizes):,} axes, and runtimes take {_MOST_AXES} at most"
        )
    if math.prod(size for size in sizes if size) > _LARGEST // 16:
        return Problem(code="bad-dims", reason=f"its dims {sizes} make more elements than 64 bits can count")
    return None


def dtype_fault(dtype: int) -> Problem | None:
    """Return the problem of an element type, by TensorProto.DataType; None if onnx knows it."""
    if dtype == TensorProto.UNDEFINED:
        return Problem(code="no-dtype", reason="its element type is not defined")
    if dtype not in ELEMENT_TYPES:
        return Problem(
            code="unknown-dtype",
            reason=f"its element type is {dtype}, which the installed onnx does not know",
        )
    return None


def _external_fault(tensor: TensorProto, length: int | None) -> Problem | None:
    if tensor.data_type == TensorProto.STRING:
        return Problem(
            code="string-in-raw-data",
            reason="its strings are stored as external data, and must be in string_data",
        )
    inline = [name for name in DATA_FIELDS if len(getattr(tensor, name))]
    if inline:
        return Problem(
            code="two-data-forms", reason=f"it is marked as external data and holds data in {inline[0]}"
        )
    return None if length is None else _raw_fault(tensor, length)


def _raw_fault(tensor: TensorProto, length: int) -> Problem | None:
    if tensor.data_type == TensorProto.STRING:
        return Problem(
            code="string-in-raw-data", reason="its strings are in raw_data, and must be in string_data"
        )
    needed = byte_size(tensor.dims, tensor.data_type)
    if needed is not None and needed != length:
        return Problem(
            code="data-size",
            reason=f"its dims {list(tensor.dims)} of type {_name(tensor)} need {needed} bytes, and it has {length}",
        )
    return None


def _count_fault(tensor: TensorProto, count: int) -> Problem | None:
    elements = math.prod(tensor.dims) * (2 if tensor.data_type in _COMPLEX else 1)
    # Elements of less than a byte are packed as in raw_data, each byte one int32 (onnx.proto, int32_data).
    packed = (
        byte_size(tensor.dims, tensor.data_type)
        if FIELD_OF_TYPE.get(tensor.data_type) == "int32_data"
        else None
    )
    if count == elements or (packed is not None and packed < elements and count == packed):
        return None
    return Problem(
        code="data-size",
        reason=f"its dims {list(tensor.dims)} need {count_of(elements, 'element')}, and it has {count}",
    )


def _name(tensor: TensorProto) -> str:
    return str(TensorProto.DataType.Name(tensor.data_type))
