"""Writing a model so that, whatever happens, the old file or the new one is there and whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import onnx
from google.protobuf.message import EncodeError
from onnx import TensorProto

from onnx_migrate.errors import LoadError, SaveError
from onnx_migrate.files.atomic_file import NewFile, fsync_folder, tidy
from onnx_migrate.files.destination import check_file, refuse_source
from onnx_migrate.files.load import digest, from_file
from onnx_migrate.files.remote.upload import check_url, upload
from onnx_migrate.files.wire.assemble import ExternalLocation, assemble
from onnx_migrate.files.wire.rebuild import Piece, total_size
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import INLINE_LIMIT, MEMORY, FilePayload, Payload, Weights, stamp, tensors
from onnx_migrate.url import basename, is_url, plain, same_place

__all__ = ["save"]

ONE_FILE_LIMIT = 2**31 - 1
"""Bytes of a serialised model; beyond that protobuf's readers refuse it."""

PAGE, LINE, LARGE = 4096, 64, 1 << 20
"""Alignment in a data file, in bytes: PAGE for payloads of LARGE and more, which runtimes map, else LINE."""


def save(
    model: Model, path: str | os.PathLike[str], *, external: bool = False, in_place: bool = False
) -> None:
    """Write the model to `path`, its payloads copied from where they lie.

    One file, or, if that would exceed 2 GB or `external` is true, the structure with its small tensors and
    a file of external data, `NAME.onnx.data`, beside it. A structure unchanged since it was read from a
    single file is that file, byte for byte. Existing permission bits are kept and a link is written through.

    `in_place` allows `path` to be the file the model was read from. Its external data then stays where
    it is, unread and referred to as before, unless its weights lie elsewhere by now: then its NAME.onnx.data goes
    with it. No other file the model was read from is written over. Afterwards `model` no longer finds payloads
    that lay in the old file: load it again.

    A URL is sent the one file or the two as `upload` says, also in place.

    Raises SaveError (`in-place`, `would-overwrite`, `no-such-folder`, `is-directory`, `cannot-write`), and
    LoadError when the files the weights lie in have changed. Then, and whenever the process ends, the file
    that was there is there still, with its data.
    """
    label = plain(os.fspath(path))
    if is_url(label):
        check_url(label, source=next(iter(model.origin), None), in_place=in_place)
        refuse_source(label, model.origin[1:])
        with tempfile.TemporaryDirectory(prefix="onnx-migrate-") as folder:
            written = Path(folder, basename(label))
            try:
                save(model, written, external=external)
            except SaveError as error:
                raise SaveError(f"{label}: {error.reason}", code=error.code, hint=error.hint) from error
            upload(written, label)
        return
    try:
        _save(model, Path(os.path.abspath(label)), label, external, in_place)
    except OSError as error:
        raise SaveError(f"{label}: cannot be written: {error.strerror or error}") from error
    except (EncodeError, ValueError) as error:
        raise SaveError(
            f"{label}: cannot be written: {str(error) or 'the graph is more than 2 GB'}"
        ) from error


def _save(model: Model, path: Path, label: str, external: bool, in_place: bool) -> None:
    target = Path(os.path.realpath(path))
    own = next(iter(model.origin), None)
    exists = check_file(label, source=own, in_place=in_place)
    same = exists and own is not None and same_place(str(target), own)
    # Only where the references will be read from the same folder as before.
    keep = same and os.path.realpath(path.parent) == os.path.realpath(model.weights.folder or "")
    pieces, data, used = _lay_out(model, target.name + ".data", external, keep)
    needed = {*map(os.fspath, used), *model.origin}
    refuse_source(label, sorted(needed - {own}))
    beside = _Beside(target, label, map(os.fspath, used) if same else needed)
    if data and os.path.realpath(path.parent) != str(target.parent):
        raise SaveError(
            f"{label} leads to another folder, where its external data would not be found",
            hint=f"give {target}",
        )
    if data:
        beside.check()
    tidy(target)
    tidy(beside.data)
    tidy(beside.claims)
    with ExitStack() as stack:
        new_data = stack.enter_context(NewFile(beside.data, _padded(data))) if data else None
        new_model = stack.enter_context(NewFile(target, pieces))
        if not keep or data:
            beside.retire()
        if new_data is not None:
            beside.claim(new_data)
            new_data.put()
        new_model.put()
        beside.clean()


Region = tuple[int, Payload]


