"""`onnx-migrate MODEL OUTPUT`: loads, migrates, verifies and saves one model."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.arguments import arguments, saving_flags
from onnx_migrate.cli.options.config import config_flags, config_option, configured, find_own_passes
from onnx_migrate.cli.options.dynamic_batch_option import DynamicBatchCommand
from onnx_migrate.cli.options.model_options import model_options
from onnx_migrate.cli.options.path_conflicts import check_path_conflicts
from onnx_migrate.cli.output.depfile import dependencies, write_depfile
from onnx_migrate.cli.output.html import check_page, html_option, write_failure_page, write_model_page
from onnx_migrate.cli.output.preview import destination, diff_lines, print_diff
from onnx_migrate.cli.output.progress import Progress
from onnx_migrate.cli.output.streams import (
    STREAM,
    error_with_stdin_name,
    read_source,
    to_stdout,
    with_stdin_name,
)
from onnx_migrate.cli.standard_streams import remark_on_failure

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError

__all__ = ["migrate"]


@click.command(cls=DynamicBatchCommand)
@click.argument("model", type=click.Path(readable=False))
@click.argument("output", type=click.Path(), required=False)
@click.option(
    "-o",
    "--output",
    "output_option",
    type=click.Path(),
    help="Where to write the result; the same as OUTPUT.",
)
@click.option("--in-place", is_flag=True, help="Replace MODEL by the result.")
@model_options
@click.option(
    "--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True), default=600, show_default=True,
    help="Time limit, once for the simplifier and once for the verification.",
)  # fmt: skip
@click.option(
    "--memory-limit", type=click.FloatRange(min=0, min_open=True), metavar="GB",
    help="Memory limit of each of the two; by default three quarters of the machine's memory.",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with 1 if the result would differ from MODEL."
)
@click.option(
    "--dry-run", is_flag=True, help="Do everything but write; report and exit code are those of a real run."
)
@click.option("--diff", is_flag=True, help="Print a line-by-line diff of the models instead of the report.")
@click.option(
    "--depfile",
    type=click.Path(),
    metavar="FILE",
    help="Write a dependency file for make or ninja, which lists the files that OUTPUT was made from.",
)
@html_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every changed node.")
@click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors, and a line if the result is unverified."
)
def migrate(**options: Any) -> int:
    """Bring MODEL to an opset and write it to OUTPUT. Each is a file or a URL; - is stdin or stdout.

    \b
    load → bring every node to the opset → make dims dynamic (--dynamic)
         → clean up → simplify → verify → save

    Nothing is written unless all of it succeeds: an existing OUTPUT stays as it was.

    \b
    Exit codes:
        0  done; unverified results too, with a line on stderr, unless --verify=require
        1  refused or failed; with --check, the model would change
        2  wrong usage
        3  the numbers differ, or the result does not load; with --verify=require, also if it is unverified;
           with --prove-in, also if it does not run right in that runtime
        4  not a readable ONNX model
        5  standard output could not be written whole; OUTPUT, if any, is written
    """
    options = configured(options, options["model"])
    model, target, given = options["model"], destination(options), arguments(options)
    from onnx_migrate.cli.output.failure import warn_unverified
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import check_not_source, check_target, load
    from onnx_migrate.migration import migrate as run
    from onnx_migrate.url import is_url, resolve_file_url

    find_own_passes(options)
    piped, page = target == STREAM, None
    with Progress(options["quiet"] or options["as_json"]) as progress:
        try:
            if (
                target is not None
                and not piped
                and (is_url(model) or os.path.isfile(resolve_file_url(model)))
            ):
                check_target(target, source=model, in_place=options["in_place"])
            if target is not None and not piped:
                written = [target, f"{target}.data", options["depfile"], options["html"]]
                check_path_conflicts(written, (options["input_data"], options["config"]))
            check_page(options["html"])
            page = options["html"]
            original = load(read_source(model))
            if target is not None and not (piped or options["in_place"]):
                data = [f"{target}.data"] if options["save_as_external_data"] else []
                check_not_source([*data, target, *filter(None, [options["depfile"]])], original.origin)
            migration = with_stdin_name(
                run(original, **given, progress=progress, proof_progress=progress.within)
            )
            report = migration.report.saved(
                None if options["in_place"] else target, *config_flags(), *saving_flags(options)
            )
            changes = options["check"] and not migration.same_as_original()
            made_from = dependencies(original, options) if options["depfile"] else []
            lines = diff_lines(migration, target=target) if options["diff"] else []
            if piped:
                to_stdout(migration)
            elif target is not None:
                progress("saving")
                migration.save(
                    target, external=options["save_as_external_data"], in_place=options["in_place"]
                )
            if options["depfile"]:
                write_depfile(options["depfile"], str(target), made_from)
            if page:
                write_model_page(page, report.as_dict(), model=model, output=target)
        except MigrateError as error:
            progress("")
            return _failed(error, model, page, as_json=options["as_json"])
    warn_unverified(migration.report.verification, migration.report.model if model == STREAM else model)
    kept = f"the model is written to {target}" if target and not piped else ""
    with remark_on_failure(kept):
        if options["as_json"]:
            checked = {"would_change": changes} if options["check"] else {}
            click.echo(json.dumps({**report.as_dict(), "output": target, **checked}, indent=2), err=piped)
        elif options["quiet"]:
            pass
        elif options["diff"]:
            print_diff(lines, err=piped)
        else:
            from rich.console import Console

            from onnx_migrate.report.text import print_report

            print_report(report, Console(stderr=piped), target=target or "", everything=options["verbose"])
        sys.stdout.flush()
    return 1 if changes else 0


def _failed(error: MigrateError, model: str, page: str | None, *, as_json: bool) -> int:
    """Report an error, with --html as a page too, and return the exit code."""
    from onnx_migrate.cli.output.failure import fail

    if model == STREAM:
        error, model = error_with_stdin_name(error), "<stdin>"
    if page:
        write_failure_page(page, error, model)
    return fail(error, model, as_json=as_json)
