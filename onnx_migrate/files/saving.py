"""Writes a model's structure and copies its payloads, so that at any moment the old or the new model is there, whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import EncodeError
from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import LoadError, SaveError
from onnx_migrate.files.atomic_file import NewFile, folder_lock, remove_leftovers
from onnx_migrate.files.byte_copy import write_pieces
from onnx_migrate.files.destination import check_file, refuse_source, resolve_links
from onnx_migrate.files.external_data_swap import ExternalDataSwap, hidden_names
from onnx_migrate.files.loading import structure_digest
from onnx_migrate.files.places import place_of
from onnx_migrate.files.protos import inline
from onnx_migrate.files.publishing import NewContent
from onnx_migrate.files.wire.payload_references import ExternalLocation, Piece, assemble, total_size
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import FilePayload, Payload, file_stamp
from onnx_migrate.model.weights import INLINE_LIMIT, MEMORY, location_of
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.safe_open.paths import real_path
from onnx_migrate.url import basename, is_url, resolve_file_url, same_place

__all__ = ["Beside", "contents_beside", "rest_path", "save", "write"]

Beside = Callable[[int], AbstractContextManager[object]]
"""A function that makes the context in which the files of a model take their names; its argument is their size in bytes."""

ONE_FILE_LIMIT = 2**31 - 1
"""The most bytes of a serialised model that protobuf reads."""

PAGE, LINE, LARGE = 4096, 64, 1 << 20
"""Alignment in a data file, in bytes: PAGE for payloads of at least LARGE bytes, which runtimes map, else LINE."""


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    external: bool = False,
    in_place: bool = False,
    beside: Beside | None = None,
) -> None:
    """Write the model to `path`, copying its payloads from the files that hold them.

    Writes one file. If that would exceed 2 GB or `external` is true, it writes two files: the structure with its small tensors,
    and the external data, `NAME.onnx.data`. If nobody changed a structure since it was read from a single file, the result
    is a copy of that file. A new file gets the permission bits of the file that it replaces. If `path` is a symbolic link, its
    target is replaced.

    `in_place` allows `path` to be the file that the model was read from. References to its external data then stay, and the
    data does not change. But if the payloads come from other files, its NAME.onnx.data is replaced or removed too. No other
    file that the model was read from is overwritten. Afterwards `model` no longer finds payloads that were in the old file:
    load it again.

    For a URL, `save` writes the files locally and then sends them, also in place.

    `beside` makes a context. It is entered when all files are complete under temporary names, and the files take their names in
    it. An error of the context ends the save. The context sees the error if the model does not get its name.

    Raises SaveError (`in-place`, `would-overwrite`, `no-such-folder`, `is-directory`, `cannot-write`). Raises LoadError if a
    file that holds payloads has changed, or if the old model at `path` is unreadable. After an error, and if the process is
    killed, the old model at `path` is still there, with its data.
    """
    label = resolve_file_url(os.fspath(path))
    place = place_of(label)
    if place:
        place.check_target(label, source=next(iter(model.origin), None), in_place=in_place)
        # The upload must not replace the files of the source's data.
        refuse_source(label, model.origin[1:])
        # The upload starts with complete files.
        with TemporaryFolder() as folder:
            written = Path(folder, basename(label))
            try:
                save(model, written, external=external)
            except SaveError as error:
                raise SaveError(f"{label}: {error.reason}", code=error.code, hint=error.advice) from error
            with _within(beside, [written, written.with_name(f"{written.name}.data")]):
                place.send(written, label)
        return
    try:
        _save(model, Path(os.path.abspath(label)), label, external, in_place, beside)
    except OSError as error:
        raise SaveError(f"{label}: cannot be written: {error.strerror or error}") from error
    except (EncodeError, ValueError) as error:
        raise SaveError(
            f"{label}: cannot be written: {str(error) or 'the graph is larger than the 2 GB that protobuf writes'}"
        ) from error


def rest_path(path: str | os.PathLike[str]) -> str:
    """Return the path for the rest of a model whose first part is at `path`: "a.rest.onnx" for "a.onnx"."""
    return f"{os.fspath(path).removesuffix('.onnx')}.rest.onnx"


def contents_beside(model: Model, path: str, *, external: bool = False) -> list[NewContent]:
    """Return the files of a second model, at `path`, for `published` as the first one takes its name.

    There are one or two files, as with `save`. Raises SaveError for a URL; `published` raises all other errors.
    """
    if is_url(path):
        raise SaveError(f"{path}: two models cannot be written to a URL", hint="name a file, and upload both")
    data_path = f"{path}.data"
    # Locations are relative to the model's folder.
    pieces, data, used = _layout(model, os.path.basename(data_path), external, keeps=lambda location: False)
    needed = sorted({*map(os.fspath, used), *model.origin})

    def check(label: str) -> Path:
        exists = check_file(label)
        refuse_source(label, needed)
        if label == data_path and exists and not os.path.exists(path):
            raise SaveError(
                f"{label} exists and is not of a model {path}",
                code="would-overwrite",
                hint="choose another name",
            )
        return resolve_links(Path(os.path.abspath(label)))

    contents = [NewContent(path, partial(check, path), pieces)]
    # The data takes its name first, so that the model never refers to a file that does not exist.
    if data:
        contents.insert(0, NewContent(data_path, partial(check, data_path), _with_padding(data)))
    return contents


def write(model: Model, file: BinaryIO) -> None:
    """Write the model as one file to the end of an open file. Raises SaveError over 2 GB, LoadError as `save` does, OSError."""
    pieces, data, _ = _layout(model, "model.onnx.data", external=False, keeps=lambda location: False)
    if data:
        raise SaveError(
            "the result is over 2 GB and needs two files, but this takes one", hint="name a file as OUTPUT"
        )
    try:
        number = file.fileno()
    except OSError:  # in memory, as a BytesIO is
        file.write(inline(model).SerializeToString())
        return
    write_pieces(number, pieces)


def _within(beside: Beside | None, files: list[Path]) -> AbstractContextManager[object]:
    return (
        nullcontext() if beside is None else beside(sum(map(os.path.getsize, filter(os.path.exists, files))))
    )


def _save(
    model: Model, path: Path, label: str, external: bool, in_place: bool, beside: Beside | None
) -> None:
    target = resolve_links(path)
    source = next(iter(model.origin), None)
    exists = check_file(label, source=source, in_place=in_place)
    replaces_source = exists and source is not None and same_place(str(target), source)
    # The references stay valid only where they are resolved in the same folder as before.
    same_folder = real_path(path.parent) == real_path(model.weights.folder or "")
    # Data that an interrupted save left at a hidden name gets its proper name again.
    to_move = hidden_names(target) if external else ()

    def keeps(location: str) -> bool:
        return replaces_source and same_folder and os.path.normpath(location) not in to_move

    pieces, data, used = _layout(model, f"{target.name}.data", external, keeps)
    needed = {*map(os.fspath, used), *model.origin}
    refuse_source(label, sorted(needed - {source}))
    read = [os.fspath(path) for path in used] if replaces_source else sorted(needed)
    if data and real_path(path.parent) != str(target.parent):
        raise SaveError(
            f"{label} is a link into another folder: external data beside the link's target would not be found from it",
            hint=f"write to {target}",
        )
    if data:  # before the weights are copied
        try:
            ExternalDataSwap(target, label, read).check_replaceable()
        except (SaveError, OSError):
            with folder_lock(target.parent):  # no other save publishes while this looks
                ExternalDataSwap(target, label, read).check_replaceable()

    def with_data_at(name: str) -> NewFile:
        return NewFile(target, _layout(model, name, external, keeps)[0])

    with ExitStack() as stack:
        data_file = target.with_name(f"{target.name}.data")
        new_data = stack.enter_context(NewFile(data_file, _with_padding(data))) if data else None
        new_model = stack.enter_context(NewFile(target, pieces))
        stack.enter_context(folder_lock(target.parent))
        swap = ExternalDataSwap(target, label, read)
        if data:
            swap.check_replaceable()
        if replaces_source:
            _require_same(model, target)
        remove_leftovers(target)
        swap.remove_leftovers()
        if beside is not None:
            stack.enter_context(beside(sum(file.stamp()[2] for file in (new_model, new_data) if file)))
        swap.publish(new_model, new_data, with_data_at)
    if replaces_source:
        with suppress(OSError):  # it is written; a second save of the same model refuses to replace it then
            model.stamp = file_stamp(target.stat())


def _require_same(model: Model, target: Path) -> None:
    """Raise LoadError if somebody changed the model at the target since it was read, so that no work is lost."""
    if model.stamp is not None and file_stamp(target.stat()) != model.stamp:
        raise LoadError(
            f"{target} has changed since the model was read",
            code="source-changed",
            hint=Advice("run it again, on the model that is there now"),
        )


Region = tuple[int, Payload]
"""An offset in the file of external data, and the payload that starts there."""


def _layout(
    model: Model, name: str, external: bool, keeps: Callable[[str], bool]
) -> tuple[list[Piece], list[Region], set[Path]]:
    """Return the pieces of the model's file, the regions of its data file `name`, and the files that payloads are in.

    `keeps` takes a location of the source's own external data, and returns whether references to it stay unchanged.
    """
    weights = model.weights
    used: set[Path] = set()

    def find(tensor: TensorProto) -> Payload | None:
        """Return the payload to write, or None if the reference to it stays."""
        payload = weights.payload(tensor)
        if isinstance(payload, FilePayload):
            used.add(payload.path)
            is_inside = payload.path == weights.source or location_of(tensor).startswith(MEMORY)
            # Only external data of the source can stay where it is.
            if not is_inside and keeps(location_of(tensor)):
                return None
        return payload

    # An unchanged structure is copied byte for byte.
    if weights.digest is not None and not external and weights.digest == structure_digest(model.proto):
        file = next(iter(weights.inside.values()), None)
        if file is not None and file.stamp is not None and file.stamp[2] <= ONE_FILE_LIMIT:
            return [FilePayload(file.path, 0, file.stamp[2], stamp=file.stamp)], [], {file.path}

    # One file is tried first.
    pieces = [] if external else assemble(model.proto, find)
    if pieces and total_size(pieces) <= ONE_FILE_LIMIT:
        return pieces, [], used

    placed: dict[tuple[str, str, str], ExternalLocation] = {}
    data: list[Region] = []
    end = 0

    def place(tensor: TensorProto) -> Payload | ExternalLocation | None:
        """Return the destination of a tensor's payload: the tensor if it is small, else the data file."""
        nonlocal end
        payload = find(tensor)
        if payload is None or payload.length <= INLINE_LIMIT:
            return payload
        entries = {entry.key: entry.value for entry in tensor.external_data}
        # Tensors may share their data, which is then written once.
        shared = entries["location"], entries.get("offset", "0"), str(payload.length)
        if shared not in placed:
            alignment = PAGE if payload.length >= LARGE else LINE
            offset = -(-end // alignment) * alignment
            placed[shared] = ExternalLocation(name, offset, payload.length)
            data.append((offset, payload))
            end = offset + payload.length
        return placed[shared]

    pieces = assemble(model.proto, place)
    # Large tensors in other fields cannot become external data.
    if total_size(pieces) > ONE_FILE_LIMIT:
        raise SaveError(
            f"{name.removesuffix('.data')}: the graph without its large tensors takes {total_size(pieces)} bytes, and protobuf"
            " writes less than 2 GB",
            hint=Advice("store large tensors in raw_data, float_data or double_data"),
        )
    return pieces, data, used


def _with_padding(data: list[Region]) -> Iterator[Piece]:
    """Yield the pieces of a data file: payloads, and zeros up to the offset of the next."""
    end = 0
    for offset, payload in data:
        yield bytes(offset - end)
        yield payload
        end = offset + payload.length
