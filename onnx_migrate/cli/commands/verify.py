"""`onnx-migrate verify A B`: whether two models compute the same."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click

from onnx_migrate.cli.options.arguments import bytes_of
from onnx_migrate.cli.options.model_options import model_option
from onnx_migrate.cli.options.panels import Command
from onnx_migrate.cli.output.html import comparison_page, html_option, open_at_end, page_at
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.cli.output.side_files import published
from onnx_migrate.cli.process_limits import limited

__all__ = ["verify"]


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Return what --map says. Raises click.UsageError."""
    pairs = dict[str, str]()
    for text in texts:
        name, equals, other = text.partition("=")
        if not (name and equals and other):
            raise click.UsageError(f"--map {text}: write NAME=OTHER, as in --map x=pixel_values")
        pairs[name] = other
    return pairs


EXIT_CODES = {"verified": 0, "differs": 3, "unverified": 1}


@click.command(cls=Command)
@click.argument("original", type=click.Path(readable=False))
@click.argument("other", type=click.Path(readable=False))
@click.option("--exact", is_flag=True, help="Require bit-identical outputs; by default rounding may differ.")
@click.option(
    "--cast",
    is_flag=True,
    help="Let floating-point types differ, as of a model and what --precision made of it: outputs may be off by what the"
    " narrow type, rounded after each node, makes of the original.",
)
@click.option(
    "--map", "names", multiple=True, metavar="NAME=OTHER",
    help="An input or output that is called NAME in ORIGINAL and OTHER in the second model. Repeat it for more.",
)  # fmt: skip
@html_option
@model_option(
    "input_data",
    help="Run both on these inputs: an .npz file with one array per input name, or a folder of input_*.pb files.",
)  # fmt: skip
@model_option("rtol")
@model_option("atol")
@model_option("seed")
@model_option("ort_library")
@model_option(
    "prove_in", "--in",
    help="Run both in this runtime too, as --prove-in of a migration does. Repeat it for more. See docs/proving.md.",
)  # fmt: skip
@model_option("timeout", help="Time limit of the comparison; each model from a URL has as much again.")
@model_option(
    "memory_limit", help="Memory limit of that process; by default three quarters of the machine's memory."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def verify(
    original: str, other: str, names: tuple[str, ...], html: str | None, open_page: bool, as_json: bool, quiet: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Run two models on the same inputs and compare every output.

    A migration does the same comparison before it writes. Names, types and order of inputs and outputs must
    be the same too, but for names that --map gives. Where the numbers differ, the first value that does is named, with its
    nodes in both models.

    \b
    Exit codes:
        0  they compute the same
        1  it could not be determined
        2  wrong usage
        3  they differ, or OTHER does not run right in a runtime of --in
        4  not a readable ONNX model, or not a valid one
        5  standard output could not be written whole
    """
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.comparison import compare
    from onnx_migrate.errors import MigrateError

    open_at_end(html, open_page)
    options["memory_limit"] = bytes_of(options["memory_limit"])
    options["names"] = _pairs(names)
    try:
        page = page_at(html) if html else None
        with (
            limited(options["timeout"], options["memory_limit"], "verify"),
            ProgressLine(quiet or as_json, "verify") as progress,
        ):
            verdict = compare(original, other, **options, progress=progress.follow)
            if page:
                with published({page: comparison_page(original, other, verdict)}):
                    pass
    except MigrateError as error:
        about = next((path for path in (other, original) if str(error).startswith(path)), original)
        return fail(error, about, as_json=as_json)
    if as_json:
        from onnx_migrate.report.json_form import SCHEMA_VERSION, json_of

        head = {"schema_version": SCHEMA_VERSION, "original": original, "other": other}
        click.echo(json.dumps({**head, **json_of(verdict)}, indent=2))
    elif not quiet:
        from rich.console import Console

        from onnx_migrate.report.text import print_verdict

        print_verdict(verdict, Console(), original=original, other=other)
    return EXIT_CODES[verdict.kind.value]
