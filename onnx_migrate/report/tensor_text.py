"""Writes tensors as short text: type, shape, and values or a digest of them. Also compares two tensors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import Any

from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import LoadError
from onnx_migrate.model.tensors import numbers
from onnx_migrate.model.weights import Weights

__all__ = ["same_tensor", "tensor_text", "type_text", "values_text"]

_VALUES = 8
"""Largest number of elements of a tensor whose values are shown."""


def type_text(dtype: int, dims: Iterable[int]) -> str:
    """Return a tensor's type, as in "float[2, 3]"."""
    return f"{TensorProto.DataType.Name(dtype).lower()}{list(dims)}"


def tensor_text(tensor: TensorProto, weights: Weights | None) -> str:
    """Return a tensor's type, shape, and its values if it is small, else a digest of the values if they are known."""
    kind = type_text(tensor.data_type, tensor.dims)
    external = tensor.data_location == TensorProto.EXTERNAL
    if math.prod(tensor.dims) <= _VALUES and tensor.data_type != TensorProto.STRING and not external:
        return f"{kind} {numpy_helper.to_array(tensor).tolist()}"
    digest = _digest(tensor, weights)
    return f"{kind} #{digest[:8]}" if digest else kind


def values_text(summary: TensorProto) -> str | None:
    """Return the values of a summary as short text, as in "[1, 0.5]"; None if it has none, or is no valid tensor."""
    if summary.data_location == TensorProto.EXTERNAL:
        return None
    try:
        array = numbers(numpy_helper.to_array(summary))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None  # the report of an invalid model shows the invalid tensor
    texts = [_element_text(value) for value in array.reshape(-1)]
    return f"[{', '.join(texts)}]" if summary.dims else texts[0]


def _element_text(value: Any) -> str:
    """Return one element as text; NumPy returns the elements of a string tensor as bytes or str."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    if value.dtype.kind in "iub":
        return str(value).lower()
    return f"{value if value.dtype.kind == 'c' else float(value):g}"


def same_tensor(one: TensorProto, other: TensorProto, weights: tuple[Weights | None, Weights | None]) -> bool:
    """Return whether two tensors hold equal values, in any field; data is read only if its position in files differs."""
    if (one.data_type, list(one.dims)) != (other.data_type, list(other.dims)):
        return False
    if _nameless(one) == _nameless(other) and TensorProto.EXTERNAL not in (
        one.data_location,
        other.data_location,
    ):
        return True
    if one.data_location == other.data_location == TensorProto.EXTERNAL:
        if weights[0] is None or weights[1] is None:
            return True
        try:
            if weights[0].payload(one) == weights[1].payload(other):
                return True
        except LoadError:
            return True  # of data that is missing in both
    return _digest(one, weights[0]) == _digest(other, weights[1])


def _digest(tensor: TensorProto, weights: Weights | None) -> str:
    """Return a digest of a tensor's values; "" where they are not known."""
    # Strings have no raw form.
    if tensor.data_type == TensorProto.STRING:
        data = b"\0".join(tensor.string_data)
    elif tensor.data_location == TensorProto.EXTERNAL:
        if weights is None:
            return ""
        try:
            data = weights.payload(tensor).read()
        except LoadError:
            return ""
    elif tensor.HasField("raw_data"):
        data = tensor.raw_data
    else:
        whole = TensorProto()
        whole.CopyFrom(tensor)
        # Raw data is one form for all typed fields, so equal tensors have equal digests.
        data = numpy_helper.from_array(numpy_helper.to_array(whole)).raw_data
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _nameless(tensor: TensorProto) -> bytes:
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.ClearField("name")
    copy.ClearField("doc_string")
    return bytes(copy.SerializeToString(deterministic=True))
