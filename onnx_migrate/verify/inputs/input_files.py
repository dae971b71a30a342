"""Reads the user's files of inputs, and checks the sizes in their headers before it allocates memory.

Source of the format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.process import Limits
from onnx_migrate.safe_open import open_regular, read_at_most

__all__ = ["byte_limit", "npz_names", "read_npy", "read_npz", "read_tensor", "reason_of", "require_readable"]

_ZIP = b"PK"

_TENSOR_FILE = 2**31 - 1
"""The most bytes of a message that protobuf reads."""


def read_npz(path: Path) -> Mapping[str, Any]:
    """Return the arrays of an .npz by name. Raises UsageError."""
    with _reading(path), _archive(path) as file, np.load(file, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays in an .npz, whose headers are checked. Raises UsageError."""
    with _reading(path), _archive(path) as file, np.load(file, allow_pickle=False) as arrays:
        return list(arrays.files)


@contextmanager
def _archive(path: Path) -> Iterator[IO[bytes]]:
    """Provide an .npz file whose headers were checked. Raises ValueError, and the errors of zipfile."""
    with open(open_regular(path), "rb") as file:
        # NumPy would also read another format here, whose header nobody has checked.
        if not file.read(len(_ZIP)).startswith(_ZIP):
            raise ValueError("it is no .npz file")
        with zipfile.ZipFile(file) as archive:
            _check_members(archive)
        file.seek(0)
        yield file


def read_npy(path: Path) -> Any:
    """Return the array of an .npy. Raises UsageError."""
    with _reading(path), open(open_regular(path), "rb") as file:
        size = path.stat().st_size
        if size > byte_limit():
            raise ValueError(f"it takes {size:,} bytes, and {byte_limit():,} are read at most")
        _check_header(file, path.stem, size)
        file.seek(0)
        return np.load(file, allow_pickle=False)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert any error of the block to UsageError for a file of arrays."""
    try:
        yield
    except UsageError:
        raise
    except MemoryError as error:
        raise UsageError(f"{path}: there is too little memory to read it", code="input-data") from error
    except Exception as error:  # zipfile's and NumPy's own kinds, by what is wrong
        raise UsageError(
            f"{path}: cannot be read as input data: {reason_of(error)}",
            code="input-data",
            hint="write arrays with np.save('x.npy', array), or several with np.savez('data.npz', x=array)",
        ) from error


def reason_of(error: Exception) -> str:
    """Return the reason of an error of reading a file, without its number and path."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__


def _check_members(archive: zipfile.ZipFile) -> None:
    """Raise ValueError if a member is not an array with the size in its header, or if all are too large."""
    limit = byte_limit()
    total = sum(member.file_size for member in archive.infolist())
    if total > limit:
        raise ValueError(f"its arrays take {total:,} bytes, and {limit:,} are read at most")
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            with archive.open(member) as file:
                _check_header(file, member.filename.removesuffix(".npy"), member.file_size)


def _check_header(file: IO[bytes], name: str, size: int) -> None:
    """Raise ValueError if the header of an array does not fit the bytes that follow it, in a file of `size` bytes."""
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
    except Exception as error:  # NumPy raises many kinds of errors on a wrong header
        raise ValueError(f"{name!r} has no header of an array as NumPy writes it") from error
    if dtype.hasobject:
        raise ValueError(f"{name!r} holds Python objects, which only pickle reads, and that may run code")
    if any(not isinstance(dim, int) or dim < 0 for dim in shape):
        raise ValueError(f"{name!r} has the dims {list(shape)}")
    claimed, there = prod(shape) * dtype.itemsize, size - file.tell()
    if claimed != there:
        raise ValueError(f"the header of {name!r} claims {claimed:,} bytes, and {max(there, 0):,} follow it")


def require_readable(paths: Iterable[Path]) -> None:
    """Raise UsageError if files are larger all together than inputs may be."""
    total = sum(path.stat().st_size for path in paths)
    if total > byte_limit():
        raise UsageError(
            f"the inputs take {total:,} bytes, and {byte_limit():,} are read at most", code="input-data"
        )


def read_tensor(path: Path) -> Any:
    """Return the array in a file that holds a TensorProto. Raises UsageError."""
    tensor = TensorProto()
    try:
        tensor.ParseFromString(read_at_most(path, min(_TENSOR_FILE, byte_limit())))
        if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
            raise ValueError("its data is in another file, which is not read")
        _check_dims(tensor)
        return numpy_helper.to_array(tensor)
    except DecodeError as error:
        raise UsageError(f"{path}: not a TensorProto", code="input-data") from error
    except Exception as error:  # NumPy's and onnx's own kinds
        raise UsageError(f"{path}: not a TensorProto: {reason_of(error)}", code="input-data") from error


def _check_dims(tensor: TensorProto) -> None:
    """Raise ValueError if dims and type need another amount of data than the tensor has: onnx would allocate memory for them."""
    if any(dim < 0 for dim in tensor.dims):
        raise ValueError(f"it has the dims {list(tensor.dims)}")
    count = prod(tensor.dims)
    there = sum(len(getattr(tensor, name)) for name in DATA_FIELDS)
    size = byte_size(tensor.dims, tensor.data_type)
    # Typed fields may hold several small numbers in one entry, for example eight in a byte, so only a lower
    # bound is sure.
    least = size if tensor.HasField("raw_data") and size is not None else -(-count // 8)
    if least > there:
        raise ValueError(
            f"its dims {list(tensor.dims)} need more data than the {there:,} bytes or numbers in it"
        )


def byte_limit() -> int:
    """Return the most bytes of inputs that are read: a quarter of the memory that a child process may use."""
    return (Limits().memory or 1 << 34) // 4
