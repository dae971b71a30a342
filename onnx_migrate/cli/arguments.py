"""From the command line's options to the library's arguments."""

from __future__ import annotations

from typing import Any, Literal

import rich_click as click

__all__ = ["arguments"]


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `onnx_migrate.migrate` is called with, besides the source. Raises click.UsageError."""
    limit = options["memory_limit"]
    return {
        "opset": options["opset"],
        "dynamic": options["dynamic"] or None,
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
    }


def _simplify(options: dict[str, Any]) -> bool | Literal["require"]:
    if options["no_simplify"] and options["simplify"] == "require":
        raise click.UsageError("--no-simplify and --simplify=require contradict each other")
    if options["no_simplify"] or options["simplify"] == "no":
        return False
    return "require" if options["simplify"] == "require" else True
