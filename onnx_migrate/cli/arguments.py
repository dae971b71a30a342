"""From the command line's options to the library's arguments."""

from __future__ import annotations

from typing import Any, Literal

import rich_click as click
from click.core import ParameterSource

__all__ = ["arguments"]


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `onnx_migrate.migrate` is called with, besides the source. Raises click.UsageError."""
    limit = options["memory_limit"]
    return {
        "opset": options["opset"],
        "dynamic": options["dynamic"] or None,
        "dynamic_batch": options["dynamic_batch"] or False,
        "fix": options["fix"] or None,
        "simplify": _simplify(options),
        "verify": options["verify"],
        "resize_form": options["resize_form"],
        "resize_intent": options["resize_intent"],
        "keep": options["keep"],
        "keep_initializers_as_inputs": options["keep_initializers_as_inputs"],
        "passes": options["extra"],
        "without": options["without"],
        "input_data": options["input_data"],
        "rtol": options["rtol"],
        "atol": options["atol"],
        "seed": options["seed"],
        "timeout": options["timeout"],
        "memory_limit": None if limit is None else int(limit * 2**30),
        **{name: options[name] for name in ("dynamic_batch", "fix") if options.get(name)},
    }


def _simplify(options: dict[str, Any]) -> bool | Literal["require"]:
    context = click.get_current_context(silent=True)
    said = context is None or context.get_parameter_source("simplify") is ParameterSource.COMMANDLINE
    if options["no_simplify"] and options["simplify"] == "require" and said:
        raise click.UsageError("--no-simplify and --simplify=require contradict each other")
    if options["no_simplify"] or options["simplify"] == "no":
        return False
    return "require" if options["simplify"] == "require" else True
