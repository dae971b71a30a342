"""From the command line's options to the library's arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import rich_click as click
from click.core import ParameterSource

from onnx_migrate.cli.options.comparison_options import bytes_of

if TYPE_CHECKING:
    from onnx_migrate.engine.pass_infra import Pass
    from onnx_migrate.spec.runtimes import Runtime

__all__ = ["arguments"]


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `onnx_migrate.migrate` is called with, besides the source. Raises click.UsageError."""
    row = _runtime(options)
    return {
        "opset": row.target if row else options["opset"],
        "dynamic": options["dynamic"] or None,
        "dynamic_batch": options["dynamic_batch"] or False,
        "fix": options["fix"] or None,
        "simplify": _simplify(options),
        "verify": options["verify"],
        "resize_form": options["resize_form"] or (row.resize_form if row else "auto"),
        "resize_intent": options["resize_intent"],
        "keep": options["keep"],
        "keep_initializers_as_inputs": options["keep_initializers_as_inputs"],
        "passes": (*options["extra"], *([_fits(row)] if row else [])),
        "without": options["without"],
        "input_data": options["input_data"],
        "rtol": options["rtol"],
        "atol": options["atol"],
        "seed": options["seed"],
        "timeout": options["timeout"],
        "memory_limit": bytes_of(options["memory_limit"]),
    }


def _runtime(options: dict[str, Any]) -> Runtime | None:
    """Return what the runtime takes that is asked for, if one is, and no opset counts before it."""
    if options["runtime"] is None:
        return None
    context = click.get_current_context(silent=True)
    said = [
        context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for name in ("opset", "runtime")
    ]
    if all(said):
        raise click.UsageError("--for chooses the opset: leave --opset out")
    if said[0]:
        return None
    from onnx_migrate.errors import UsageError
    from onnx_migrate.spec.runtimes import runtime

    try:
        return runtime(options["runtime"])
    except UsageError as error:
        raise click.UsageError(str(error)) from error


def _fits(row: Runtime) -> Pass:
    """Return the pass that holds the model against the runtime."""
    from onnx_migrate.engine.pass_infra import make_pass

    return make_pass("fits_runtime", runtime=row)


def _simplify(options: dict[str, Any]) -> bool | Literal["require"]:
    context = click.get_current_context(silent=True)
    said = context is None or context.get_parameter_source("simplify") is ParameterSource.COMMANDLINE
    if options["no_simplify"] and options["simplify"] == "require" and said:
        raise click.UsageError("--no-simplify and --simplify=require contradict each other")
    if options["no_simplify"] or options["simplify"] == "no":
        return False
    return "require" if options["simplify"] == "require" else True
