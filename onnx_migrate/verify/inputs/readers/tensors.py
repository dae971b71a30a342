"""Reads .pb files of TensorProtos: the data sets of onnx's tests, with recorded outputs, or a value of one input in each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open.paths import listed
from onnx_migrate.verify.inputs.input_files import read_tensor, require_readable
from onnx_migrate.verify.inputs.source import Part, Source, column, notes_on
from onnx_migrate.verify.inputs.stored import StoredInputs, Values, spaced
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["TensorFiles", "read_file", "read_folder"]

_NUMBERED = re.compile(r"input_([0-9]{1,9})\.pb")


@dataclass(frozen=True)
class TensorFiles:
    """Reads the tensors of files, by the names of values."""

    names: tuple[str, ...]
    paths: tuple[Path, ...]

    def __call__(self) -> Values:
        """Return the arrays by name. Raises UsageError for a file that cannot be read."""
        return dict(zip(self.names, map(read_tensor, self.paths), strict=True))


def read_file(source: Source) -> Part:
    """Return a feed with the value of one input."""
    name = source.input().name
    return Part((column(name, source.path.name, TensorFiles((name,), (source.path,))),), repeats=True)


def read_folder(source: Source, files: Sequence[Path]) -> Part:
    """Return a feed for each folder with input_0.pb, …, or a feed for each file without such folders."""
    require_readable(path for path in files)
    folders = [*dict.fromkeys(path.parent for path in files if _NUMBERED.fullmatch(path.name))]
    if folders and not source.name:
        chosen = spaced(folders, source.most)
        sets = [_data_set(folder, [path for path in files if path.parent == folder]) for folder in chosen]
        return Part(sets, notes_on(len(chosen), len(folders), "folder"))
    values = [path for path in files if not path.name.startswith("output_")]
    if not values:
        raise UsageError(f"{source.path}: contains no input_0.pb", code="input-data")
    name, chosen = source.input().name, spaced(values, source.most)
    feeds = [column(name, path.name, TensorFiles((name,), (path,))) for path in chosen]
    return Part(feeds, notes_on(len(chosen), len(values), "file"))


def _data_set(folder: Path, files: Sequence[Path]) -> Feed:
    """Return the feed of a folder, with the outputs recorded there. Positions stand for the names."""
    numbers = {path: match[1] for path in files if (match := _NUMBERED.fullmatch(path.name))}
    inputs = _by_position(numbers)
    outputs = [path for path in listed(folder, "output_*.pb") if path.stem.rpartition("_")[2].isdecimal()]
    recorded = _by_position({path: path.stem.rpartition("_")[2] for path in outputs})
    return Feed(folder.name, StoredInputs(inputs.names, inputs), recorded() if outputs else {})


def _by_position(numbers: dict[Path, str]) -> TensorFiles:
    paths = sorted(numbers, key=lambda path: int(numbers[path]))
    return TensorFiles(tuple(f"#{int(numbers[path])}" for path in paths), tuple(paths))
