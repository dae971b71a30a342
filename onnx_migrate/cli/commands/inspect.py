"""`onnx-migrate inspect MODEL...` shows the contents of models, and the changes of a migration."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import rich_click as click
from click.core import ParameterSource

from onnx_migrate.cli.options.arguments import bytes_of
from onnx_migrate.cli.options.model_options import model_option
from onnx_migrate.cli.options.panels import Command
from onnx_migrate.cli.output.html import html_option, inspection_page, open_at_end, page_at
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.cli.output.side_files import published
from onnx_migrate.cli.process_limits import limited

if TYPE_CHECKING:
    from onnx_migrate.inspection import Inspection

__all__ = ["inspect"]


@click.command(cls=Command)
@click.pass_context
@click.argument("models", type=click.Path(readable=False), nargs=-1, required=True)
@model_option(
    "opset", cls=None, type=None, multiple=False, default="17+",
    help="The ai.onnx opset to plan for: a number, keep, or latest. The value 17+ means 17, or the model's own opset if that is "
    "newer. For another domain write com.example=2.",
)  # fmt: skip
@model_option(
    "adapters",
    help="Import this module, which registers conversions of a custom domain. Installed packages need no such option.",
)  # fmt: skip
@model_option(
    "runtime",
    help="Check whether this release of a runtime can run the model, unchanged or after a migration: onnxruntime==1.14. "
    "Repeat it for several at once. --for all checks every runtime we know.",
)  # fmt: skip
@model_option("timeout", help="The time limit of each model, and of each file from a URL.")
@model_option(
    "memory_limit",
    help="The memory limit, at least 1 GB. The default is three quarters of the machine's memory.",
)
@html_option
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array with one object per model.")
@click.option(
    "-v", "--verbose", is_flag=True, help="Show every node that would change, and all details of every model."
)
def inspect(
    context: click.Context, /, models: tuple[str, ...], html: str | None, open_page: bool, as_json: bool, verbose: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Show the contents of a model and the changes of a migration.

    For each model you see its inputs, outputs and operators, and the opsets that it can reach. You also see which
    nodes a migration would change or could not convert, with the reason. With --for you see whether a runtime can run
    it. inspect reads no weights, runs nothing and writes nothing. It shows several models in one line each.

    \b
    Exit codes:
        0  shown, whatever the answer is
        1  a model took more time or memory than its limit
        2  wrong usage
        4  a file is not an ONNX model, or not a valid one; the readable
           part is shown
        5  printing to standard output failed
    """
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.errors import InvalidModel, MigrateError, UsageError
    from onnx_migrate.inspection import inspect as look
    from onnx_migrate.json_form import json_of
    from onnx_migrate.report.failure import Failure
    from onnx_migrate.safe_open.transfers import transfers_within

    opset, runtime, timeout = options["opset"], options.get("runtime", ()), options["timeout"]
    # Without --opset, the runtime decides.
    if context.get_parameter_source("opset") is ParameterSource.DEFAULT:
        opset = None
    elif "all" in runtime:
        raise click.UsageError("--for all has an opset for each runtime; leave --opset out")
    if html and len(models) > 1:
        raise click.UsageError("--html writes the page of one model; name one MODEL")
    open_at_end(html, open_page)
    if options["adapters"]:
        with contextlib.suppress(FileNotFoundError):  # somebody has deleted the folder
            sys.path.append(os.getcwd())  # where a console script does not look
    code = 0
    shown: list[Inspection] = []
    entries: list[Failure | Inspection] = []
    for model in models:
        try:
            page = page_at(html) if html else None
            with (
                ProgressLine(as_json, f"inspecting {model}"),
                transfers_within(timeout),
                limited(timeout, bytes_of(options["memory_limit"]), "inspect"),
            ):
                inspection = look(model, opset=opset, runtime=runtime or None, adapters=options["adapters"])
                with published({page: inspection_page(inspection)} if page else {}):
                    pass
        except MigrateError as error:  # noqa: PERF203
            code = fail(error, model, as_json=False)
            # A usage error holds for all models.
            if isinstance(error, UsageError):
                return code
            entries.append(Failure.of(model, error))
        else:
            entries.append(inspection)
            shown.append(inspection)
            if isinstance(inspection.refusal, InvalidModel):
                code = fail(inspection.refusal, model, as_json=False)
    if as_json:
        click.echo(json.dumps(list(map(json_of, entries)), indent=2))
    elif shown:
        from rich.console import Console

        from onnx_migrate.cli.output.inspection_view import print_inspection, print_overview

        # A pipe has no width: a row of a table stays one line there.
        console = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 1000)
        # A table is easier to compare.
        if len(models) > 1 and not verbose and not shown[0].outlooks:
            print_overview(
                shown,
                console,
                to=f"for {' and '.join(runtime)}" if runtime else f"to {opset or options['opset']}",
            )
        else:
            for index, inspection in enumerate(shown):
                if index:
                    console.print()
                print_inspection(inspection, console, everything=verbose)
    return code
