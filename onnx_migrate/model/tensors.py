"""TensorProto messages: finding all of a model, and their elements as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.model.tensor_fields import ATTRIBUTE, MODEL, TENSOR, MessageType

__all__ = ["numbers", "tensors"]

_whole = itemgetter(slice(None))

_WITHOUT_TENSORS = frozenset(
    getattr(AttributeProto, name) for name in ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS")
)


def tensors(proto: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of a model, wherever onnx.proto has a field for one.

    These are initializers, values and indices of sparse ones, and attributes, in all graphs, sub-graphs, functions and
    training graphs.
    """
    all_tensors: list[TensorProto] = []
    _collect(proto, MODEL, all_tensors)
    return iter(all_tensors)


def _collect(message: Any, message_type: MessageType, found: list[TensorProto]) -> None:
    for field in message_type.tensor_fields.values():
        if field.repeated:
            inner = getattr(message, field.name)
        elif message.HasField(field.name):
            inner = (getattr(message, field.name),)
        else:
            continue
        kind = field.message_type
        if len(kind.tensor_fields) == 1:  # the attributes of all nodes are one sequence: there are many nodes
            (only,) = kind.tensor_fields.values()
            if only.repeated:
                lists = map(_whole, map(attrgetter(only.name), inner))
                inner, kind = chain.from_iterable(lists), only.message_type
        if kind is TENSOR:
            found.extend(inner)
            continue
        for inner_message in inner:
            # Attributes are known by their type: of most there is nothing to search. One without a type, as in IR version 1, is.
            stated = inner_message.type if kind is ATTRIBUTE else None
            if stated == AttributeProto.TENSOR:
                found.append(inner_message.t)
            elif stated not in _WITHOUT_TENSORS:
                _collect(inner_message, kind, found)


def numbers(given: Any) -> np.ndarray[Any, Any]:
    """Return the result of `onnx.numpy_helper.to_array` as numbers.

    For types that NumPy lacks, onnx before 1.19 returns the bits, as integers whose type has a mark such as
    ("bfloat16",). This function converts them to floats.
    """
    array: np.ndarray[Any, Any] = np.asarray(given)
    marks = array.dtype.names
    if marks == ("bfloat16",):
        return (array.astype(np.uint32) << 16).view(np.float32)
    if marks == ("float4e2m1",):
        sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
        return np.asarray(np.where(array & 8, -sizes[array & 7], sizes[array & 7]))
    if marks and marks[0].startswith(("e4m3", "e5m2")):
        convert = getattr(onnx.numpy_helper, f"float8{marks[0][:4]}_to_float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of onnx 1.18, which has no other way
            return np.asarray(
                convert(array.astype(np.uint8), fn="fn" in marks[0], uz=marks[0].endswith("uz"))
            )
    return array
