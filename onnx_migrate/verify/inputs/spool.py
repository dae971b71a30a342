"""Keeps sets of inputs that a function or a large file yields: in memory while they are few, then in a temporary folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.verify.inputs.fitting import array_of
from onnx_migrate.verify.inputs.input_files import read_tensor
from onnx_migrate.verify.inputs.stored import FileReading, StoredInputs, bytes_of
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["Spool"]

_IN_MEMORY = 1 << 26
"""Bytes of inputs that stay in memory; further ones go to files."""


class Spool:
    """Stores feeds; the folder with their files lasts as long as this object. It takes `most` feeds of a source at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._folder: TemporaryFolder | None = None
        self._bytes = 0
        self._files = 0
        self.limited: list[str] = []
        """The sources that have more feeds."""

    def __getstate__(self) -> dict[str, Any]:
        """Pickle without the folder, which this process removes."""
        return {**self.__dict__, "_folder": None}

    def keep(self, sets: Iterable[Mapping[str, Any]], label: str) -> list[Feed]:
        """Return the feeds of a source, one at a time in memory. Raises UsageError for values that are no arrays."""
        remaining = iter(sets)
        feeds = [self._stored(f"{label} {at}", each) for at, each in enumerate(islice(remaining, self._most))]
        if len(feeds) == self._most and next(remaining, None) is not None:
            self.limited.append(label)
        return feeds

    def _stored(self, name: str, values: Mapping[str, Any]) -> Feed:
        arrays = {str(key): array_of(f"{name}: input {key!r}", value) for key, value in values.items()}
        # The caller may use one buffer for all sets.
        arrays = {
            key: value.copy() if isinstance(value, np.ndarray) else value for key, value in arrays.items()
        }
        self._bytes += bytes_of(arrays)
        if self._bytes <= _IN_MEMORY or not all(isinstance(value, np.ndarray) for value in arrays.values()):
            return Feed(name, arrays)
        paths = [self._file(name, value) for value in arrays.values()]
        reading = FileReading(tuple(arrays), tuple(paths), read_tensor)
        return Feed(name, StoredInputs(reading.names, reading))

    def _file(self, name: str, array: Any) -> Path:
        """Write an array to a new file and return its path. Raises UsageError if there is no space."""
        try:
            self._folder = self._folder or TemporaryFolder()
            path = self._folder.path / f"{self._files}.pb"
            path.write_bytes(numpy_helper.from_array(array).SerializeToString())
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{name}: cannot be kept in a temporary file: {error}",
                code="input-data",
                hint="--max-inputs takes fewer inputs, and TMPDIR names another folder for temporary files",
            ) from error
        self._files += 1
        return path
