"""`--dynamic-batch` and `--dynamic-batch=NAME`: an option whose value is optional."""

from __future__ import annotations

import os
from itertools import pairwise

import rich_click as click

from onnx_migrate.cli.options.panels import Command

__all__ = ["DynamicBatchCommand"]

_OPTION = "--dynamic-batch"


class DynamicBatchCommand(Command):
    """A command that takes the value of `--dynamic-batch` only after `=`; click would take the next argument, a model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the default name to the option. Raises click.UsageError if the next argument looks like a name, and is no file."""
        options = args[: args.index("--")] if "--" in args else args
        for argument, following in pairwise(options):
            if (
                _is_option(argument)
                and following.isidentifier()
                and not os.path.exists(following)
                and not ctx.resilient_parsing
            ):
                raise click.UsageError(
                    f"{_OPTION} {following} is ambiguous; write {_OPTION}={following} for a name, ./{following} for a path",
                    ctx,
                )
        named = [f"{_OPTION}=N" if _is_option(argument) else argument for argument in options]
        return super().parse_args(ctx, named + args[len(options) :])


def _is_option(argument: str) -> bool:
    return argument.replace("_", "-") == _OPTION
