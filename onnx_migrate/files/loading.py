"""Reads a model's structure into memory; its large payloads stay in their files, as references."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import onnx
from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files.kinds import ReturnedKind, kind_of
from onnx_migrate.files.places import LocalCopy, ensure_local
from onnx_migrate.files.protos import structure_of
from onnx_migrate.files.reading import Source, content_of, from_path, parse_bytes, require_graph, require_text
from onnx_migrate.model.graphs import values_read
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import MEMORY, Weights, location_of
from onnx_migrate.url import absolute

__all__ = ["load", "structure_digest"]


def load(source: Source, *, allow_missing_data: bool = False) -> Model:
    """Load a model's structure; payloads of more than INLINE_LIMIT bytes stay in their files and become references.

    A file at a path is scanned, and its payloads are not read; its external data must be in the model's folder. A model at a
    URL is downloaded first (see `places`). Bytes and protos are neither changed nor copied. They must not change while
    the result is in use. A ModelProto may hold more than 2 GB. An open file is read from its position to its end, a BytesIO
    completely. With `allow_missing_data`, a proto may refer to external data although it came without a folder: the references
    stay, and reading such a tensor raises LoadError.

    `load` does not check whether the model is valid, since the check takes as long as loading. Pipelines check it before their
    first pass, and `compare` does too (engine/validity.py). So `migrate`, `convert_version`, `inspect`, `batch` and `verify`
    refuse an invalid model.

    Raises UsageError for an object of another type. Raises LoadError with one of the codes `no-such-file`, `is-directory`,
    `cannot-read`, `empty`, `truncated`, `not-onnx` and `not-utf8`. For external data the codes are `outside-folder`,
    `missing-data` and `bad-external-data`.
    """
    # The report gives the time of loading.
    start = time.perf_counter()
    content, name = content_of(source)
    weights = Weights()
    downloaded: LocalCopy | None = None
    origin: list[str] = []
    kind = None
    if isinstance(content, (bytes, bytearray, memoryview)):
        proto = parse_bytes(memoryview(content), name, weights)
    elif isinstance(content, (str, os.PathLike)):
        local = ensure_local(content)
        downloaded = local if isinstance(local, LocalCopy) else None
        name, path = str(local), absolute(local)
        proto, weights = from_path(Path(path), name)
        origin.append(str(downloaded or path))
    else:
        kind = kind_of(content)
        proto = kind.structure(content, weights) if kind else structure_of(content, weights)
        require_graph(proto, name, source=lambda: b"")
        require_text(proto, proto.SerializeToString(), name)
    all_tensors = list(tensors(proto))
    if downloaded:
        downloaded.download_external_data(all_tensors)
    try:
        beside = _files_beside(proto, weights, all_tensors, allow_missing=allow_missing_data)
    except LoadError as error:
        reason = downloaded.with_url(error.reason) if downloaded else error.reason
        raise LoadError(f"{name}: {reason}", code=error.code, hint=error.advice) from error
    origin += [downloaded.url_of(file) if downloaded else str(file) for file in beside]
    if len(origin) == 1:
        weights.digest = structure_digest(proto)
    seconds = time.perf_counter() - start
    return Model(
        proto,
        weights,
        name,
        keepalive=downloaded,
        origin=tuple(origin),
        stamp=weights.stamp,
        load_seconds=seconds,
        source_object=content if isinstance(kind, ReturnedKind) else None,
    )


def _files_beside(
    proto: onnx.ModelProto, weights: Weights, found: list[TensorProto], *, allow_missing: bool
) -> list[Path]:
    """Return the files of external data. Raises LoadError if one is missing, unless only unread initializers need it.

    Such an initializer loses its reference to the data, in place. This repairs the model: ONNX Runtime drops the initializer
    before it looks for the data.
    """
    try:
        # Most models have all their files.
        return weights.files_of(found, allow_missing=allow_missing)
    except LoadError as error:
        if error.code != "missing-data" or weights.folder is None:
            raise
    read = values_read(proto.graph, proto.ir_version)
    for tensor in proto.graph.initializer:
        # Only an initializer that nothing reads can do without data.
        if tensor.name not in read and not (location_of(tensor) or MEMORY).startswith(MEMORY):
            try:
                weights.payload(tensor)
            except LoadError as error:
                if error.code == "missing-data":
                    tensor.ClearField("external_data")
                    tensor.ClearField("data_location")
    return weights.files_of(found, allow_missing=allow_missing)


def structure_digest(proto: onnx.ModelProto) -> bytes:
    """Return a BLAKE2b of a structure; `save` compares it to recognise a model that nobody changed since it was loaded."""
    return hashlib.blake2b(proto.SerializeToString()).digest()
