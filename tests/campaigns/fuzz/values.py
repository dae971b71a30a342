"""What random models are made of: element types, shapes, names, arrays and tensors, chosen by a seeded generator."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["NAMES", "ODD_NAMES", "TYPE_NAMES", "Value", "array", "shape", "tensor", "type_name"]

TYPE_NAMES = {
    f"tensor({name.lower()})": number for name, number in TensorProto.DataType.items() if name != "UNDEFINED"
}
"""Element types by the names that schemas call their tensors by."""

NAMES = ("x", "y", "w", "a", "b", "out", "conv1.weight", "/layer/Add_output_0", "123", "T")
ODD_NAMES = (
    "", " ", "x y", "né", "名", "a\nb", "a\x1b[31mb", "a\tb", "\u202ex", "..", "/", "a:0", "%1", "x" * 300, "<b>", "'", '"',
    "\\", "{{7*7}}", "a\x00b", "ai.onnx", "N", "-1", "main\r",
)  # fmt: skip
"""Names that a terminal, a page or a parser could take for something else."""

_SIZES = (1, 1, 2, 2, 3, 4, 5, 8)


@dataclass(frozen=True)
class Value:
    """A value that nodes can read: its type, its shape (None if not known), and its numbers if it is constant."""

    name: str
    type: onnx.TypeProto
    shape: tuple[int, ...] | None
    constant: Any = None

    @property
    def kind(self) -> str:
        """The type as schemas write it."""
        return type_name(self.type)


def type_name(kind: onnx.TypeProto) -> str:
    """Return a type as schemas write it, as in seq(tensor(float)); "" for one that is not set."""
    which = kind.WhichOneof("value")
    if which == "tensor_type":
        return f"tensor({_name(kind.tensor_type.elem_type)})"
    if which == "sparse_tensor_type":
        return f"sparse_tensor({_name(kind.sparse_tensor_type.elem_type)})"
    if which == "sequence_type":
        return f"seq({type_name(kind.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({type_name(kind.optional_type.elem_type)})"
    if which == "map_type":
        return f"map({_name(kind.map_type.key_type)},{type_name(kind.map_type.value_type)})"
    return ""


def _name(number: int) -> str:
    return (
        TensorProto.DataType.Name(number).lower() if number in TensorProto.DataType.values() else str(number)
    )


def shape(rng: Random, rank: int | None = None) -> tuple[int, ...]:
    """Return a small shape, of rank 4 as often as not."""
    rank = rng.choice((0, 1, 2, 2, 3, 4, 4, 4, 5)) if rank is None else rank
    found = tuple(rng.choice(_SIZES) for _ in range(rank))
    if rank and rng.random() < 0.03:
        return (*found[:-1], 0)
    return found


def array(rng: Random, number: int, dims: tuple[int, ...]) -> Any:
    """Return an array of an element type: small numbers, with the odd special value among floats."""
    dtype = helper.tensor_dtype_to_np_dtype(number)
    count = int(np.prod(dims, dtype=np.int64))
    if number == TensorProto.STRING:
        return np.array(
            [rng.choice(("a", "b", "", "word", "é", "1.5")) for _ in range(count)], object
        ).reshape(dims)
    if number == TensorProto.BOOL:
        return np.array([rng.random() < 0.5 for _ in range(count)], bool).reshape(dims)
    if "int" in np.dtype(dtype).name:  # the narrow ones have a kind of their own
        name = np.dtype(dtype).name
        low, high = (0 if name.startswith("u") else -2, 1 if name.endswith("int2") else 7)
        return np.array([rng.randint(low, high) for _ in range(count)], np.int64).astype(dtype).reshape(dims)
    numbers = np.array([rng.gauss(0, 1) for _ in range(count)])
    if count and rng.random() < 0.03:
        numbers[rng.randrange(count)] = rng.choice((np.inf, -np.inf, np.nan, -0.0, 1e30))
    with np.errstate(all="ignore"):
        return numbers.astype(dtype).reshape(dims)


def tensor(rng: Random, name: str, value: Any, number: int) -> TensorProto:
    """Return a tensor of an array, its data in raw_data or in the field of its type."""
    if number == TensorProto.STRING or rng.random() < 0.5:
        return numpy_helper.from_array(value, name)
    try:
        return helper.make_tensor(name, number, value.shape, value.flatten().tolist())
    except (TypeError, ValueError, OverflowError):
        return numpy_helper.from_array(value, name)
