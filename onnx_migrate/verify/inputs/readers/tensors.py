"""Reads .pb files of TensorProtos: the data sets of onnx's tests, with recorded outputs, or a value of one input in each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open.paths import listed
from onnx_migrate.verify.inputs.input_files import read_tensor, require_readable
from onnx_migrate.verify.inputs.source import Part, Source, column, notes_on
from onnx_migrate.verify.inputs.stored import FileReading, StoredInputs, spaced
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["read_file", "read_folder"]

_NUMBERED = re.compile(r"input_([0-9]{1,9})\.pb")


def read_file(source: Source) -> Part:
    """Return a feed with the value of one input."""
    return Part((_feed(source.input().name, source.path),), repeats=True)


def read_folder(source: Source, files: Sequence[Path]) -> Part:
    """Return a feed for each folder with input_0.pb, …, or a feed for each file without such folders."""
    require_readable(path for path in files)
    inputs_by_folder: dict[Path, dict[Path, str]] = {}
    for path in files:
        if match := _NUMBERED.fullmatch(path.name):
            inputs_by_folder.setdefault(path.parent, {})[path] = match[1]
    if inputs_by_folder and not source.name:
        folders = spaced([*inputs_by_folder], source.most)
        sets = [_data_set(folder, inputs_by_folder[folder]) for folder in folders]
        return Part(sets, notes_on(len(folders), len(inputs_by_folder), "folder"))
    # Recorded outputs lie beside the inputs and are no inputs.
    values = [path for path in files if not path.name.startswith("output_")]
    if not values:
        raise UsageError(f"{source.path}: contains no input_0.pb", code="input-data")
    name, chosen = source.input().name, spaced(values, source.most)
    return Part([_feed(name, path) for path in chosen], notes_on(len(chosen), len(values), "file"))


def _feed(name: str, path: Path) -> Feed:
    return column(name, path.name, FileReading((name,), (path,), read_tensor))


def _data_set(folder: Path, numbers: Mapping[Path, str]) -> Feed:
    """Return the feed of a folder, with the outputs recorded there. `numbers` are the positions of its input files."""
    inputs = _by_position(numbers)
    outputs = [path for path in listed(folder, "output_*.pb") if path.stem.rpartition("_")[2].isdecimal()]
    recorded = _by_position({path: path.stem.rpartition("_")[2] for path in outputs})
    return Feed(folder.name, StoredInputs(inputs.names, inputs), recorded() if outputs else {})


def _by_position(numbers: Mapping[Path, str]) -> FileReading:
    """Return the reading of files whose values have their positions as names."""
    # By name, input_10.pb would come before input_2.pb.
    paths = sorted(numbers, key=lambda path: int(numbers[path]))
    return FileReading(tuple(f"#{int(numbers[path])}" for path in paths), tuple(paths), read_tensor)
