"""Reads .npy files: each is a value of one input, or all together are one set of inputs with the names of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx_migrate.verify.inputs.input_files import read_npy
from onnx_migrate.verify.inputs.source import Part, Source, column, notes_on
from onnx_migrate.verify.inputs.stored import StoredInputs, Values, spaced
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["read_file", "read_folder"]


@dataclass(frozen=True)
class _Files:
    """Reads the arrays of files, by the names of inputs."""

    names: tuple[str, ...]
    paths: tuple[Path, ...]

    def __call__(self) -> Values:
        """Return the arrays by name. Raises UsageError for a file that cannot be read."""
        return dict(zip(self.names, map(read_npy, self.paths), strict=True))


def read_file(source: Source) -> Part:
    """Return a feed with the value of one input."""
    name = source.input().name
    return Part((column(name, source.path.name, _Files((name,), (source.path,))),), repeats=True)


def read_folder(source: Source, files: Sequence[Path]) -> Part:
    """Return one feed if the files have the names of the inputs, else a feed for each file."""
    stems = tuple(path.stem for path in files)
    fed = set(source.inputs.names)
    if not source.name and fed and fed <= set(stems):
        return Part((Feed(source.path.name, StoredInputs(stems, _Files(stems, tuple(files)))),))
    name = source.input().name
    chosen = spaced(files, source.most)
    feeds = [column(name, path.name, _Files((name,), (path,))) for path in chosen]
    return Part(feeds, notes_on(len(chosen), len(files), "file"))
