"""`onnx-migrate verify A B`: whether two models compute the same."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import rich_click as click

from onnx_migrate.cli.options.arguments import bytes_of, limits, one_or_several
from onnx_migrate.cli.options.model_options import comparison_options, model_option
from onnx_migrate.cli.options.panels import Command
from onnx_migrate.cli.output.html import comparison_page, html_option, open_at_end, page_at
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.cli.output.side_files import published
from onnx_migrate.cli.output.values_table import values_at, values_table
from onnx_migrate.cli.process_limits import limited

__all__ = ["verify"]


def _pairs(texts: tuple[str, ...]) -> dict[str, str]:
    """Return what --match-name says. Raises click.UsageError."""
    pairs = dict[str, str]()
    for text in texts:
        name, equals, other = text.partition("=")
        if not (name and equals and other):
            raise click.UsageError(
                f"--match-name {text}: write NAME=OTHER, as in --match-name x=pixel_values"
            )
        pairs[name] = other
    return pairs


EXIT_CODES = {"verified": 0, "differs": 3, "unverified": 1}


@click.command(cls=Command)
@click.argument("original", type=click.Path(readable=False))
@click.argument("other", type=click.Path(readable=False))
@click.option("--exact", is_flag=True, help="Require bit-identical outputs. By default rounding may differ.")
@click.option(
    "--cast",
    is_flag=True,
    help="Compare models of different precision, such as a model and the result of --precision fp16. Outputs may differ by the "
    "error that float16 (or bfloat16) rounding after every node would cause.",
)
@click.option(
    "--match-name", "names", multiple=True, metavar="NAME=OTHER",
    help="The input or output NAME of ORIGINAL is called OTHER in the second model. Repeat it for more.",
)  # fmt: skip
@html_option
@model_option(
    "input_data",
    help="Run both models on these inputs: an .npz, .npy or Polygraphy JSON file, a folder of images, .npy or .pb files, or "
    "MODULE:FUNCTION. NAME is the input that an array or image is for; repeat the option for more inputs. See "
    "docs/inputs.md.",
)  # fmt: skip
@model_option("max_inputs")
@comparison_options
@model_option("ort_library")
@model_option(
    "run_in",
    help="Run both models in this runtime too, such as openvino or tract. Repeat it for more. See docs/proving.md.",
)  # fmt: skip
@model_option(
    "timeout", help="The time limit of the comparison. Each model from a URL has the same limit of its own."
)
@model_option(
    "memory_limit",
    help="The memory limit of the comparison. The default is three quarters of the machine's memory.",
)
@click.option(
    "--all-values", metavar="FILE",
    help="Write the error of every inner tensor that both models compute to FILE, as CSV. The report lists the worst ten.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every output and all inputs that were run.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
def verify(
    original: str, other: str, names: tuple[str, ...], html: str | None, open_page: bool, as_json: bool, verbose: bool,
    quiet: bool, all_values: str | None,
    **options: Any,
) -> int:  # fmt: skip
    """Run two models on the same inputs and compare every output.

    migrate does the same comparison before it writes. The models must have the same inputs and outputs, in the same order;
    --match-name pairs inputs and outputs with different names. If the numbers differ, you see the first tensor that differs,
    and the node that computes it in each model.

    \b
    Exit codes:
        0  they compute the same
        1  it could not be determined
        2  wrong usage
        3  they differ, or OTHER does not run right in a runtime of --run-in
        4  a file is not an ONNX model, or not a valid one
        5  printing to standard output failed
    """
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.comparison import compare
    from onnx_migrate.errors import MigrateError

    open_at_end(html, open_page)
    options["memory_limit"] = bytes_of(options["memory_limit"])
    options["names"] = _pairs(names)
    options["input_data"] = one_or_several(options["input_data"])
    options["rtol"], options["atol"] = limits(options["rtol"]), limits(options["atol"])
    try:
        page = page_at(html) if html else None
        table = values_at(all_values) if all_values else None
        with (
            limited(options["timeout"], options["memory_limit"], "verify"),
            ProgressLine(quiet or as_json, "verify") as progress,
        ):
            wanted = table is not None or page is not None
            verdict = compare(original, other, **options, all_values=wanted, progress=progress.follow)
            contents = {page: comparison_page(original, other, verdict)} if page else {}
            if table:
                contents[table] = values_table(verdict.values)
            else:  # the plot of the page has them
                verdict = replace(verdict, values=())
            with published(contents):
                pass
    except MigrateError as error:
        about = next((path for path in (other, original) if str(error).startswith(path)), original)
        return fail(error, about, as_json=as_json)
    if as_json:
        from onnx_migrate.json_form import SCHEMA_VERSION, json_of

        head = {"schema_version": SCHEMA_VERSION, "original": original, "other": other}
        click.echo(json.dumps({**head, **json_of(verdict)}, indent=2))
    elif not quiet:
        from rich.console import Console

        from onnx_migrate.report.text import print_verdict

        print_verdict(verdict, Console(), original=original, other=other, everything=verbose)
    return EXIT_CODES[verdict.kind.value]
