"""The formats of inputs and their readers, which are imported when they are needed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import count_of, listed
from onnx_migrate.safe_open import open_regular
from onnx_migrate.verify.inputs.input_files import reason_of
from onnx_migrate.verify.inputs.source import Part, Source

__all__ = ["FORMATS", "Format", "files_of", "format_of"]


@dataclass(frozen=True)
class Format:
    """A format: a name for messages, the endings of its files, and the module in this folder that reads it.

    The module has a function `read_file(source)` for one file, and `read_folder(source, files)` for the files of a folder, which
    are sorted. Both return a `Part`. A format `looks_below` if a folder may have its files in folders of its own.
    """

    title: str
    endings: tuple[str, ...]
    module: str
    magic: bytes = b""
    """The first bytes of such a file, for files with another ending."""
    looks_below: bool = False

    def has(self, name: str) -> bool:
        """Return whether a file of this name has the format."""
        return name.lower().endswith(self.endings)

    def read(self, source: Source) -> Part:
        """Return the feeds of a file or folder. Raises UsageError."""
        module = import_module(f"{__package__}.{self.module}")
        if not source.path.is_dir():
            alone: Part = module.read_file(source)
            return alone
        part: Part = module.read_folder(source, files_of(source.path, self))
        return replace(part, notes=(*part.notes, *self._others(source.path)))

    def _others(self, folder: Path) -> Iterator[str]:
        """Yield a note on the files in a folder that have no inputs."""
        others = sum(not self.has(name) and (folder / name).is_file() for name in _names(folder))
        if others:
            yield f"{folder.name} has {count_of(others, 'other file')}, which {'was' if others == 1 else 'were'} not read"


FORMATS = (
    Format("an .npz file of arrays by input name", (".npz",), "npz", b"PK"),
    Format("an .npy file with one array", (".npy",), "npy", b"\x93NUMPY"),
    Format(
        "a folder of input_0.pb, … or other .pb files of one tensor", (".pb",), "tensors", looks_below=True
    ),
    Format(
        "a folder of images",
        (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"),
        "images",
        looks_below=True,
    ),
    Format("a JSON file of inputs, as Polygraphy writes it", (".json",), "polygraphy"),
)

_IGNORED = ("thumbs.db", "desktop.ini", "output_*.pb", "*.md", "*.txt", "*.csv")
"""Files that often lie beside inputs and are none; output_*.pb belongs to the inputs beside it."""


_DEPTH = 3
"""Levels of folders below the user's that are searched: data sets have folders for classes, and a link may lead in a circle."""


def format_of(path: Path) -> Format:
    """Return the format of a file or folder. Raises UsageError if it has none, or several."""
    try:
        return _format_of_folder(path) if path.is_dir() else _format_of_file(path)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read as input data: {reason_of(error)}", code="input-data", hint=_accepted()
        ) from error


def _format_of_file(path: Path) -> Format:
    by_name = [file_format for file_format in FORMATS if file_format.has(path.name)]
    with open(open_regular(path), "rb") as file:
        start = file.read(8)
    by_content = [
        file_format for file_format in FORMATS if file_format.magic and start.startswith(file_format.magic)
    ]
    if not (by_name or by_content):
        raise UsageError(
            f"{path}: cannot be read as input data: its format is not known",
            code="input-data",
            hint=_accepted(),
        )
    return (by_name or by_content)[0]


def _format_of_folder(path: Path) -> Format:
    names = [name for name in _names(path) if not _is_ignored(name)]
    counts = Counter(file_format for name in names for file_format in FORMATS if file_format.has(name))
    if len(counts) > 1:
        kinds = listed(f"{count} {_ending(file_format, names)}" for file_format, count in counts.items())
        raise UsageError(
            f"{path}: contains files of several formats: {kinds}",
            code="input-data",
            hint="move files of one format into a folder of their own",
        )
    below = (
        file_format for file_format in FORMATS if file_format.looks_below and files_of(path, file_format)
    )
    chosen = next(iter(counts), None) or next(below, None)
    if chosen is None:
        reason = "contains no inputs" if _names(path) else "the folder is empty"
        raise UsageError(f"{path}: {reason}", code="input-data", hint=_accepted())
    return chosen


def files_of(folder: Path, kind: Format, depth: int = _DEPTH) -> list[Path]:
    """Return the files of a format in a folder, sorted by their names; those in folders below it if it has none itself.

    Raises OSError for a folder that cannot be read.
    """
    names = _names(folder)
    direct = [folder / name for name in names if kind.has(name)]
    if direct or not kind.looks_below or not depth:
        return direct
    below = [folder / name for name in names if (folder / name).is_dir()]
    return [file for inner in below for file in files_of(inner, kind, depth - 1)]


def _names(folder: Path) -> list[str]:
    """Return the names in a folder without hidden ones, numbers in the order of their values."""
    return sorted((name for name in os.listdir(folder) if not name.startswith(".")), key=_by_numbers)


def _by_numbers(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a key that sorts "2.jpg" before "10.jpg"."""
    parts: list[tuple[int, str]] = []
    for char in name:
        if char.isascii() and char.isdigit() and parts and parts[-1][0] >= 0:
            parts[-1] = int(char) + 10 * parts[-1][0], ""
        elif char.isascii() and char.isdigit():
            parts.append((int(char), ""))
        else:
            parts.append((-1, char))
    return parts, name


def _is_ignored(name: str) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in _IGNORED)


def _ending(kind: Format, names: Iterable[str]) -> str:
    return next(Path(name).suffix for name in names if kind.has(name))


def _accepted() -> str:
    return f"accepted are {listed([file_format.title for file_format in FORMATS])}, and MODULE:FUNCTION"
