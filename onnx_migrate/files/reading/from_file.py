"""Reads the structure of a model's file; its payloads stay there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import onnx
from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import LoadError
from onnx_migrate.files.reading.parse import EMPTY, parse
from onnx_migrate.files.wire.file_buffer import FileBuffer, FileCut
from onnx_migrate.model.payloads import FilePayload, file_stamp
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import MEMORY, Weights, location_of
from onnx_migrate.safe_open import Folder, NotRegularError, OutsideError, open_beneath
from onnx_migrate.safe_open.paths import real_path

__all__ = ["from_file", "from_path"]

_READ_WHOLE = 1 << 24
"""A file of up to so many bytes is read at once, since that is faster to parse."""


def from_path(path: Path, name: str) -> tuple[onnx.ModelProto, Weights]:
    """Return the structure of the model at `path`, which may be a link, and its weights. Raises LoadError.

    If `path` is a link and the model has all payloads inside, the model is read from the link's target. ONNX Runtime refuses
    data behind a link that leads out of the folder. The links in Hugging Face's cache do so.
    """
    weights = Weights(path.parent, source=path)
    proto = from_file(path, name, weights)
    try:
        target, folder = real_path(path), real_path(path.parent)
    except OSError as error:
        raise LoadError(f"{name}: cannot be read: {error.strerror}", code="cannot-read") from error
    if os.path.dirname(target) == folder:
        return proto, weights
    external = (tensor for tensor in tensors(proto) if tensor.data_location == TensorProto.EXTERNAL)
    # Data beside the link is found there, and not beside the target.
    if any(location_of(tensor) != path.name for tensor in external):
        return proto, weights
    weights = Weights(Path(target).parent, source=Path(target))
    return from_file(Path(target), name, weights), weights


def from_file(path: Path, name: str, weights: Weights) -> onnx.ModelProto:
    """Return the structure of the model at `path` and enter its payloads in `weights`; external data is not checked.

    `name` is the model's name in messages. Raises LoadError.
    """
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            models = sorted(path.glob("*.onnx"))
            hint = (
                f"did you mean {models[0]}?"
                if len(models) == 1
                else "give the path of the .onnx file in it; onnx-migrate batch takes folders"
            )
            raise LoadError(f"{name} is a directory", code="is-directory", hint=hint)
        with open(_open(path, weights), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                raise LoadError(f"{name} is empty", code="empty", hint=EMPTY)
            weights.stamp = stamped = file_stamp(status)
            # A location is a protobuf string, so it must be UTF-8; other file names are only kept in memory.
            is_utf8 = path.name == path.name.encode("utf-8", "replace").decode()

            # The parser calls this for each large payload instead of copying the bytes.
            def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
                payload = FilePayload(path, offset, length, field, extra_fields, stamped)
                if not is_utf8:
                    weights.memory.append(payload)
                    return f"{MEMORY}{len(weights.memory) - 1}", 0
                weights.inside[offset, length] = payload
                return path.name, offset

            try:
                data = FileBuffer(file.fileno(), status.st_size)
                return parse(data if len(data) > _READ_WHOLE else data[:], name, keep)
            except FileCut:
                raise _changed(name) from None
            finally:
                # Bytes of two versions of the file would make a model that never existed.
                if file_stamp(os.fstat(file.fileno())) != stamped:
                    raise _changed(name)
    except FileNotFoundError as error:
        from difflib import get_close_matches  # only errors need it

        near = get_close_matches(path.stem, [model.stem for model in path.parent.glob("*.onnx")], 1, 0.75)
        suggestion = os.path.join(os.path.dirname(name), f"{near[0]}.onnx") if near else ""
        hint = f"did you mean {suggestion}?" if near else "check the path"
        raise LoadError(f"{name}: no such file", code="no-such-file", hint=hint) from error
    except OutsideError:
        raise _changed(name) from None
    except NotRegularError as error:
        raise LoadError(
            f"{name} is not a regular file: {error.strerror}",
            code="cannot-read",
            hint="copy its content to a file and give that",
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LoadError(f"{name}: cannot be read: {reason}", code="cannot-read") from error


def _open(path: Path, weights: Weights) -> int:
    """Open the model's file; enter the folders that its external data may be in. Raises OSError.

    A model that is a symbolic link, as in the Hugging Face cache, may have its data in the folder of the link's target.
    Raises OutsideError if another process replaced the target meanwhile.
    """
    folder = Folder.at(path.parent)
    weights.folders = (folder,)
    fd = folder.open_file(path.name)
    try:
        target = real_path(path)
        # The data may lie beside the target of a link.
        if os.path.dirname(target) != folder.path:
            beside = Folder.at(os.path.dirname(target))
            again = open_beneath([beside], os.path.basename(target))
            # Another process may have exchanged the target since it was opened.
            same = os.path.sameopenfile(fd, again)
            os.close(again)
            weights.folders += (beside,) if same else ()
    except BaseException:
        os.close(fd)
        raise
    return fd


def _changed(name: str) -> LoadError:
    return LoadError(
        f"{name} was changed while it was read", code="source-changed", hint=Advice("load it again")
    )
