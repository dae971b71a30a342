"""The progress of a batch on stderr, its JSON lines and page, and the summary at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack

import rich_click as click
from rich.console import Console
from rich.live import Live

from onnx_migrate.batching import Job, Outcome, Summary, Watcher
from onnx_migrate.batching.job import MIGRATED
from onnx_migrate.batching.run import MODEL_SECONDS
from onnx_migrate.cli.output.batch_summary import (
    Ended,
    csv_text,
    markdown_text,
    next_steps,
    print_table,
    slowest,
    verification_text,
)
from onnx_migrate.cli.output.ci import Follower, finish_all
from onnx_migrate.cli.output.failure import line
from onnx_migrate.cli.output.html import BatchPage
from onnx_migrate.cli.output.json_lines import JsonLines
from onnx_migrate.cli.output.preview import difference_of
from onnx_migrate.cli.output.running_models import RunningModels
from onnx_migrate.cli.output.side_files import check_path_conflicts
from onnx_migrate.cli.stop_signals import check_stopped
from onnx_migrate.messages import count_of, markup_of
from onnx_migrate.report.data import ReportData
from onnx_migrate.url import identity, is_url

__all__ = ["BatchProgress"]


class BatchProgress(Watcher):
    """Prints a line on stderr for each model that fails or is unverified, unless `annotated`: annotations are such lines.

    On a terminal it shows the running models, the rate and the time left; elsewhere it prints a line every 30 seconds.
    Reports are written to `lines`, to `html` as a page, and to `more`; `written` are the other paths of these. `timeout` is the
    limit of a model in seconds, `form` one of `FORMATS`. Raises UsageError or SaveError if they cannot be written.
    """

    def __init__(
        self,
        *,
        lines: JsonLines | None,
        quiet: bool,
        html: str | None = None,
        more: Sequence[Follower] = (),
        written: Sequence[str] = (),
        annotated: bool = False,
        timeout: float = MODEL_SECONDS,
        form: str = "table",
    ) -> None:
        self.summary = Summary()
        self._written = [*written, *([] if html is None else [html])]
        self._quiet, self._annotated, self._form = quiet, annotated, form
        self._lines = lines
        self._console = Console(stderr=True)
        self.views = html is not None
        self._followers = [*([] if html is None else [BatchPage(html)]), *more]
        self._running = RunningModels(timeout)
        self._entries: list[Ended] = []
        self._would_change: list[str] = []
        self._stack = ExitStack()
        self._live: Live | None = None

    def __enter__(self) -> BatchProgress:
        if not self._quiet and self._console.is_terminal:
            self._live = Live(console=self._console, get_renderable=self._running.picture, transient=True)
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
        self._running.plan(total)

    def started(self, job: Job) -> None:
        """Show a model as running. Ends the command here if a signal asked for that and was lost."""
        check_stopped()
        self._running.begin(job.source)

    def waiting(self) -> None:
        """Print how far the batch has come, every 30 seconds where there is no terminal."""
        if self._live is None and not self._quiet and (text := self._running.due_line()):
            click.echo(f"onnx-migrate: {text}", err=True)

    def ended(self, outcome: Outcome) -> None:
        """Count a model, write its JSON line and, if it failed, print why. Raises SaveError."""
        self._running.end(outcome.source)
        if self._lines is not None:
            self._lines.write(outcome.as_dict())
        for follower in self._followers:
            follower.add(outcome)
        self._entries.append(Ended.of(outcome))
        if outcome.output is None and isinstance(outcome.report, ReportData) and outcome.kind == MIGRATED:
            self._would_change.append(f"{outcome.source}: {difference_of(outcome.report)}")
        if outcome.why and not self._annotated:
            self._print(line(outcome.code or outcome.state, outcome.source, outcome.why))
        for text in outcome.remarks:
            self._print(line(code="untidy", model=outcome.source, message=text))

    def _print(self, text: str) -> None:
        if self._live is not None:
            self._console.print(markup_of(text), highlight=False, soft_wrap=True)
        else:
            click.echo(text, err=True)

    def finished(self, summary: Summary) -> None:
        """Write the JSON line of the totals, the page, and the reports for CI. Raises SaveError."""
        self.summary = summary
        try:
            if self._lines is not None:
                self._lines.write(summary.as_dict())
        finally:
            finish_all(self._followers, summary.as_dict())

    def summarise(self, summary: Summary, *, out_dir: bool = False) -> None:
        """Print the end of the batch in its form; `out_dir` is whether a journal lets the command go on with --resume.

        It goes to stdout, or to stderr if the JSON lines go to stdout. Beside Markdown and CSV all else goes to stderr.
        """
        piped = self._lines is not None and self._lines.to_stdout
        if self._form != "table":
            text = csv_text(self._entries) if self._form == "csv" else markdown_text(summary, self._entries)
            click.echo(text, err=piped, nl=False)
        console = self._console if piped or self._form != "table" else Console()
        for change in sorted(self._would_change):
            text = " ".join(f"would change: {change}".split())
            console.print(markup_of(text), highlight=False, soft_wrap=True)
        if self._form == "table":
            print_table(console, summary, self._entries, running=len(self._running))
        texts = [_pace(summary), verification_text(summary), slowest(self._entries)]
        texts += next_steps(summary, out_dir=out_dir)
        for text in filter(None, texts):
            console.print(markup_of(text), highlight=False, soft_wrap=True)


def _pace(summary: Summary) -> str:
    """Return how many models ended and how fast; those that an earlier run had done took no time."""
    tried = summary.ended - summary.cached
    cached = f" ({summary.cached} of them by an earlier run)" if summary.cached else ""
    rate = f", {tried / summary.seconds:.1f} per second" if tried and summary.seconds else ""
    models = count_of(summary.models, "model")
    return f"{summary.ended} of {models}{cached} in {summary.seconds:.1f} s{rate}"
