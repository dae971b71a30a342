"""`onnx-migrate batch SRC...`: migrates many models."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.arguments import arguments
from onnx_migrate.cli.options.config import config_flags, config_option, configured, find_own_passes
from onnx_migrate.cli.options.model_options import DynamicBatchCommand, model_option, model_options
from onnx_migrate.cli.output.ci import ci_options, followers, writes_annotations
from onnx_migrate.cli.output.html import html_option, open_at_end
from onnx_migrate.cli.output.side_files import check_path_conflicts, paths_of
from onnx_migrate.cli.output.streams import STREAM, with_listed
from onnx_migrate.cli.standard_streams import reporting

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from onnx_migrate.batching import Summary
    from onnx_migrate.cli.output.json_lines import JsonLines
    from onnx_migrate.errors import MigrateError

__all__ = ["batch"]


@click.command(cls=DynamicBatchCommand)
@click.argument("sources", type=click.Path(readable=False), nargs=-1, required=True, metavar="SRC...")
@click.option(
    "--out-dir",
    type=click.Path(),
    metavar="DIR",
    help="Write the results to this folder, with the structure of the source folders.",
)
@click.option("--in-place", is_flag=True, help="Replace each model with its result, if the two differ.")
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing, list the models that would change, and exit with 1 if there are any. A model that only onnxsim would "
    "change counts as unchanged, unless you pass --opset, --for or --simplify.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="The number of models that are migrated at a time. The default is the number of processors.",
)
@click.option(
    "--scheduler", metavar="ADDRESS",
    help="Run on the workers of a Dask cluster, such as tcp://host:8786. This needs pip install 'onnx-migrate[dask]', and "
    "the workers need access to the same files.",
)  # fmt: skip
@click.option(
    "--fail-fast/--keep-going",
    default=False,
    help="Stop at the first model that cannot be migrated, or go on.",
)
@click.option(
    "--resume", is_flag=True,
    help="Skip models that an earlier run migrated with the same options, if model and result have not changed.",
)  # fmt: skip
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "markdown", "csv"]),
    default="table",
    show_default=True,
    help="The format of the summary on standard output. A table counts the models by status and reason; markdown and csv have a "
    "row for each model.",
)
@model_option(
    "timeout",
    default=120,
    help="The time limit of each model. A model that takes three quarters of it, or crashes its worker, gets a second try in the "
    "remaining time. Simplifier and verification then have separate processes.",
)
@model_option(
    "memory_limit",
    help="The memory limit of each worker process. By default the workers share three quarters of the machine's memory.",
)  # fmt: skip
@click.option(
    "--json-lines", type=click.Path(), metavar="FILE",
    help="Write one JSON object per line to FILE (- is stdout): a report for each model, then the totals.",
)  # fmt: skip
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object with the reports of all models and the totals.",
)
@html_option
@ci_options
@config_option
@click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors, and a warning for each unverified result."
)
@model_options
def batch(**options: Any) -> int:
    """Migrate many models.

    Each SRC is a file, a folder or a glob pattern, as a path or a URL. With - batch reads them from standard input, one in
    each line. Each model has a worker process with a time and a memory limit: a model that crashes or hangs does not affect
    the others. The folder of --out-dir also holds a journal, so that --resume can continue after an interruption.

    \b
    Exit codes:
        0    all models are done, and every result is verified
        1    some cannot be migrated. With --check: some would change.
             With --best-effort: in some, not all is converted
        2    wrong usage
        3    all models are done, but results are unverified; each has a
             line with the reason. --allow-unverified exits with 0
        5    files are written, but printing to standard output failed
        130  interrupted; every file that was written is complete
    """
    if sum((options["out_dir"] is not None, options["in_place"], options["check"])) != 1:
        raise click.UsageError("choose one of --out-dir DIR, --in-place, and --check, which writes nothing")
    if options["resume"] and options["out_dir"] is None:
        raise click.UsageError("--resume needs --out-dir, where the journal of the earlier run is")
    if options["form"] != "table" and (options["as_json"] or options["json_lines"] == STREAM):
        raise click.UsageError("--format and JSON both print to standard output; choose one")
    if options["as_json"] and options["json_lines"] == STREAM:
        raise click.UsageError("--json and --json-lines - both print to standard output; choose one")
    open_at_end(options["html"], options["open_page"])
    options["sources"] = with_listed(options["sources"])
    arguments(options)  # options that contradict each other are reported before any work
    gc.enable()
    from onnx_migrate.batching.journal import NAME as JOURNAL
    from onnx_migrate.cli.output.batch_progress import BatchProgress
    from onnx_migrate.errors import SaveError, UsageError
    from onnx_migrate.url import is_url, resolve_file_url

    find_own_passes(options)
    interrupted = False
    try:
        folder = options["out_dir"]
        journal = (
            None if folder is None or is_url(folder) else os.path.join(resolve_file_url(folder), JOURNAL)
        )
        written = [options["json_lines"], options["html"], options["junit"]]
        check_path_conflicts(written, (*paths_of(options["input_data"]), options["config"], journal))
        progress = BatchProgress(
            lines=_lines(options),
            quiet=options["quiet"],
            html=options["html"],
            more=followers(
                options["junit"],
                options["annotations"],
                check=options["check"],
                allow_unverified=options["allow_unverified"],
            ),
            annotated=writes_annotations(options["annotations"]),
            timeout=options["timeout"],
            form=options["form"],
            written=list(filter(None, (options["json_lines"], options["junit"]))),
        )
        from onnx_migrate.cli.options.cluster import cluster

        with cluster(options["scheduler"]) as executor, progress:
            _run(options, progress, executor)
    except (UsageError, SaveError) as error:
        return _refused(error)
    except KeyboardInterrupt:
        click.echo("onnx-migrate: interrupted", err=True)
        interrupted = True
    summary = progress.summary
    if not options["quiet"]:
        with reporting("the lines before list the written files"):
            progress.summarise(summary, out_dir=journal is not None)
    if interrupted:
        return 130
    if not summary.done or (options["check"] and summary.outcomes["migrated"]):
        return 1
    return 0 if summary.ok else 3


def _lines(options: dict[str, Any]) -> JsonLines | None:
    """Return what the reports are written to as JSON. Raises UsageError or SaveError."""
    from onnx_migrate.cli.output.json_lines import JsonLines, WholeJson

    if options["as_json"]:
        return WholeJson()
    return None if options["json_lines"] is None else JsonLines(options["json_lines"])


def _run(options: dict[str, Any], progress: Any, executor: Executor | None) -> Summary:
    from onnx_migrate.batching import Job, batch, find, run_jobs

    def arguments_of(model: str) -> dict[str, Any]:
        # The config file may have overrides for this model.
        own = configured(options, model)
        return {**arguments(own), "external": own["save_as_external_data"], "flags": config_flags()}

    common = {
        "executor": executor,
        "jobs": options["jobs"],
        "fail_fast": options["fail_fast"],
        "allow_unverified": options["allow_unverified"],
        "timeout": options["timeout"],
        "memory_limit": arguments(options)["memory_limit"],
        "watcher": progress,
    }
    if options["out_dir"] is not None:
        return batch(
            options["sources"],
            options["out_dir"],
            resume=options["resume"],
            arguments_of=arguments_of,
            **common,
        )
    jobs = []
    for path, _ in find(options["sources"]):
        job_arguments = arguments_of(path)
        external, flags, in_place = (
            job_arguments.pop("external"),
            job_arguments.pop("flags"),
            options["in_place"],
        )
        jobs.append(Job(path, path if in_place else None, job_arguments, external, in_place, flags=flags))
    return run_jobs(jobs, **common)


def _refused(error: MigrateError) -> int:
    from onnx_migrate.report.failure import exit_code

    click.echo(f"onnx-migrate: {error.code}: {error.with_hint}", err=True)
    return exit_code(error)
