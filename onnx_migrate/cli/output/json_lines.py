"""`--json-lines FILE` writes one JSON object per line as soon as it is known; `--json` prints one object of all."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from onnx_migrate.cli.output.side_files import SideFile
from onnx_migrate.cli.output.streams import STREAM
from onnx_migrate.errors import SaveError
from onnx_migrate.files.destination import open_descriptor
from onnx_migrate.json_form import SCHEMA_VERSION
from onnx_migrate.url import resolve_file_url

__all__ = ["JsonLines", "WholeJson"]

_OPEN = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class JsonLines:
    """Lines that go to a file, or to a stream: standard output, a pipe or a device, which no file replaces.

    Raises UsageError or SaveError if they cannot go there. A file of lines that exists is kept until `open`.
    """

    def __init__(self, path: str) -> None:
        self._path, self._target = path, path
        self._fd: int | None = None
        self._written = 0
        self._number = 1 if path == STREAM else open_descriptor(resolve_file_url(path))
        self.to_stdout = self._number == 1
        if self._number == -1:
            raise SaveError(f"{path} is what another process has open, not a file")
        # A stream has no content that could be overwritten.
        if self._number is None and not _is_stream(path):
            side = SideFile("--json-lines", path, "a file of JSON lines", lambda h: h.startswith(b'{"kind":'))
            self._target = str(side.check())
        self.regular = not self.to_stdout

    def open(self) -> None:
        """Begin a file anew, or wait for the reader of a pipe."""
        if self.to_stdout:
            return
        try:
            self._fd = os.open(self._target, _OPEN, 0o666) if self._number is None else os.dup(self._number)
            self.regular = self._number is None and stat.S_ISREG(os.fstat(self._fd).st_mode)
            if self.regular:
                os.ftruncate(self._fd, 0)
        except OSError as error:
            raise self._failure(error) from error

    def write(self, value: Mapping[str, Any]) -> None:
        """Write an object. Of a file, a line that cannot be written whole is removed again."""
        line = self._text(value)
        if self.to_stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
        elif self._fd is not None:
            data = memoryview(line.encode())
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError as error:
                if self.regular:
                    with suppress(OSError):  # the first error is the one to report
                        os.ftruncate(self._fd, self._written)
                        os.lseek(self._fd, self._written, os.SEEK_SET)
                raise self._failure(error) from error
            self._written += len(line)

    def _text(self, value: Mapping[str, Any]) -> str:
        return json.dumps(value, separators=(",", ":")) + "\n"

    def close(self) -> None:
        """Wait until a file is on the disk."""
        descriptor, self._fd = self._fd, None
        if descriptor is not None:
            try:
                if self.regular:
                    os.fsync(descriptor)
                os.close(descriptor)
            except OSError as error:
                raise self._failure(error) from error

    def _failure(self, error: OSError) -> SaveError:
        return SaveError(f"{self._path}: cannot be written: {error.strerror or error}")


class WholeJson(JsonLines):
    """The same objects on standard output as one: `models`, in the order in which they end, and `totals`."""

    def __init__(self) -> None:
        super().__init__(STREAM)
        self._begun = False

    def _text(self, value: Mapping[str, Any]) -> str:
        before = "," if self._begun else f'{{"kind": "batch", "schema_version": {SCHEMA_VERSION}, "models": ['
        self._begun = True
        text = json.dumps(value, separators=(",", ":"))
        if value["kind"] == "totals":
            return f'{before.removesuffix(",")}\n], "totals":\n{text}}}\n'
        return f"{before}\n{text}"


def _is_stream(path: str) -> bool:
    """Whether there is a pipe or a character device at a path, to which bytes are sent."""
    try:
        mode = os.stat(resolve_file_url(path)).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)
