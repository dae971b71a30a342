"""Converts every source of a model (objects of other libraries, files, pipes) to a path, a buffer or a ModelProto."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, Protocol

import onnx

from onnx_migrate.errors import LoadError, UsageError
from onnx_migrate.files.kinds import kind_of, kinds
from onnx_migrate.files.reading.model_stream import read_model
from onnx_migrate.safe_open import own_pipe

__all__ = ["Content", "GivenModel", "IrModel", "Source", "content_of"]


class Readable(Protocol):
    """An open binary file, or any object that can be read like one."""

    def read(self) -> bytes:
        """Return the remaining bytes."""


class ExportedProgram(Protocol):
    """The result of torch.onnx.export(dynamo=True)."""

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model."""


class IrModel(Protocol):
    """An onnx_ir.Model."""

    @property
    def ir_version(self) -> int:
        """The IR version."""

    @property
    def graph(self) -> Any:
        """The graph."""


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    GivenModel = TypeVar("GivenModel", bound=IrModel, default=onnx.ModelProto)
else:
    from typing import TypeVar

    GivenModel = TypeVar("GivenModel", bound=IrModel)
"""The type of the caller's model and of the result: a ModelProto, also for a path or bytes, or an onnx_ir.Model."""

Content = str | os.PathLike[str] | bytes | bytearray | memoryview | Readable | ExportedProgram
"""A source that is not a model object: a ModelProto is read from it."""

Source = Content | onnx.ModelProto | IrModel
"""The sources of a model.

- a path
- a URL
- its serialised bytes
- a ModelProto
- a file opened in binary mode
- the result of torch.onnx.export(dynamo=True)
- an onnx_ir.Model
- an onnx_graphsurgeon.Graph, which has no type annotations
"""


def content_of(source: Any) -> tuple[Any, str]:
    """Return a source as a path, a buffer, a ModelProto or an object of another kind (`kinds`), and its name in messages.

    Raises UsageError and LoadError.
    """
    if isinstance(source, onnx.ModelProto):
        return source, "<ModelProto>"
    if isinstance(source, (bytes, bytearray, memoryview)):
        return source, "<bytes>"
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        pipe = own_pipe(name)
        if pipe is not None:
            return _piped(pipe, name), name
        return source, name
    kind = type(source)
    if kind_of(source):
        return source, f"<{kind.__name__}>"
    if isinstance(source, io.BytesIO):
        return source.getvalue(), "<bytes>"  # all of it, as an exporter leaves the position at the end
    if hasattr(source, "read"):
        return _bytes_of(source), "<file>"
    *titles, last = (other.title for other in kinds())
    raise UsageError(
        f"the source is of the type {kind.__module__}.{kind.__name__}, which is not a model",
        hint="use a path, a URL, bytes, a file opened in binary mode, an onnx.ModelProto, "
        f"{', '.join(titles)}, or {last}",
    )


def _bytes_of(file: Any) -> bytes:
    """Return the remaining bytes of a file object. Raises UsageError for text."""
    try:
        content = file.read()
    except UnicodeDecodeError:
        content = ""
    if not isinstance(content, bytes):
        raise UsageError(
            f"the file that was given reads as {type(content).__name__}, not as bytes",
            hint="open it in binary mode, as in open(path, 'rb')",
        )
    return content


def _piped(fd: int, name: str) -> bytearray:
    """Return the model that comes from a pipe. Raises LoadError."""
    try:
        return read_model(lambda count: os.read(fd, count), name)
    except OSError as error:
        raise LoadError(f"{name}: cannot be read: {error.strerror}", code="cannot-read") from error