def _lay_out(
    model: Model, name: str, external: bool, keep: bool
) -> tuple[list[Piece], list[Region], set[Path]]:
    """Return the pieces of the model's file, the payloads of its data file, and the files they lie in."""
    weights = model.weights
    used: set[Path] = set()

    def find(tensor: TensorProto) -> Payload | None:
        """Return a payload to write; None for one to be left in the source's own external data."""
        payload = weights.payload(tensor)
        if isinstance(payload, FilePayload):
            used.add(payload.path)
            if keep and payload.path != weights.source and not _location(tensor).startswith(MEMORY):
                return None
        return payload

    if weights.digest is not None and not external and weights.digest == digest(model.proto):
        file = next(iter(weights.inside.values()), None)
        if file is not None and file.stamp is not None and file.stamp[2] <= ONE_FILE_LIMIT:
            return [FilePayload(file.path, 0, file.stamp[2], stamp=file.stamp)], [], {file.path}

    pieces = [] if external else assemble(model.proto, find)
    if pieces and total_size(pieces) <= ONE_FILE_LIMIT:
        return pieces, [], used

    regions: dict[tuple[str, str, str], ExternalLocation] = {}
    data: list[Region] = []
    end = 0

    def place(tensor: TensorProto) -> Payload | ExternalLocation | None:
        nonlocal end
        payload = find(tensor)
        if payload is None or payload.length <= INLINE_LIMIT:
            return payload
        entries = {entry.key: entry.value for entry in tensor.external_data}
        shared = entries["location"], entries.get("offset", "0"), str(payload.length)
        if shared not in regions:
            offset = -(-end // (step := PAGE if payload.length >= LARGE else LINE)) * step
            regions[shared] = ExternalLocation(name, offset, payload.length)
            data.append((offset, payload))
            end = offset + payload.length
        return regions[shared]

    pieces = assemble(model.proto, place)
    if total_size(pieces) > ONE_FILE_LIMIT:
        raise SaveError(
            f"{name.removesuffix('.data')}: {total_size(pieces)} bytes besides the weights, more than 2 GB"
        )
    return pieces, data, used


def _padded(data: list[Region]) -> Iterator[Piece]:
    end = 0
    for offset, payload in data:
        yield bytes(offset - end)
        yield payload
        end = offset + payload.length


def _location(tensor: TensorProto) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


class _Beside:
    """What already lies beside a target: the data file of the model to be replaced.

    Two files cannot be renamed at once. So the old model is first made to refer to its data by a second name,
    a backup, and at each moment one whole model stands at the target.
    """

    def __init__(self, target: Path, label: str, needed: Iterable[str]) -> None:
        self.target = target
        self.label = label
        self.data = target.with_name(target.name + ".data")
        self.backup = target.with_name(f".{target.name}.data.bak")
        self.claims = target.with_name(f".{target.name}.data.new")
        self._in_use = any(same_place(str(self.data), file) for file in needed)
        self._old, self._weights = onnx.ModelProto(), Weights(target.parent, source=target)
        if target.exists() and (self.data.exists() or self.backup.exists()):
            with contextlib.suppress(LoadError):  # not a model: then it has no data either
                self._old = from_file(target, label, self._weights)
        self._names = {
            os.path.normpath(_location(t))
            for t in tensors(self._old)
            if t.data_location == TensorProto.EXTERNAL
        }

    def _ours(self) -> bool:
        """Tell whether the data file belongs to the model that stands at the target."""
        return len(self._names & {self.data.name, self.backup.name}) == 1 or self._claimed()

    def check(self) -> None:
        """Refuse to replace a data file that is the source's, or of no known owner."""
        if self.data.exists() and (self._in_use or not self._ours()):
            owner = "the weights of the model itself" if self._in_use else "something else's data"
            raise SaveError(
                f"{self.data} exists and holds {owner}",
                code="would-overwrite",
                hint="move it away or choose another name",
            )

    def retire(self) -> None:
        """Free the data file's name: let the old model, if it has one, refer to the backup instead."""
        if self._in_use or not self.data.exists() or not self._ours():
            return
        if self.data.name in self._names:
            for tensor in tensors(self._old):
                for entry in tensor.external_data:
                    if entry.key == "location" and os.path.normpath(entry.value) == self.data.name:
                        entry.value = self.backup.name
            with NewFile(self.target, assemble(self._old, self._inside)) as repointed:
                # From here to `unlink` the data has two names, which onnx.load refuses: all is ready before.
                self.backup.unlink(missing_ok=True)  # of an earlier, killed save; no model refers to it
                _link_or_copy(self.data, self.backup)
                fsync_folder(self.target.parent)
                repointed.put()
        self.data.unlink()
        fsync_folder(self.target.parent)

    def _inside(self, tensor: TensorProto) -> Payload | None:
        own = _location(tensor) == self.target.name
        return self._weights.payload(tensor) if own else None

    def claim(self, new_data: NewFile) -> None:
        """Leave word that a data file is ours, should this save be killed before there is a model to it."""
        with NewFile(self.claims, [repr(new_data.stamp()).encode()]) as note:
            note.put()

    def _claimed(self) -> bool:
        """Tell whether the data file is what a killed save left."""
        if not (self.claims.exists() and self.data.exists()):
            return False
        return self.claims.read_bytes() == repr(stamp(self.data.stat())).encode()

    def clean(self) -> None:
        """Remove claim and backup; but not a backup the new model refers to, as read after a killed save."""
        self.claims.unlink(missing_ok=True)
        if self.backup.exists() and self.backup.name not in self._kept():
            self.backup.unlink()

    def _kept(self) -> set[str]:
        weights = Weights(self.target.parent, source=self.target)
        proto = from_file(self.target, self.label, weights)
        return {os.path.normpath(_location(tensor)) for tensor in tensors(proto)}


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)
