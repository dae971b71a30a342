"""Reads the requests of users to fix the values of inputs, and checks them against the inputs of a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx_migrate.errors import UsageError
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.model.interface import Interface, Port, port_named
from onnx_migrate.safe_open import open_regular

__all__ = ["FixedValues", "arrays_of"]

FixedValues = Mapping[str, Any] | str | Iterable[str]
"""A value for an input: {"sr": 16000, "use_cache": False, "mask": array}, "sr=16000", "mask=mask.npy", or several texts."""


def arrays_of(request: FixedValues, proto: onnx.ModelProto) -> dict[str, np.ndarray[Any, Any]]:
    """Return an array of the declared type and shape for each input that a request names.

    Raises UsageError for a name that is no input. It also does so, with code `unfit-value`, for another shape and for a
    value that the type does not have.
    """
    declared = {value.name: value for value in fed_inputs(proto.graph)}
    ports = {port.name: port for port in Interface.of(proto).inputs}
    symbols = {dim for port in ports.values() for dim in port.shape or () if isinstance(dim, str)}
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, requested in _given(request):
        if name in symbols and name not in ports:
            raise UsageError(
                f"{name!r} is a dim, and no input with a value",
                code="no-such-input",
                hint=f"--fix-shape {name}=SIZE sets a dim; the inputs are {', '.join(ports)}",
            )
        port = port_named(name, ports, inputs=True)
        if name in arrays:
            raise UsageError(f"{name!r} was given two values", code="unfit-value", hint="give one")
        arrays[name] = _array(port, declared[name], requested)
    return arrays


def _given(request: FixedValues) -> Iterator[tuple[str, Any]]:
    if isinstance(request, Mapping):
        yield from request.items()
        return
    for text in [request] if isinstance(request, str) else request:
        # The value may contain an equals sign.
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise UsageError(
                f"{text!r} is not an input and its value",
                hint="write it like sr=16000, use_cache=false, sizes=[1,2] or mask=mask.npy",
            )
        yield name.strip(), value.strip()


def _array(port: Port, declared: onnx.ValueInfoProto, given: Any) -> np.ndarray[Any, Any]:
    if declared.type.WhichOneof("value") != "tensor_type":
        raise UsageError(f"{port} is not a tensor, and has no value to fix", code="unfit-value")
    element = declared.type.tensor_type.elem_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    array = _read(port, given, strings=element == onnx.TensorProto.STRING)
    fixed_array = array if array.dtype == dtype else _converted(array, dtype)
    if fixed_array is None:
        text = f"{array.dtype}{list(array.shape)}" if array.size > 1 else given
        raise UsageError(f"{port} cannot have the value {text}", code="unfit-value", hint=_FORMS)
    # Only a fixed length limits the shape of the value.
    sizes = [dim if isinstance(dim, int) and dim > 0 else None for dim in port.shape or ()]
    # A number alone fills an input whose shape is fixed.
    if fixed_array.ndim == 0 and sizes and None not in sizes:
        fixed_array = np.full([size for size in sizes if size], fixed_array)
    fits = port.shape is None or (
        len(sizes) == fixed_array.ndim
        and all(size in (None, n) for size, n in zip(sizes, fixed_array.shape, strict=True))
    )
    if not fits:
        raise UsageError(
            f"{port} cannot have a value of the shape {list(fixed_array.shape)}",
            code="unfit-value",
            hint=_FORMS,
        )
    return fixed_array


def _read(port: Port, given: Any, *, strings: bool) -> np.ndarray[Any, Any]:
    """Return the user's value as an array of the type that the value has."""
    try:
        if isinstance(given, str) and given.endswith(".npy"):
            with open(open_regular(Path(given)), "rb") as file:
                return np.asarray(np.load(file, allow_pickle=False))
        # A text for an input of strings is the value itself.
        if isinstance(given, str) and not strings:
            given = json.loads(given)
        return np.asarray(given, dtype=object if strings else None)
    except (OSError, ValueError, MemoryError) as error:
        raise UsageError(
            f"{port} cannot have the value {given!r}: {error}", code="unfit-value", hint=_FORMS
        ) from error


def _converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """Return an array in another type; None if that does not have these numbers, but for the rounding of floats."""
    if array.dtype.kind not in "biuf" or (array.dtype.kind == "b") != (dtype.kind == "b"):
        return None
    with np.errstate(all="ignore"):
        converted = array.astype(dtype)
        # Integers must be exact.
        if dtype.kind in "biu":
            # Integers must survive the way back; floats may be rounded, but not become infinite.
            same = converted.astype(array.dtype) == array
        else:
            same = np.isfinite(converted.astype(np.float64)) == np.isfinite(array)
    return converted if np.all(same) else None


_FORMS = "give a number, true or false, a list as in [1,2], or an array as FILE.npy, of the type and shape of the input"
