"""`onnx-migrate MODEL OUTPUT`: loads, migrates, verifies and saves one model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.arguments import arguments
from onnx_migrate.cli.options.config import config_flags, config_option, configured, find_own_passes
from onnx_migrate.cli.options.model_options import DynamicBatchCommand, model_option, model_options
from onnx_migrate.cli.output.ci import Follower, ci_options, finish_all, followers
from onnx_migrate.cli.output.depfile import dependencies, depfile_at, rules
from onnx_migrate.cli.output.html import html_option, model_page, open_at_end, page_at, write_failure_page
from onnx_migrate.cli.output.preview import Call, print_diff
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.cli.output.side_files import SideFile, check_path_conflicts, paths_of, published
from onnx_migrate.cli.output.streams import (
    STREAM,
    error_with_stdin_name,
    read_source,
    to_stdout,
    with_stdin_name,
)
from onnx_migrate.cli.process_limits import limited
from onnx_migrate.cli.standard_streams import reporting
from onnx_migrate.safe_open.transfers import transfers_within

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.report import Report
    from onnx_migrate.report.diff_nodes import DiffEntry

__all__ = ["migrate"]


@click.command(cls=DynamicBatchCommand)
@click.argument("model", type=click.Path(readable=False))
@click.argument("output", type=click.Path(), required=False, metavar="OUTPUT")
@click.option(
    "-o",
    "--output",
    "output_option",
    type=click.Path(),
    help="The file for the result; the same as OUTPUT.",
)
@click.option("--in-place", is_flag=True, help="Replace MODEL with the result.")
@model_options
@model_option("timeout")
@model_option("memory_limit")
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing, and exit with 1 if the model would change. A model that only onnxsim would change counts as "
    "unchanged, unless you pass --opset, --for or --simplify.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Do everything but write. The report and the exit code are those of a real run.",
)
@click.option(
    "--diff",
    is_flag=True,
    help='Print how the models differ, node by node, instead of the report. With --json it is the field "diff".',
)
@click.option(
    "--depfile",
    type=click.Path(),
    metavar="FILE",
    help="Write a dependency file for make or ninja. It lists the files that OUTPUT was made from.",
)
@html_option
@ci_options
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Print the long report: every changed node, operator, note and run."
)
@click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors, and a warning if the result is unverified."
)
def migrate(
    model: str, output: str | None, output_option: str | None, in_place: bool, check: bool, dry_run: bool, diff: bool,
    depfile: str | None, html: str | None, junit: str | None, annotations: str, allow_unverified: bool, config: str | None,
    open_page: bool, as_json: bool, verbose: bool, quiet: bool, **options: Any,
) -> int:  # fmt: skip
    """Convert MODEL, prove that it computes the same, and write OUTPUT.

    MODEL and OUTPUT are files or URLs; - is standard input or output.

    \b
    load → convert every node to the opset → make dims dynamic (--dynamic)
         → clean up → simplify → verify → save

    onnx-migrate writes nothing unless every step succeeds: an existing OUTPUT then stays unchanged.

    \b
    Exit codes:
        0  done; if the result is unverified, a line on stderr says so
        1  the model cannot be converted, or a step failed; nothing is
           written but the --html page. With --check: the model would
           change. With --best-effort: written, but not all is converted
        2  wrong usage
        3  the numbers differ, or the result does not load. With
           --verify=require, --check, --junit or --annotations also
           if it is unverified (--allow-unverified), and with --run-in
           also if it does not run right in that runtime
        4  the file is not an ONNX model, or not a valid one
        5  files are written, but printing to standard output failed
    """
    options = configured(options, model)
    call = Call(
        model, output, output_option, in_place, check, dry_run, diff, depfile, html, junit, config, as_json, verbose, quiet,
        split=bool(options.get("split")),
    )  # fmt: skip
    open_at_end(html, open_page)
    external: bool = options["save_as_external_data"]
    target = call.target
    if target == STREAM and external:
        raise click.UsageError(
            "--save-as-external-data writes two files, but stdout takes one; name a file as OUTPUT"
        )
    if target == STREAM and call.split:
        raise click.UsageError("--split writes two models, but stdout takes one; name a file as OUTPUT")
    migrate_arguments = arguments(options)
    from onnx_migrate.cli.output.failure import print_remarks
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.messages import collected_remarks

    if not call.quiet:  # now, as they may not be loadable when the model has its place
        import rich.console  # noqa: F401

        import onnx_migrate.report.text  # noqa: F401
    # The folder of the command may hold the modules of passes.
    find_own_passes(options)
    page, ci_reports = None, []
    with (
        ProgressLine(call.quiet or call.as_json) as progress,
        transfers_within(migrate_arguments["timeout"]),
        collected_remarks() as remarks,
    ):
        try:
            sides = _side_files(call, migrate_arguments)
            ci_reports = followers(call.junit, annotations, check=check, allow_unverified=allow_unverified)
            page = call.html
            migration = _run(call, migrate_arguments, sides, progress, external=external)
        except MigrateError as error:
            progress("")
            code = _failed(error, call, page)
            return max(code, _follow(ci_reports, call, error))
        finally:
            print_remarks(remarks, call.model)
    failed, verdict = _follow(ci_reports, call, migration), migration.report.verification
    unverified = verdict is not None and verdict.kind.value == "unverified"
    _tell(call, migration, f"the model is written to {target}" if call.files else "")
    if failed or migration.changes or migration.report.left:
        return 1
    return 3 if unverified and (check or ci_reports) and not allow_unverified else 0


@dataclass(frozen=True)
class _Done:
    """The result of a migration: its report, whether --check finds changes, and the differences that --diff shows."""

    report: Report
    changes: bool
    differences: list[DiffEntry]


def _follow(told: Sequence[Follower], call: Call, ended: _Done | MigrateError) -> int:
    """Tell those that follow a run how it ended; return the exit code, not 0 where they cannot write."""
    if not told:
        return 0
    from onnx_migrate.batching.job import MIGRATED, UNCHANGED, Job, Outcome, Summary
    from onnx_migrate.batching.work import refused
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.errors import MigrateError

    model = "<stdin>" if call.model == STREAM else call.model
    if isinstance(ended, MigrateError):
        outcome = refused(Job(model, call.target), ended)
    else:
        # With --check, nothing is written, so the report's outcome does not count.
        kind = (MIGRATED if ended.changes else UNCHANGED) if call.check else ended.report.outcome
        outcome = Outcome.of(model, call.target, kind, ended.report)
        outcome = replace(outcome, seconds=sum(ended.report.seconds.values()))
    totals = Summary(models=1, seconds=outcome.seconds, complete=True)
    totals.add(outcome)
    for follower in told:
        follower.add(outcome)
    try:
        finish_all(told, totals.as_dict())
    except MigrateError as error:
        return fail(error, model, as_json=False)
    return 0


def _side_files(call: Call, given: dict[str, Any]) -> tuple[SideFile | None, SideFile | None]:
    """Return the page and the dependency file, each None without its option.

    Raises UsageError or SaveError where they or the result cannot be written.
    """
    from onnx_migrate.files import check_target
    from onnx_migrate.url import is_url, resolve_file_url

    if call.files and (is_url(call.model) or os.path.isfile(resolve_file_url(call.model))):
        check_target(call.files[0], source=call.model, in_place=call.in_place)
    page = page_at(call.html) if call.html else None
    dependency_file = depfile_at(call.depfile) if call.depfile else None
    check_path_conflicts([*call.files, *call.beside], (*paths_of(given["input_data"]), call.config))
    # Before the migration, so that its work is not lost on a path that cannot be written.
    for side in filter(None, (page, dependency_file)):
        side.check()
    return page, dependency_file


def _run(
    call: Call,
    given: dict[str, Any],
    sides: tuple[SideFile | None, SideFile | None],
    progress: ProgressLine,
    *,
    external: bool,
) -> _Done:
    """Load, migrate and write the model. Raises MigrateError, and then nothing is written."""
    from onnx_migrate.files import check_not_source, load
    from onnx_migrate.migration import migrate as run
    from onnx_migrate.url import is_url

    page, depfile = sides
    first = "download" if is_url(call.model) else "load"
    with limited(given["timeout"], given["memory_limit"], first) as progress.begins:
        original = load(read_source(call.model))
        if not call.in_place:
            check_not_source(call.files[: 1 + external], original.origin)
        check_not_source(call.beside, original.origin)
        migration = with_stdin_name(run(original, **given, progress=progress.follow))
        saved_to = None if call.in_place else call.target
        flags = (*config_flags(), *(["--save-as-external-data"] if external else []), *call.saving)
        report = migration.report.saved(saved_to, *flags)
        # The comparison of contents counts, because a changed file may hold the same model.
        changes = call.check and not migration.same_as_original()
        made_from = dependencies(original, call.model, given) if depfile else []
        differences = migration.differences() if call.diff else []

        def with_side_files(size: int | None) -> AbstractContextManager[None]:
            """Publish the side files, for a result of so many bytes, and note its size."""
            nonlocal report
            if call.files:
                # The size of the file is only known now, and the page shows it.
                report = report.written(original.file_bytes, size)
            contents: dict[SideFile, Iterable[bytes]] = {}
            if depfile:
                contents[depfile] = [rules(call.models, made_from)]
            if page:
                contents[page] = model_page(migration.viewed(report), output=call.target)
            return published(contents)

        if call.target == STREAM:
            to_stdout(migration, with_side_files)
        elif call.target is not None:
            progress("saving")
            migration.save(
                call.target,
                external=external,
                in_place=call.in_place,
                beside=with_side_files,
            )
        else:
            # A preview writes its side files, too.
            with with_side_files(None):
                pass
    return _Done(report, changes, differences)


def _tell(call: Call, done: _Done, kept: str) -> None:
    """Print what was done, and on stderr a line if the result is unverified; `kept` says what is written."""
    from onnx_migrate.cli.output.failure import warn_unverified
    from onnx_migrate.json_form import json_of

    # The report goes to stderr, because stdout holds the model.
    report, piped = done.report, call.target == STREAM
    warn_unverified(report.verification, report.model if call.model == STREAM else call.model, kept)
    with reporting(kept):
        if call.as_json:
            checked: dict[str, Any] = {"would_change": done.changes} if call.check else {}
            rest = {"rest": call.rest} if call.split else {}
            checked |= {"diff": [json_of(entry) for entry in done.differences]} if call.diff else {}
            text = json.dumps({**report.as_dict(), "output": call.target, **rest, **checked}, indent=2)
            click.echo(text, err=piped)
        elif call.quiet:
            pass
        elif call.diff:
            print_diff(done.differences, report.model, call.target, err=piped)
        else:
            from rich.console import Console

            from onnx_migrate.report.text import print_report

            if call.check:
                click.echo(
                    "the model would change" if done.changes else "the model would not change", err=piped
                )

            print_report(report, Console(stderr=piped), target=call.target or "", everything=call.verbose)
        # A full disk must show as an error here, and not when Python ends.
        sys.stdout.flush()


def _failed(error: MigrateError, call: Call, page: str | None) -> int:
    """Report an error, with --html as a page too, and return the exit code."""
    from onnx_migrate.cli.output.failure import fail

    model = call.model
    if model == STREAM:
        error, model = error_with_stdin_name(error), "<stdin>"
    if page:
        write_failure_page(page, error, model)
    return fail(error, model, as_json=call.as_json)
