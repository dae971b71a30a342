"""`--html FILE`: the report as an HTML page."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import rich_click as click

from onnx_migrate.cli.output.failure import print_remarks
from onnx_migrate.cli.output.side_files import SideFile, published

if TYPE_CHECKING:
    from onnx_migrate.batching import Outcome
    from onnx_migrate.difference import MatchedModels
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.inspection import Inspection
    from onnx_migrate.report.data import ReportData
    from onnx_migrate.report.failure import Failure
    from onnx_migrate.report.html.contents import Row
    from onnx_migrate.verdicts import Verdict

__all__ = [
    "BatchPage",
    "comparison_page",
    "difference_page",
    "html_option",
    "inspection_page",
    "model_page",
    "open_at_end",
    "page_at",
    "write_failure_page",
]

_LENIENT = "backslashreplace"
"""How a byte of a file name that is not UTF-8 is shown."""

F = TypeVar("F", bound=Callable[..., Any])


def html_option(command: F) -> F:
    """Give a command the options of a page."""
    command = click.option(
        "--open", "open_page", is_flag=True, help="Open the page of --html in a browser when it is written."
    )(command)
    return click.option(
        "--html", type=click.Path(), metavar="FILE",
        help="Write the report to FILE as a self-contained HTML page. This needs pip install 'onnx-migrate[html]'.",
    )(command)  # fmt: skip


def open_at_end(html: str | None, wanted: bool) -> None:
    """Let the page at a path be opened when the command ends, if it is written until then.

    Raises click.UsageError where it is `wanted` without a path.
    """
    if not wanted:
        return
    if html is None:
        raise click.UsageError("--open shows the page that --html writes; add --html FILE")
    before = _stamp(html)

    def show() -> None:
        import webbrowser  # which takes 30 ms to load

        if _stamp(html) != before and not webbrowser.open(Path(html).absolute().as_uri()):
            print_remarks(["no browser could be started for the page"], html)

    cast("click.RichContext", click.get_current_context()).call_on_close(show)


def _stamp(path: str) -> tuple[int, int] | None:
    """Return what differs once a file was written anew, None where there is none."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns


def page_at(path: str) -> SideFile:
    """Return the page at a path, which may replace another one. Raises UsageError if the template library is missing."""
    from onnx_migrate.report.html.render import check_available

    check_available()
    return SideFile("--html", path, "an HTML page", lambda head: head.startswith(b"<!DOCTYPE html>"))


def model_page(report: ReportData | Failure, *, output: str | None) -> Iterator[bytes]:
    """Yield the page of one model."""
    from onnx_migrate.report.html.render import model_page as render

    yield render(report, output).encode("utf-8", _LENIENT)


def comparison_page(original: str, other: str, verdict: Verdict) -> Iterator[bytes]:
    """Yield the page of two models that were compared: their figures, the nodes that differ first, and the verdict."""
    from onnx_migrate.files import load
    from onnx_migrate.report.html.render import comparison_page as render

    yield render(load(original), load(other), verdict).encode("utf-8", _LENIENT)


def difference_page(models: MatchedModels) -> Iterator[bytes]:
    """Yield the page of two models beside each other, with all that differs."""
    from onnx_migrate.report.html.render import difference_page as render

    yield render(models.view, models.difference.summary).encode("utf-8", _LENIENT)


def inspection_page(found: Inspection) -> Iterator[bytes]:
    """Yield the page of an inspected model: the text of the command, and the graph with the planned changes."""
    import io

    from rich.console import Console

    from onnx_migrate.cli.output.inspection_view import print_inspection
    from onnx_migrate.inspection import load_structure
    from onnx_migrate.report.html.render import inspection_page as render
    from onnx_migrate.report.planned_view import planned_bodies

    text = io.StringIO()
    print_inspection(found, Console(file=text, width=100, color_system=None), everything=False)
    model, _ = load_structure(found.model)
    changes = found.plan.changes if found.plan is not None else ()
    errors = [found.refusal, *(item.error for item in found.reachability.refusals)]
    refused = [error.where for error in errors if error is not None and error.where is not None]
    bodies = list(planned_bodies(model, changes, refused))
    yield render(found.model, found.summary, text.getvalue(), bodies, changes).encode("utf-8", _LENIENT)


def write_failure_page(path: str, error: MigrateError, model: str) -> None:
    """Write the page of a model that was not migrated; an error of writing is printed, but does not set the exit code."""
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.errors import SaveError
    from onnx_migrate.report.failure import Failure

    pieces = model_page(Failure.of(model, error), output=None)
    try:
        with published({page_at(path): pieces}):
            pass
    except SaveError as unwritten:
        if str(unwritten) != str(error):  # the caller already reported a failure of the page
            fail(unwritten, path, as_json=False)


class BatchPage:
    """Collects the page of a batch; the parts of the models are kept in a temporary file until the end.

    Models without a proved result come first, the worst at the top, and models of one status are listed by name.
    """

    def __init__(self, path: str) -> None:
        self._page = page_at(path)
        self._page.check()
        self._rows: dict[str, tuple[Row, int, int]] = {}
        self._parts = tempfile.TemporaryFile()  # noqa: SIM115

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a model."""
        from onnx_migrate.errors import saving
        from onnx_migrate.report.html.contents import Row
        from onnx_migrate.report.html.render import model_part

        model, state, report = outcome.source, outcome.state, outcome.report
        part = model_part(report, model, state, outcome.output).encode("utf-8", _LENIENT)
        row = Row.of(
            report, model, state, status=outcome.verification, why=outcome.doubt, seconds=round(outcome.seconds, 3)
        )  # fmt: skip
        self._rows[model] = row, self._parts.tell(), len(part)
        with saving(tempfile.gettempdir()):
            self._parts.write(part)

    def finish(self, totals: Mapping[str, Any]) -> None:
        """Write the page. Raises SaveError."""
        from onnx_migrate.batching.job import MIGRATED, STATES, UNCHANGED
        from onnx_migrate.messages import collected_remarks
        from onnx_migrate.report.html.render import batch_page

        rank = {**{state: number for number, state in enumerate(STATES)}, MIGRATED: 0, UNCHANGED: 0}
        entries = sorted(self._rows.values(), key=lambda entry: (-rank[entry[0].state], entry[0].model))
        with self._parts:
            parts = (self._read(start, size) for _, start, size in entries)
            page = batch_page([row for row, _, _ in entries], parts, totals)
            with collected_remarks() as remarks:
                try:
                    with published({self._page: (piece.encode("utf-8", _LENIENT) for piece in page)}):
                        pass
                finally:
                    print_remarks(remarks, self._page.path)

    def close(self) -> None:
        """Forget the page."""
        self._parts.close()

    def _read(self, start: int, size: int) -> str:
        self._parts.seek(start)
        return self._parts.read(size).decode()
