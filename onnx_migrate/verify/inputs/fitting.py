"""Checks the user's values against the inputs of a model, and brings them to the declared types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import did_you_mean
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.inputs.stored import Reading, Values
from onnx_migrate.verify.kernel.arrays import Array, is_float

__all__ = ["Fitted", "InputType", "ModelInputs", "array_of", "is_array", "named"]

_GIVE = "with NumPy, array.astype(np.{}) converts it"


@dataclass(frozen=True)
class InputType:
    """The declared type of an input: its element type (0 for an input that is no tensor), and its dims if they are known.

    An open dim is its name, "" if it has none.
    """

    name: str
    element: int
    dims: tuple[int | str, ...] | None

    @classmethod
    def of(cls, value: ValueInfoProto) -> InputType:
        """Return the declared type of an input."""
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type"):
            return cls(value.name, TensorProto.UNDEFINED, None)
        dims = tuple(dim.dim_value if dim.dim_value > 0 else dim.dim_param for dim in tensor.shape.dim)
        return cls(value.name, tensor.elem_type, dims if tensor.HasField("shape") else None)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy type of its elements."""
        strings = self.element == TensorProto.STRING
        return np.dtype(object) if strings else onnx.helper.tensor_dtype_to_np_dtype(self.element)

    def __str__(self) -> str:
        if not self.element:
            return "no tensor"
        dims = "" if self.dims is None else f"[{', '.join(str(dim or '?') for dim in self.dims)}]"
        return f"{TensorProto.DataType.Name(self.element).lower()}{dims}"

    def has_shape(self, shape: tuple[int, ...]) -> bool:
        """Return whether an array of this shape fits."""
        if self.dims is None:
            return True
        pairs = zip(self.dims, shape, strict=False)
        return len(self.dims) == len(shape) and all(
            dim == size for dim, size in pairs if isinstance(dim, int)
        )

    def fit(self, where: str, value: Any) -> Any:
        """Return a value as an array of this type, floats rounded to it. Raises UsageError if type or shape do not fit."""
        if not self.element:
            return value
        array = array_of(where, value, self.dtype)
        other = f"{where} is {array.dtype}{list(array.shape)}, expected {self}"
        if not self.has_shape(array.shape):
            raise UsageError(other, code="input-data", hint=self._shape_hint(array.shape))
        if array.dtype == self.dtype or (self.element == TensorProto.STRING and array.dtype.kind in "OUS"):
            return array
        if not (is_float(array) and is_float(np.empty(0, self.dtype))):
            raise UsageError(other, code="input-data", hint=_GIVE.format(self.dtype.name))
        return self._rounded(where, array)

    def _shape_hint(self, shape: tuple[int, ...]) -> str:
        """Return advice for a shape that is nearly right: several sets in one array, a missing batch, or another layout."""
        dims, separate = self.dims or (), "write a file for each set, or a function that yields them"
        if self.has_shape(shape[1:]):
            return f"the array holds {shape[0]} sets: {separate}"
        if shape and dims and isinstance(dims[0], int) and self.has_shape((dims[0], *shape[1:])):
            return f"the array holds {shape[0]} rows: {separate}"
        if self.has_shape((1, *shape)):
            return "the axis of the batch is missing: with NumPy, array[None] adds it"
        orders = ((0, 3, 1, 2), (0, 2, 3, 1)) if len(shape) == len("nchw") else ()
        fitting = (order for order in orders if self.has_shape(tuple(shape[axis] for axis in order)))
        return next((f"the axes are in another order: array.transpose{order}" for order in fitting), "")

    def _rounded(self, where: str, array: Array) -> Array:
        """Return floats in this type. Raises UsageError if one becomes infinite."""
        with np.errstate(over="ignore"):
            rounded = array.astype(self.dtype)
        lost = np.isfinite(array) & ~np.isfinite(rounded.astype(np.float64))
        if np.any(lost):
            largest = float(np.max(np.abs(array[lost])))
            raise UsageError(f"{where} has {largest:.6g}, which {self.dtype} cannot hold", code="input-data")
        return rounded


