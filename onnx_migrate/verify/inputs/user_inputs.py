"""Inputs and recorded outputs that the user supplies, and whether they fit the model."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, ValueInfoProto, numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.model.graphs import fed_inputs

__all__ = ["Feed", "Feeds", "check_feed"]


@dataclass(frozen=True)
class Feed:
    """One set of inputs by name, and the outputs recorded with them, by name, if any."""

    name: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Feeds:
    """The user's inputs. Those without a name (`input_0.pb`) have their position as a name: "#0"."""

    sets: tuple[Feed, ...]

    @classmethod
    def read(cls, path: Path) -> Feeds:
        """Read an .npz file (arrays by input name) or a folder of TensorProto .pb files, as in onnx's tests.

        A folder contains `input_0.pb`, … and optionally `output_0.pb`, …, or folders named `test_data_set_*` that do.
        Raises UsageError for a path that cannot be read as either.
        """
        if path.is_dir():
            folders = sorted(path.glob("test_data_set_*")) or [path]
            return cls(tuple(_read_folder(folder) for folder in folders))
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls((Feed(path.name, {name: archive[name] for name in archive.files}),))
        except (OSError, ValueError, zipfile.BadZipFile, AttributeError, TypeError) as error:
            hint = "accepted are an .npz file with arrays by input name, and a folder of input_0.pb, …"
            raise UsageError(
                f"{path}: cannot be read as input data: {error}", code="input-data", hint=hint
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
                f"{feed.name}: no input is named {name!r}", code="input-data", hint=_listed(inputs)
            )
        _check_value(feed.name, declared[name], value)
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


def _check_value(where: str, declared: ValueInfoProto, value: Any) -> None:
    tensor = declared.type.tensor_type
    if declared.type.WhichOneof("value") != "tensor_type" or not isinstance(value, np.ndarray):
        return
    fits = not tensor.HasField("shape") or (
        len(tensor.shape.dim) == value.ndim
        and all(
            d.dim_value <= 0 or d.dim_value == n for d, n in zip(tensor.shape.dim, value.shape, strict=True)
        )
    )
    strings = tensor.elem_type == TensorProto.STRING
    right = (
        value.dtype.kind in "OUS"
        if strings
        else value.dtype == onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    )
    if not fits or not right:
        raise UsageError(
            f"{where}: input {declared.name!r} is {value.dtype}{list(value.shape)},"
            f" expected {_declared(declared)}",
            code="input-data",
        )


def _declared(value: ValueInfoProto) -> str:
    tensor = value.type.tensor_type
    element = TensorProto.DataType.Name(tensor.elem_type).lower()
    dims = [d.dim_value if d.dim_value > 0 else d.dim_param or "?" for d in tensor.shape.dim]
    return f"{element}[{', '.join(map(str, dims))}]"


def _listed(inputs: list[ValueInfoProto]) -> str:
    return "expected inputs: " + ", ".join(f"{value.name}: {_declared(value)}" for value in inputs)


def _read_folder(folder: Path) -> Feed:
    def numbered(stem: str) -> Iterator[tuple[str, Any]]:
        for path in sorted(folder.glob(f"{stem}_*.pb"), key=lambda p: (len(p.name), p.name)):
            tensor = TensorProto()
            try:
                tensor.ParseFromString(path.read_bytes())
                array = numpy_helper.to_array(tensor)
            except Exception as error:  # protobuf's, numpy's and onnx's own kinds
                raise UsageError(f"{path}: not a TensorProto: {error}", code="input-data") from error
            yield "#" + path.stem.rpartition("_")[2], array

    inputs = dict(numbered("input"))
    if not inputs:
        raise UsageError(
            f"{folder}: contains no input_0.pb",
            code="input-data",
            hint="an .npz file with arrays by input name is accepted too",
        )
    return Feed(folder.name, inputs, dict(numbered("output")))
