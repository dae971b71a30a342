"""`onnx-migrate MODEL OUTPUT`: loads, migrates, verifies and saves one model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import rich_click as click

from onnx_migrate.cli.options.arguments import arguments, saving_flags
from onnx_migrate.cli.options.config import config_flags, config_option, configured, find_own_passes
from onnx_migrate.cli.options.dynamic_batch_option import DynamicBatchCommand
from onnx_migrate.cli.options.limit_options import bytes_of, limit_options
from onnx_migrate.cli.options.model_options import model_options
from onnx_migrate.cli.options.path_conflicts import check_path_conflicts
from onnx_migrate.cli.output.depfile import dependencies, depfile, rules
from onnx_migrate.cli.output.html import html_option, model_page, page_at, write_failure_page
from onnx_migrate.cli.output.preview import destination, print_diff
from onnx_migrate.cli.output.progress import Progress
from onnx_migrate.cli.output.side_files import SideFile, published
from onnx_migrate.cli.output.streams import (
    STREAM,
    error_with_stdin_name,
    read_source,
    to_stdout,
    with_stdin_name,
)
from onnx_migrate.cli.process_limits import limited
from onnx_migrate.cli.standard_streams import reporting
from onnx_migrate.opening.transfers import transfers_within

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError

__all__ = ["migrate"]


@click.command(cls=DynamicBatchCommand)
@click.argument("model", type=click.Path(readable=False))
@click.argument("output", type=click.Path(), required=False, metavar="OUTPUT")
@click.option(
    "-o",
    "--output",
    "output_option",
    type=click.Path(),
    help="Where to write the result; the same as OUTPUT.",
)
@click.option("--in-place", is_flag=True, help="Replace MODEL by the result.")
@model_options
@limit_options(
    timeout="Time limit for each stage: loading, every pass, the simplifier, the verification; and for each file from or to a "
    "URL, which has more time as long as it makes a megabyte a second.",
    memory_limit="Memory limit of the simplifier, of the verification, and, from 1 GB on, of this process; by default three "
    "quarters of the machine's memory.",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Write nothing; exit with 1 if the result would differ from MODEL."
)
@click.option(
    "--dry-run", is_flag=True, help="Do everything but write; report and exit code are those of a real run."
)
@click.option(
    "--diff",
    is_flag=True,
    help='Print how the models differ, node by node, instead of the report; with --json as "diff".',
)
@click.option(
    "--depfile",
    type=click.Path(),
    metavar="FILE",
    help="Write a dependency file for make or ninja, which lists the files that OUTPUT was made from.",
)
@html_option
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every changed node and every operator.")
@click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors, and a line if the result is unverified."
)
def migrate(**options: Any) -> int:
    """Bring MODEL to an opset and write it to OUTPUT.

    Each is a file or a URL; - is stdin or stdout.

    \b
    load → bring every node to the opset → make dims dynamic (--dynamic)
         → clean up → simplify → verify → save

    Nothing is written unless all of it succeeds: an existing OUTPUT stays as it was.

    \b
    Exit codes:
        0  done; an unverified result too, with a line on stderr
        1  refused or failed, and nothing is written but a --html
           page that says why; with --check, the model would change
        2  wrong usage
        3  the numbers differ, or the result does not load; with
           --verify=require also if it is unverified; with --prove-in
           also if it does not run right in that runtime
        4  not a readable ONNX model, or not a valid one
        5  standard output could not be written whole; files are
    """
    options = configured(options, options["model"])
    model, target, given = options["model"], destination(options), arguments(options)
    from onnx_migrate.cli.output.failure import print_remarks, warn_unverified
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import check_not_source, check_target, load
    from onnx_migrate.migration import migrate as run
    from onnx_migrate.remarks import collected_remarks
    from onnx_migrate.url import is_url, resolve_file_url

    if not options["quiet"]:  # now, as they may not be loadable when the model has its place
        from rich.console import Console

        from onnx_migrate.report.text import print_report

    find_own_passes(options)
    piped, page = target == STREAM, None
    with (
        Progress(options["quiet"] or options["as_json"]) as progress,
        transfers_within(options["timeout"]),
        collected_remarks() as remarks,
    ):
        try:
            if (
                target is not None
                and not piped
                and (is_url(model) or os.path.isfile(resolve_file_url(model)))
            ):
                check_target(target, source=model, in_place=options["in_place"])
            result = [] if target is None or piped else [target, f"{target}.data"]
            beside = list(filter(None, [options["depfile"], options["html"]]))
            html = page_at(options["html"]) if options["html"] else None
            made = depfile(options["depfile"]) if options["depfile"] else None
            check_path_conflicts([*result, *beside], (options["input_data"], options["config"]))
            for side in filter(None, (html, made)):
                side.check()
            page = options["html"]
            first = "download" if is_url(model) else "load"
            with limited(options["timeout"], bytes_of(options["memory_limit"]), first) as progress.begins:
                original = load(read_source(model))
                if result and not options["in_place"]:
                    check_not_source(result[: 1 + options["save_as_external_data"]], original.origin)
                check_not_source(beside, original.origin)
                migration = with_stdin_name(run(original, **given, progress=progress.follow))
                report = migration.report.saved(
                    None if options["in_place"] else target, *config_flags(), *saving_flags(options)
                )
                changes = options["check"] and not migration.same_as_original()
                made_from = dependencies(original, options) if options["depfile"] else []
                differences = migration.differences() if options["diff"] else []

                def with_side_files(size: int | None) -> AbstractContextManager[None]:
                    """Publish the side files, for a result of so many bytes, and note its size."""
                    nonlocal report
                    if result:
                        report = report.written(original.file_bytes, size)
                    contents: dict[SideFile, Iterable[bytes]] = {}
                    if made:
                        contents[made] = [rules(str(target), made_from)]
                    if html:
                        contents[html] = model_page(report.as_dict(), output=target)
                    return published(contents)

                if piped:
                    to_stdout(migration, with_side_files)
                elif target is not None:
                    progress("saving")
                    migration.save(
                        target,
                        external=options["save_as_external_data"],
                        in_place=options["in_place"],
                        beside=with_side_files,
                    )
                else:
                    with with_side_files(None):
                        pass
        except MigrateError as error:
            progress("")
            return _failed(error, model, page, as_json=options["as_json"])
        finally:
            print_remarks(remarks, model)
    kept = f"the model is written to {target}" if target and not piped else ""
    warn_unverified(migration.report.verification, migration.report.model if model == STREAM else model, kept)
    with reporting(kept):
        if options["as_json"]:
            checked: dict[str, Any] = {"would_change": changes} if options["check"] else {}
            checked |= {"diff": [entry.as_dict() for entry in differences]} if options["diff"] else {}
            click.echo(json.dumps({**report.as_dict(), "output": target, **checked}, indent=2), err=piped)
        elif options["quiet"]:
            pass
        elif options["diff"]:
            print_diff(differences, report.model, target, err=piped)
        else:
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
