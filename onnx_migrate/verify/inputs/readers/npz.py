"""Reads .npz files: each is one set of inputs, with the arrays by input name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.inputs.input_files import npz_names, read_npz
from onnx_migrate.verify.inputs.source import Part, Source, column, notes_on
from onnx_migrate.verify.inputs.stored import StoredInputs, Values, spaced
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["read_file", "read_folder"]


def read_file(source: Source) -> Part:
    """Return the one feed of a file; the user may name the input of a single array."""
    feed = _feed(source.path)
    if not source.name:
        return Part((feed,))
    if len(feed.inputs) != 1:
        raise UsageError(
            f"{source.path}: has {len(feed.inputs)} arrays with names of their own",
            code="input-data",
            hint=f"leave {source.name}= out, or give a file with one array",
        )
    read = partial(_only_array, source.path, source.name)
    return Part((column(source.name, source.path.name, read),), repeats=True)


def _only_array(path: Path, name: str) -> Values:
    return {name: next(iter(read_npz(path).values()))}


def read_folder(source: Source, files: Sequence[Path]) -> Part:
    """Return a feed for each file."""
    chosen = spaced(files, source.most)
    return Part([_feed(path) for path in chosen], notes_on(len(chosen), len(files), "file"))


def _feed(path: Path) -> Feed:
    return Feed(path.name, StoredInputs(tuple(npz_names(path)), partial(read_npz, path)))
