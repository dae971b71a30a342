"""`--html FILE`: the report as an HTML page."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.path_conflicts import check_replaceable

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.report.html.view_model import Row

__all__ = ["BatchPage", "check_page", "html_option", "write_failure_page", "write_model_page"]

_LENIENT = "backslashreplace"
"""How a byte of a file name that is not UTF-8 is shown."""

_KIND = b"<!DOCTYPE html>", "an HTML page"
"""The first bytes of a page, and what it is called in a message."""

html_option = click.option(
    "--html", type=click.Path(), metavar="FILE",
    help="Write the report to FILE as a self-contained HTML page; needs pip install 'onnx-migrate[html]'.",
)  # fmt: skip


def check_page(path: str | None) -> None:
    """Raise UsageError or SaveError if the page could not be written, or the template library is missing."""
    if path is None:
        return
    from onnx_migrate.errors import UsageError
    from onnx_migrate.files import check_target
    from onnx_migrate.report.html.render import check_available
    from onnx_migrate.url import is_url

    check_available()
    if is_url(path):
        raise UsageError("--html needs a file, not a URL")
    check_target(path)
    check_replaceable(path, *_KIND)


def write_model_page(path: str, report: Mapping[str, Any], *, model: str, output: str | None) -> None:
    """Write the page of one model. Raises SaveError."""
    from onnx_migrate.report.html.render import model_page

    _write(path, [model_page({**report, "output": output}, sizes=_sizes(model, output))])


def write_failure_page(path: str, error: MigrateError, model: str) -> None:
    """Write the page of a model that was not migrated; an error of writing is printed, but does not set the exit code."""
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.errors import SaveError
    from onnx_migrate.report.failure import failure
    from onnx_migrate.report.html.render import model_page

    try:
        _write(path, [model_page(failure(error, model))])
    except SaveError as unwritten:
        fail(unwritten, path, as_json=False)


class BatchPage:
    """Collects the page of a batch; the parts of the models are kept in a temporary file until the end.

    Models are listed by name, not in the order in which they ended.
    """

    def __init__(self, path: str) -> None:
        check_page(path)
        self._path = path
        self._rows: dict[str, tuple[Row, int, int]] = {}
        self._parts = tempfile.TemporaryFile()  # noqa: SIM115

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add a model, given as the object of its JSON line."""
        from onnx_migrate.errors import saving
        from onnx_migrate.report.html.render import model_part
        from onnx_migrate.report.html.view_model import Row

        part = model_part(entry, sizes=_sizes(entry["model"], entry["output"])).encode("utf-8", _LENIENT)
        self._rows[entry["model"]] = Row.of(entry), self._parts.tell(), len(part)
        with saving(tempfile.gettempdir()):
            self._parts.write(part)

    def finish(self, totals: Mapping[str, Any]) -> None:
        """Write the page. Raises SaveError."""
        from onnx_migrate.report.html.render import batch_page

        entries = [self._rows[name] for name in sorted(self._rows)]
        with self._parts:
            parts = (self._read(start, size) for _, start, size in entries)
            _write(self._path, batch_page([row for row, _, _ in entries], parts, totals))

    def _read(self, start: int, size: int) -> str:
        self._parts.seek(start)
        return self._parts.read(size).decode()


def _sizes(model: str, output: str | None) -> tuple[str, str] | None:
    """Return the sizes of the files before and after as text; None unless they are two files that exist."""
    if (
        output is None
        or not (os.path.isfile(model) and os.path.isfile(output))
        or os.path.samefile(model, output)
    ):
        return None
    return _size(model), _size(output)


def _size(path: str) -> str:
    total = os.path.getsize(path)
    beside = f"{path}.data"
    if os.path.isfile(beside):
        total += os.path.getsize(beside)
    return f"{total:,} B" if total < 10**6 else f"{total / 10**6:,.1f} MB"


def _write(path: str, pieces: Iterable[str]) -> None:
    from onnx_migrate.errors import saving
    from onnx_migrate.files.atomic_file import NewFile

    check_replaceable(path, *_KIND)
    encoded = (piece.encode("utf-8", _LENIENT) for piece in pieces)
    with saving(path), NewFile(Path(os.path.abspath(path)), encoded) as file:
        file.put()
