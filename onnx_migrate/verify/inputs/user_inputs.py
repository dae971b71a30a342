"""Inputs and recorded outputs that the user supplies, and whether they fit the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.safe_open.paths import listed
from onnx_migrate.standard.retyping import FLOATS
from onnx_migrate.verify.inputs.input_files import read_npz, read_tensor, require_readable
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["Feed", "Feeds", "InputData", "check_feed", "data_files"]

InputData = str | os.PathLike[str] | Mapping[str, Any] | Sequence[Mapping[str, Any]] | Sequence[Any]
"""The forms in which users give inputs.

These are an .npz by input name, a folder of input_*.pb, arrays by input name, or several such sets. Arrays in the order of the
inputs, like the arguments of torch.onnx.export, work too. An array is anything that NumPy reads as one: a list, a number, a
TensorProto, a tensor of PyTorch.
"""


@dataclass(frozen=True)
class Feed:
    """One set of inputs by name, and the outputs recorded with them, by name, if any.

    `fixed` marks, for each input, the elements whose exact numbers matter, so that no run moves them to measure rounding. A
    `corner` feed runs beside ordinary random inputs; time limits the number of corner feeds.
    """

    name: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Array] = field(default_factory=dict)
    corner: bool = False


@dataclass(frozen=True)
class Feeds:
    """The user's inputs. Those without a name (`input_0.pb`) have their position as a name: "#0"."""

    sets: tuple[Feed, ...]

    @classmethod
    def of(cls, data: InputData) -> Feeds:
        """Return inputs from any source. Raises UsageError for a path that cannot be read, and for data that are no array."""
        if isinstance(data, (str, os.PathLike)):
            return cls.read(Path(data))
        if isinstance(data, Mapping):
            return cls((_arrays(data, "input_data"),))
        sets: list[Any] = [data] if _is_array(data) else list(data) if isinstance(data, Sequence) else []
        if sets and all(map(_is_array, sets)):
            return cls((_arrays({f"#{at}": item for at, item in enumerate(sets)}, "input_data"),))
        if not sets or not all(isinstance(item, Mapping) for item in sets):
            raise UsageError(
                f"input_data is of the type {type(data).__name__}{'' if sets else ' and has no inputs'}",
                code="input-data",
                hint='use arrays by input name such as {"x": array}, a list of such dicts, arrays in the order of the inputs '
                "such as (array,), or a path",
            )
        return cls(tuple(_arrays(item, f"input_data {at}") for at, item in enumerate(sets)))

    @classmethod
    def read(cls, path: Path) -> Feeds:
        """Read an .npz file (arrays by input name) or a folder of TensorProto .pb files, like those of onnx's tests.

        A folder contains `input_0.pb`, … and optionally `output_0.pb`, …, or folders named `test_data_set_*` that do. Raises
        UsageError for a path that cannot be read as either.
        """
        if path.is_dir():
            require_readable(data_files(path))
            return cls(tuple(_read_folder(folder) for folder in _folders(path)))
        return cls((Feed(path.name, read_npz(path)),))

    def shapes(self, names: list[str]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the first set of inputs, of a model whose inputs have these names."""
        first = self.sets[0]
        return {name: np.shape(value) for name, value in _named(first.inputs, names, first.name).items()}

    def cover(self, model: onnx.ModelProto) -> bool:
        """Return whether each set of inputs has as many as a model reads by position, or those that it reads by name."""
        names = [value.name for value in fed_inputs(model.graph)]
        positions = {f"#{place}" for place in range(len(names))}
        return all(set(feed.inputs) >= set(names) or set(feed.inputs) == positions for feed in self.sets)

    def of_part(
        self, whole: onnx.ModelProto, part: onnx.ModelProto, fixed: Mapping[str, Any] | None = None
    ) -> Feeds:
        """Return the inputs of a part of a model: those of the whole's inputs that the part reads; all inputs if it reads others.

        Raises UsageError if they have another value for an input that the part has as a constant, one of `fixed`.
        """
        names, read = ([value.name for value in fed_inputs(model.graph)] for model in (whole, part))
        if not self.cover(whole) or not set(read) <= set(names):
            return self
        outputs = [value.name for value in whole.graph.output]
        kept = {value.name for value in part.graph.output}
        found = []
        for feed in self.sets:
            given, expected = _named(feed.inputs, names, feed.name), _named(feed.expected, outputs, feed.name)
            for name, value in (fixed or {}).items():
                if not np.array_equal(given[name], value):
                    raise UsageError(
                        f"{feed.name}: input {name!r} has another value than the one that it is fixed to",
                        code="input-data",
                        hint="leave the input out of the data, or fix it to the value that these have",
                    )
            recorded = {name: value for name, value in expected.items() if name in kept}
            found.append(Feed(feed.name, {name: given[name] for name in read}, recorded))
        return Feeds(tuple(found))

    def in_types_of(self, model: onnx.ModelProto) -> Feeds:
        """Return the inputs in the types that a model declares, which has another precision or int32; no expected outputs."""
        inputs = fed_inputs(model.graph)
        kinds = {value.name: value.type.tensor_type.elem_type for value in inputs}

        def cast(name: str, value: Any) -> Any:
            taken = "f" if kinds.get(name) in FLOATS else "i" if kinds.get(name) == TensorProto.INT32 else ""
            if not isinstance(value, np.ndarray) or value.dtype.kind not in taken or not taken:
                return value
            return value.astype(onnx.helper.tensor_dtype_to_np_dtype(kinds[name]))

        sets = [
            (feed, _named(feed.inputs, [value.name for value in inputs], feed.name)) for feed in self.sets
        ]
        return Feeds(
            tuple(
                Feed(feed.name, {key: cast(key, item) for key, item in given.items()}) for feed, given in sets
            )
        )


def data_files(path: Path) -> list[Path]:
    """Return the files that `Feeds.read` reads of a path."""
    if not path.is_dir():
        return [path]
    return sorted(file for folder in _folders(path) for file in listed(folder, "*put_*.pb"))


def _folders(path: Path) -> list[Path]:
    return listed(path, "test_data_set_*") or [path]


def _arrays(values: Mapping[str, Any], name: str) -> Feed:
    """Return one set of inputs; numbers and lists stay until their type is known. Raises UsageError for other data."""
    return Feed(name, {str(key): _array(f"{name}: input {key!r}", value) for key, value in values.items()})


def _is_array(value: Any) -> bool:
    return isinstance(value, TensorProto) or hasattr(value, "__array__")


def _array(where: str, value: Any, dtype: Any = None) -> Any:
    """Return a value as an array of `dtype`; without a `dtype`, return a list unchanged. Raises UsageError."""
    if isinstance(value, np.ndarray) or (dtype is None and isinstance(value, (list, tuple, int, float, str))):
        return value
    try:
        if hasattr(value, "detach"):  # a tensor of PyTorch, which may need a gradient, or be on a GPU
            value = value.detach().cpu()
        return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value, dtype)
    except Exception as error:  # numpy's, onnx's, and those of what the value is
        raise UsageError(
            f"{where} is a {type(value).__name__}, which NumPy cannot read as an array: {error}",
            code="input-data",
            hint="give a NumPy array",
        ) from error


def check_feed(model: onnx.ModelProto, feed: Feed) -> Feed:
    """Return the feed with names in place of positions. Raises UsageError, with the expected inputs as a hint."""
    inputs = fed_inputs(model.graph)
    given = _named(feed.inputs, [value.name for value in inputs], f"{feed.name}: input")
    expected = _named(feed.expected, [value.name for value in model.graph.output], f"{feed.name}: output")
    declared = {value.name: value for value in model.graph.input}
    for missing in (value.name for value in inputs if value.name not in given):
        raise UsageError(
            f"{feed.name}: no value for input {missing!r}", code="input-data", hint=_listed(inputs)
        )
    for name, value in given.items():
        if name not in declared:
            raise UsageError(
                f"{feed.name}: the model has no input {name!r}", code="input-data", hint=_listed(inputs)
            )
        if declared[name].type.HasField("tensor_type"):
            given[name] = _fitting(f"{feed.name}: input {name!r}", declared[name], value)
    return Feed(feed.name, given, expected)


def _named(values: Mapping[str, Any], names: list[str], what: str) -> dict[str, Any]:
    named = {}
    for key, value in values.items():
        if key.startswith("#"):
            position = int(key[1:])
            if position >= len(names):
                raise UsageError(
                    f"{what} {position} does not exist; the model has {len(names)}", code="input-data"
                )
            key = names[position]
        named[key] = value
    return named


def _fitting(where: str, declared: ValueInfoProto, value: Any) -> Any:
    """Return a value as an array of the declared type and shape. Raises UsageError if it does not fit these."""
    tensor = declared.type.tensor_type
    strings = tensor.elem_type == TensorProto.STRING
    dtype = np.dtype(object) if strings else onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    array = _array(where, value, dtype)
    dims = [dim.dim_value for dim in tensor.shape.dim]
    fits = not tensor.HasField("shape") or (
        len(dims) == array.ndim
        and all(dim <= 0 or dim == length for dim, length in zip(dims, array.shape, strict=True))
    )
    if not fits or not (array.dtype.kind in "OUS" if strings else array.dtype == dtype):
        found = f"{array.dtype}{list(array.shape)}"
        raise UsageError(f"{where} is {found}, expected {_declared(declared)}", code="input-data")
    return array


def _declared(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    element = TensorProto.DataType.Name(tensor.elem_type).lower()
    dims = [d.dim_value if d.dim_value > 0 else d.dim_param or "?" for d in tensor.shape.dim]
    return f"{element}[{', '.join(map(str, dims))}]"


def _listed(inputs: list[ValueInfoProto]) -> str:
    return "expected inputs: " + ", ".join(f"{value.name}: {_declared(value)}" for value in inputs)


def _read_folder(folder: Path) -> Feed:
    def numbered(stem: str) -> Iterator[tuple[str, Any]]:
        for path in sorted(listed(folder, f"{stem}_*.pb"), key=lambda p: (len(p.name), p.name)):
            number = path.stem.rpartition("_")[2]
            if number.isascii() and number.isdecimal() and len(number) < 10:
                yield f"#{number}", read_tensor(path)

    inputs = dict(numbered("input"))
    if not inputs:
        raise UsageError(
            f"{folder}: contains no input_0.pb",
            code="input-data",
            hint="an .npz file with arrays by input name is accepted too",
        )
    return Feed(folder.name, inputs, dict(numbered("output")))
