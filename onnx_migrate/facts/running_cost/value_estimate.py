"""An estimate of a value before a run: its sizes, its element type, and the numbers of a small one."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from onnx_migrate.model.payloads import byte_size

__all__ = ["LARGEST_DIM", "Array", "Dims", "ValueEstimate"]

Array = np.ndarray[Any, Any]
Dims = tuple[int, ...]

LARGEST_DIM = 1 << 80
"""The most elements of an axis that the estimate counts. No machine holds so many, and their powers stay computable."""

_TEXT_BYTES = 8
"""The least bytes of a text in memory: its pointer."""


@dataclass(frozen=True)
class ValueEstimate:
    """A value. `dims` are its sizes, with 1 for each symbol of the model's inputs; None if they are not known.

    `constant` says that no input of the model changes it. `text_bytes` is the length of the longest known text. For a
    sequence, `items` is the number of its tensors, and `item_bytes` is the size of all of them together.
    """

    dims: Dims | None = None
    dtype: int = 0
    values: Array | None = field(default=None, compare=False)
    constant: bool = False
    text_bytes: int = 0
    items: int | None = None
    item_bytes: int = 0
    numbers: tuple[object, ...] = ()
    """The values once more, in a form that makes two estimates comparable."""

    @classmethod
    def of_array(cls, array: Array, *, constant: bool) -> ValueEstimate:
        """Return the estimate of a small array with known numbers."""
        texts = array.dtype.kind in "OSU"
        dtype = TensorProto.STRING if texts else int(helper.np_dtype_to_tensor_dtype(array.dtype))
        longest = max((len(text) for text in array.reshape(-1).tolist()), default=0) if texts else 0
        return cls(
            tuple(array.shape),
            dtype,
            None if texts else array,
            constant,
            longest,
            numbers=() if texts else tuple(array.reshape(-1).tolist()),
        )

    @property
    def elements(self) -> int:
        """The number of its elements; 0 if that is not known."""
        return prod(self.dims) if self.dims is not None else 0

    @property
    def bytes(self) -> int:
        """The least bytes of the value in memory; 0 if that is not known."""
        if self.items is not None:
            return self.item_bytes
        if self.dims is None:
            return 0
        if self.dtype == TensorProto.STRING:
            return self.elements * max(_TEXT_BYTES, self.text_bytes)
        return byte_size(self.dims, self.dtype) or self.elements