@dataclass(frozen=True)
class ModelInputs:
    """The inputs and outputs of a model: those that a caller must feed, all that it lists, and the names of the outputs.

    Unless `complete`, passes will change the inputs, so that values for other names fit as well.
    """

    fed: tuple[InputType, ...]
    listed: tuple[InputType, ...]
    outputs: tuple[str, ...]
    complete: bool = True

    @classmethod
    def of(cls, model: onnx.ModelProto, *, complete: bool = True) -> ModelInputs:
        """Return the inputs and outputs of a model."""
        graph = model.graph
        return cls(
            tuple(map(InputType.of, fed_inputs(graph))),
            tuple(map(InputType.of, graph.input)),
            tuple(value.name for value in graph.output),
            complete,
        )

    @property
    def names(self) -> list[str]:
        """The names of the inputs that a caller must feed, in order."""
        return [value.name for value in self.fed]

    @property
    def text(self) -> str:
        """Return the inputs with their types, for a hint."""
        return "expected inputs: " + ", ".join(f"{value.name}: {value}" for value in self.fed)

    def check_names(self, where: str, names: Iterable[str]) -> None:
        """Raise UsageError unless the names are those of inputs, and none is missing that a caller must feed."""
        names, listed = set(names), [value.name for value in self.listed]
        if not self.complete:
            return
        for missing in (name for name in self.names if name not in names):
            raise UsageError(f"{where}: no value for input {missing!r}", code="input-data", hint=self.text)
        for name in sorted(names - set(listed)):
            meant = did_you_mean(name, listed)
            hint = f"{meant} {self.text}" if meant else self.text
            raise UsageError(f"{where}: the model has no input {name!r}", code="input-data", hint=hint)

    def fit(self, where: str, values: Values) -> dict[str, Any]:
        """Return values of the declared types by name. Raises UsageError, with the expected inputs as a hint."""
        values = self.named(where, values)
        self.check_names(where, values)
        types = {value.name: value for value in self.listed}
        return {
            name: types[name].fit(f"{where}: input {name!r}", value) if name in types else value
            for name, value in values.items()
        }

    def named(self, where: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by name. Positions count the inputs after all passes, so they stay if there are fewer of these."""
        if not self.complete and len(values) != len(self.fed):
            return dict(values)
        return named(values, self.names, f"{where}: input")


@dataclass(frozen=True)
class Fitted:
    """Reads values and checks them against the inputs of a model."""

    read: Reading
    inputs: ModelInputs
    where: str

    def __call__(self) -> Values:
        """Return the values by name."""
        return self.inputs.fit(self.where, self.read())


def named(values: Mapping[str, Any], names: list[str], where: str) -> dict[str, Any]:
    """Return values by name, those with a position as a name ("#0") by that of the input or output there. Raises UsageError."""
    by_name = {}
    for key, value in values.items():
        if key.startswith("#") and key[1:].isdecimal() and key not in names:
            position = int(key[1:])
            if position >= len(names):
                raise UsageError(
                    f"{where} {position} does not exist; the model has {len(names)}", code="input-data"
                )
            key = names[position]
        by_name[key] = value
    return by_name


def is_array(value: Any) -> bool:
    """Return whether NumPy or ONNX reads a value as an array."""
    return isinstance(value, TensorProto) or hasattr(value, "__array__")


def array_of(where: str, value: Any, dtype: Any = None) -> Any:
    """Return a value as an array of `dtype`; without a `dtype`, return a list unchanged. Raises UsageError."""
    if isinstance(value, np.ndarray) or (dtype is None and isinstance(value, (list, tuple, int, float, str))):
        return value
    try:
        if hasattr(value, "detach"):  # a tensor of PyTorch, which may need a gradient, or be on a GPU
            value = value.detach().cpu()
        if isinstance(value, TensorProto):
            return numpy_helper.to_array(value)
        # NumPy would cut the fractions of a list off.
        fractions = dtype is not None and dtype.kind in "iub" and np.asarray(value).dtype.kind in "fc"
        return np.asarray(value, None if fractions else dtype)
    except Exception as error:  # numpy's, onnx's, and those of what the value is
        raise UsageError(
            f"{where} is a {type(value).__name__}, which NumPy cannot read as an array: {error}",
            code="input-data",
            hint="give a NumPy array",
        ) from error
