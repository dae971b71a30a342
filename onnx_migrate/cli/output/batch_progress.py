"""The progress of a batch on stderr, its JSON lines and page, and the summary at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import rich_click as click
from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from onnx_migrate.batching import Job, Outcome, Summary, Watcher
from onnx_migrate.batching.job import MIGRATED, UNVERIFIED
from onnx_migrate.cli.output.ci import Follower, finish_all
from onnx_migrate.cli.output.failure import line
from onnx_migrate.cli.output.html import BatchPage
from onnx_migrate.cli.output.json_lines import JsonLines
from onnx_migrate.cli.output.preview import difference_of
from onnx_migrate.cli.output.side_files import check_path_conflicts
from onnx_migrate.cli.stop_signals import check_stopped
from onnx_migrate.messages import count_of, markup_of
from onnx_migrate.report.data import ReportData
from onnx_migrate.url import identity, is_url

__all__ = ["BatchProgress"]

_SHOWN = 8
"""Number of running models shown."""

_COLOURS = {"migrated": "green", "unchanged": "", "refused": "yellow", "invalid": "red", "failed": "red"}


class BatchProgress(Watcher):
    """Prints a line for each failure on stderr and, on a terminal, the running models, the rate and the time left.

    Reports are written to `lines`, to `html` as a page, and to `more`; `written` are the other paths of these. Raises UsageError
    or SaveError if they cannot be written.
    """

    def __init__(
        self,
        *,
        lines: JsonLines | None,
        quiet: bool,
        html: str | None = None,
        more: Sequence[Follower] = (),
        written: Sequence[str] = (),
    ) -> None:
        self.summary = Summary()
        self._written = [*written, *([] if html is None else [html])]
        self._quiet = quiet
        self._lines = lines
        self._console = Console(stderr=True)
        self._followers = [*([] if html is None else [BatchPage(html)]), *more]
        self._running: dict[str, None] = {}
        self._would_change: list[str] = []
        self._stack = ExitStack()
        self._live: Live | None = None
        self._progress = Progress(
            BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn(), TextColumn("{task.description}"),
            console=self._console,
        )  # fmt: skip
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> BatchProgress:
        if not self._quiet and self._console.is_terminal:
            self._live = Live(console=self._console, get_renderable=self._picture, transient=True)
            self._stack.enter_context(self._live)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        for follower in self._followers:
            follower.close()
        if self._lines is not None:
            self._lines.close()

    def placed(self, outputs: Iterable[str]) -> None:
        """Refuse to write lines or page where a result will be. Raises UsageError."""
        if self._written:
            own = {identity(name) for name in self._written}
            local = (output for output in outputs if not is_url(output))
            results = (name for output in local for name in (output, f"{output}.data"))
            check_path_conflicts(self._written, [name for name in results if identity(name) in own])

    def planned(self, total: int) -> None:
        """Set the number of models, and begin the JSON lines. Raises SaveError."""
        if self._lines is not None:
            self._lines.open()
        self._progress.update(self._task, total=total)

    def started(self, job: Job) -> None:
        """Show a model as running. Ends the command here if a signal asked for that and was lost."""
        check_stopped()
        self._running[job.source] = None

    def ended(self, outcome: Outcome) -> None:
        """Count a model, write its JSON line and, if it failed, print why. Raises SaveError."""
        self._running.pop(outcome.source, None)
        self._progress.advance(self._task)
        if self._lines is not None:
            self._lines.write(outcome.as_dict())
        for follower in self._followers:
            follower.add(outcome)
        if outcome.output is None and isinstance(outcome.report, ReportData) and outcome.kind == MIGRATED:
            self._would_change.append(f"{outcome.source}: {difference_of(outcome.report)}")
        if not outcome.done:
            self._print(line(outcome.code, outcome.source, outcome.reason))
        elif outcome.verification == UNVERIFIED:
            self._print(line(UNVERIFIED, outcome.source, outcome.doubt))
        for text in outcome.remarks:
            self._print(line(code="untidy", model=outcome.source, message=text))

    def _print(self, text: str) -> None:
        if self._live is not None:
            self._console.print(markup_of(text), highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def finished(self, summary: Summary) -> None:
        """Write the JSON line of the totals, and what else is written at the end. Raises SaveError."""
        self.summary = summary
        try:
            if self._lines is not None:
                self._lines.write(summary.as_dict())
        finally:
            finish_all(self._followers, summary.as_dict())

    def summarise(self, summary: Summary) -> None:
        """Print the models that --check found to change, and a table of outcomes and reasons.

        They go to stdout, or to stderr if the JSON lines go to stdout.
        """
        console = self._console if self._lines is not None and self._lines.to_stdout else Console()
        for change in sorted(self._would_change):
            text = " ".join(f"would change: {change}".split())
            console.print(markup_of(text), highlight=False, soft_wrap=True)
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("models", justify="right")
        table.add_column("outcome")
        table.add_column("reason")
        for (kind, code), count in sorted(summary.reasons.items()):
            colour = _COLOURS[kind]
            name = summary.wording(kind)
            table.add_row(str(count), f"[{colour}]{name}[/]" if colour else name, code)
        if not summary.complete:
            table.add_row(str(summary.models - summary.ended), "[red]not started[/]", "")
        if summary.models:
            console.print(table)
        console.print(_pace(summary), highlight=False)
        if summary.verification or summary.loadable or summary.left:
            console.print(summary.text, highlight=False)

    def _picture(self) -> Group:
        names = list(self._running)
        more = [Text(f"  … and {len(names) - _SHOWN} more", style="dim")] if len(names) > _SHOWN else []
        return Group(*(Text(f"  {name}", style="dim") for name in names[:_SHOWN]), *more, self._progress)


def _pace(summary: Summary) -> str:
    """Return how many models ended and how fast; those that an earlier run had done took no time."""
    tried = summary.ended - summary.cached
    cached = f" ({summary.cached} of them by an earlier run)" if summary.cached else ""
    rate = f", {tried / summary.seconds:.1f} per second" if tried and summary.seconds else ""
    models = count_of(summary.models, "model")
    return f"{summary.ended} of {models}{cached} in {summary.seconds:.1f} s{rate}"


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Show the number of models per second."""
        return Text(f"{task.speed:.1f}/s" if task.speed else "–/s")
