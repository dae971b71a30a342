"""`onnx-migrate reduce MODEL`: the smallest model that still fails a check."""

from __future__ import annotations

import json
from typing import Any

import rich_click as click

from onnx_migrate.cli.options.arguments import bytes_of, limits, one_or_several
from onnx_migrate.cli.options.model_options import comparison_options, model_option
from onnx_migrate.cli.options.panels import Command
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.cli.output.side_files import check_path_conflicts
from onnx_migrate.cli.process_limits import limited

__all__ = ["reduce"]

_SECONDS = click.FloatRange(min=0, min_open=True)


@click.command(cls=Command)
@click.argument("model", type=click.Path(readable=False))
@click.argument("output", type=click.Path(), required=False)
@click.option(
    "--check", metavar="CMD",
    help="A shell command that fails on the model: it exits with another code than 0. Write {} for the path of the model, and "
    "{inputs} for that of an .npz with its inputs.",
)  # fmt: skip
@click.option(
    "--check-exit", metavar="CODE",
    help="Count only this exit code or signal of the command as the failure, for example 3 or SIGSEGV.",
)  # fmt: skip
@model_option(
    "run_in",
    multiple=False,
    default="",
    help="The model fails in this runtime: it does not load or run there, crashes, or computes wrong values. For example "
    "openvino, tract or onnxruntime==1.9@FOLDER. See docs/proving.md.",
)
@click.option(
    "--message", default="", metavar="TEXT",
    help="The output of the command, or the message of the runtime, must contain this text. Without a command and a runtime, "
    "models run in ONNX Runtime.",
)  # fmt: skip
@click.option(
    "--against", metavar="OTHER",
    help="Find the smallest part of MODEL and OTHER that computes different values from the same inputs.",
)  # fmt: skip
@click.option(
    "--any-failure", is_flag=True,
    help="Accept a smaller model that fails in another way. By default exit code, signal and message must stay alike.",
)  # fmt: skip
@click.option(
    "--strip-weights", is_flag=True,
    help="Replace weights by random numbers of the same size and distribution, where the failure stays.",
)  # fmt: skip
@model_option(
    "input_data",
    help="The inputs on which the model fails, such as an .npz file with one array per input name, or a folder of images. See "
    "docs/inputs.md.",
)
@comparison_options
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Run this many checks at once.",
)
@click.option(
    "--check-timeout", type=_SECONDS, default=60.0, show_default=True, metavar="SECONDS",
    help="The time limit of each check. A model that reaches it does not fail, unless MODEL reached it too.",
)  # fmt: skip
@click.option(
    "--time-limit", type=_SECONDS, default=3600.0, show_default=True, metavar="SECONDS",
    help="End the search after this time, and write the smallest model so far.",
)  # fmt: skip
@model_option("memory_limit", help="The memory limit. The default is three quarters of the machine's memory.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
def reduce(model: str, output: str | None, as_json: bool, quiet: bool, **options: Any) -> int:
    """Find the smallest model that still fails a check, to attach it to a report.

    A check is a command (--check), a runtime (--run-in), or a second model that computes other values (--against). OUTPUT is
    MODEL.reduced.onnx by default. Its inputs are written beside it as .npz, if the check reads inputs. The last line of the
    report is the command that reproduces the failure.

    \b
    Exit codes:
        0  the smaller model is written
        1  the search failed
        2  wrong usage, MODEL passes the check, or two runs of the check disagree
        4  MODEL is not an ONNX model, or not a valid one
        5  files are written, but printing to standard output failed
    """
    from onnx_migrate.cli.output.failure import fail
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import check_target
    from onnx_migrate.reduction.reduce import reduce as reduction_of

    memory = bytes_of(options["memory_limit"])
    path = output or f"{model.removesuffix('.onnx')}.reduced.onnx"
    options.update(memory_limit=memory, check=options["check"] or "", check_exit=options["check_exit"] or "")
    options.update(rtol=limits(options["rtol"]), atol=limits(options["atol"]))
    options["input_data"] = one_or_several(options["input_data"])
    try:
        check_target(path, source=model)
        _check_conflicts(model, path, options)
        with (
            limited(float("inf"), memory, "prove"),
            ProgressLine(quiet or as_json, "reducing") as progress,
        ):
            reduction = reduction_of(model, **options, progress=progress.follow)
            written = reduction.save(path)
    except MigrateError as error:
        return fail(error, model, as_json=as_json)
    command = reduction.command(path)
    if as_json:
        from onnx_migrate.json_form import SCHEMA_VERSION, json_of

        head = {"schema_version": SCHEMA_VERSION, "written": written, "command": command}
        click.echo(json.dumps({**head, **json_of(reduction.report)}, indent=2))
    elif not quiet:
        click.echo(str(reduction))
        click.echo(f"  written   {', '.join(written)}")
        click.echo(f"  reproduce {command}")
    return 0


def _check_conflicts(model: str, path: str, options: dict[str, Any]) -> None:
    """Raise UsageError if a file to be written for this path is read, before the search, which may take an hour."""
    from onnx_migrate.reduction.result import beside_path, inputs_path
    from onnx_migrate.verify.inputs.given import data_files

    against = options["against"]
    writes_inputs = not options["check"] or "{inputs}" in options["check"]
    written = [path, inputs_path(path) if writes_inputs else None, beside_path(path) if against else None]
    check_path_conflicts(written, (model, against, *map(str, data_files(options["input_data"]))))
