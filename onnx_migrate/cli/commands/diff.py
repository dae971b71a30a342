"""`onnx-migrate diff A B`: how two models differ by structure."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click

from onnx_migrate.cli.options.arguments import bytes_of
from onnx_migrate.cli.options.model_options import model_option
from onnx_migrate.cli.options.panels import Command
from onnx_migrate.cli.output.html import difference_page, html_option, open_at_end, page_at
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.cli.output.side_files import published
from onnx_migrate.cli.process_limits import limited

__all__ = ["diff"]


@click.command(cls=Command)
@click.argument("original", type=click.Path(readable=False))
@click.argument("other", type=click.Path(readable=False))
@html_option
@click.option("--stat", is_flag=True, help="Print only the summary.")
@model_option("timeout", help="The time limit for reading and matching both models.")
@model_option("memory_limit", help="The memory limit. The default is three quarters of the machine's memory.")
@click.option("--json", "as_json", is_flag=True, help="Print the difference as JSON.")
@click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors. The exit code says whether the models differ."
)
def diff(
    original: str, other: str, html: str | None, open_page: bool, stat: bool, as_json: bool, quiet: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Show how two models differ: nodes, attributes, weights, inputs, outputs and opsets. Names are ignored.

    The summary comes first. Then follows each difference, in the order of the nodes of ORIGINAL. No model runs: use verify
    to compare the numbers. --html draws both graphs beside each other.

    \b
    Exit codes:
        0  the models are the same but for names and order
        1  it could not be determined
        2  wrong usage
        3  they differ
        4  a file is not a readable ONNX model
        5  printing to standard output failed
    """
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.difference import MatchedModels
    from onnx_migrate.errors import MigrateError

    open_at_end(html, open_page)
    memory = bytes_of(options["memory_limit"])
    try:
        page = page_at(html) if html else None
        with (
            ProgressLine(quiet or as_json, "comparing the models"),
            limited(options["timeout"], memory, "diff"),
        ):
            models = MatchedModels.of(original, other)
            difference = models.difference
            with published({page: difference_page(models)} if page else {}):
                pass
    except MigrateError as error:
        about = next((path for path in (other, original) if str(error).startswith(path)), original)
        return fail(error, about, as_json=as_json)
    if as_json:
        from onnx_migrate.json_form import SCHEMA_VERSION, json_of

        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, **json_of(difference)}, indent=2))
    elif not quiet:
        from onnx_migrate.cli.output.preview import print_diff

        click.echo(str(difference))
        if not stat:
            print_diff(difference.entries, original, other, err=False)
    return 0 if difference.same else 3
