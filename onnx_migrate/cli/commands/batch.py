"""`onnx-migrate batch SRC...`: many models."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.arguments import arguments
from onnx_migrate.cli.options.cluster import cluster
from onnx_migrate.cli.options.config import config_option, configured
from onnx_migrate.cli.options.dynamic_batch_option import DynamicBatchCommand
from onnx_migrate.cli.options.model_options import model_options
from onnx_migrate.cli.options.path_conflicts import check_path_conflicts
from onnx_migrate.cli.output.html import html_option

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from onnx_migrate.batching import Summary
    from onnx_migrate.errors import MigrateError

__all__ = ["batch"]


@click.command(cls=DynamicBatchCommand)
@click.argument("sources", type=click.Path(readable=False), nargs=-1, required=True, metavar="SRC...")
@click.option(
    "--out-dir", type=click.Path(), metavar="DIR", help="Where results go; folders keep their structure."
)
@click.option("--in-place", is_flag=True, help="Write each result over its model, if it is another.")
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; list the models that would change, and exit 1 if there are any.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Models at a time; by default as many as processors.",
)
@click.option(
    "--scheduler", metavar="ADDRESS",
    help="Let the workers of a Dask cluster do it, as in tcp://host:8786; with the extra onnx-migrate[dask]. They must "
    "see the same files, and set their own limits.",
)  # fmt: skip
@click.option(
    "--fail-fast/--keep-going", default=False, help="Stop at the first model that is not migrated, or go on."
)
@click.option(
    "--resume", is_flag=True,
    help="Pass over models that an earlier run migrated from the same content with the same options.",
)  # fmt: skip
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), default=600, show_default=True,
    help="For each model; one that takes longer is tried once more with its native stages apart.",
)  # fmt: skip
@click.option(
    "--memory-limit", type=click.FloatRange(min=0, min_open=True), metavar="GB",
    help="For each worker; by default three quarters of the machine's over all.",
)  # fmt: skip
@click.option(
    "--json-lines", type=click.Path(), metavar="FILE",
    help="Write a JSON object a line to FILE, or - for stdout: each model's report, then the totals.",
)  # fmt: skip
@html_option
@config_option
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@model_options
def batch(**options: Any) -> int:
    """Migrate many models: files, folders and glob patterns, by path or by URL.

    Each runs in a worker process with limits of time and memory, so that a crash, a hang or a bomb costs one
    model. --out-dir gets the results, and a journal by which --resume goes on after an interruption.

    \b
    Exit codes:
        0    all are done
        1    some were refused or failed; with --check, some are not as they should be
        2    wrong usage
        130  interrupted; what is written is whole
    """
    if sum((options["out_dir"] is not None, options["in_place"], options["check"])) != 1:
        raise click.UsageError("say where to write: --out-dir DIR, --in-place, or --check to write nothing")
    if options["resume"] and options["out_dir"] is None:
        raise click.UsageError("--resume goes by the journal in --out-dir")
    arguments(options)  # what contradicts itself is said before any work
    from onnx_migrate.cli.output.batch_progress import BatchProgress
    from onnx_migrate.errors import SaveError, UsageError

    if options["extra"]:
        sys.path.append(os.getcwd())  # a console script, unlike `python -m`, does not look there
    interrupted = False
    try:
        check_path_conflicts(
            (options["json_lines"], options["html"]), (options["input_data"], options["config"])
        )
        progress = BatchProgress(lines=options["json_lines"], quiet=options["quiet"], html=options["html"])
        with cluster(options["scheduler"]) as executor, progress:
            _run(options, progress, executor)
    except (UsageError, SaveError) as error:
        return _refused(error)
    except KeyboardInterrupt:
        click.echo("onnx-migrate: interrupted", err=True)
        interrupted = True
    summary = progress.summary
    if not options["quiet"]:
        progress.summarise(summary)
    if interrupted:
        return 130
    wrong = not summary.ok or (options["check"] and summary.outcomes["migrated"])
    return 1 if wrong else 0


def _run(options: dict[str, Any], progress: Any, executor: Executor | None) -> Summary:
    from onnx_migrate.batching import Job, batch, find, run

    def arguments_of(model: str) -> dict[str, Any]:
        own = configured(options, model)
        return {**arguments(own), "external": own["save_as_external_data"]}

    common = {
        "executor": executor,
        "jobs": options["jobs"],
        "fail_fast": options["fail_fast"],
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
        given = arguments_of(path)
        external, in_place = given.pop("external"), options["in_place"]
        jobs.append(Job(path, path if in_place else None, given, external, in_place))
    return run(jobs, **common)


def _refused(error: MigrateError) -> int:
    from onnx_migrate.report.failure import exit_code

    click.echo(f"onnx-migrate: {error.code}: {' '.join(str(error).split())}", err=True)
    return exit_code(error)
