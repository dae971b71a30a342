"""Reads .npy files: each is a value of one input, or all together are one set of inputs with the names of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnx_migrate.verify.inputs.input_files import read_npy
from onnx_migrate.verify.inputs.source import Part, Source, column, notes_on
from onnx_migrate.verify.inputs.stored import FileReading, StoredInputs, spaced
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["read_file", "read_folder"]


def read_file(source: Source) -> Part:
    """Return a feed with the value of one input."""
    return Part((_feed(source.input().name, source.path),), repeats=True)


def read_folder(source: Source, files: Sequence[Path]) -> Part:
    """Return one feed if the files have the names of the inputs, else a feed for each file."""
    stems = tuple(path.stem for path in files)
    fed = set(source.inputs.names)
    if not source.name and fed and fed <= set(stems):
        return Part(
            (Feed(source.path.name, StoredInputs(stems, FileReading(stems, tuple(files), read_npy))),)
        )
    name = source.input().name
    chosen = spaced(files, source.most)
    return Part([_feed(name, path) for path in chosen], notes_on(len(chosen), len(files), "file"))


def _feed(name: str, path: Path) -> Feed:
    return column(name, path.name, FileReading((name,), (path,), read_npy))
