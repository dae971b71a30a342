"""`--dynamic-batch` or `--dynamic-batch=NAME`: a command whose option takes no word that stands after it."""

from __future__ import annotations

import os
from itertools import pairwise

import rich_click as click

__all__ = ["DynamicBatchCommand"]

_OPTION = "--dynamic-batch"


class DynamicBatchCommand(click.RichCommand):
    """Reads the name after `=` alone. click would take the next word, which may be a model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give the option its default name. Raises click.UsageError for a word that may be meant as a name."""
        options = args[: args.index("--")] if "--" in args else args
        for word, after in pairwise(options):
            if (
                word == _OPTION
                and after.isidentifier()
                and not os.path.exists(after)
                and not ctx.resilient_parsing
            ):
                raise click.UsageError(
                    f"{_OPTION} {after}: a name is given by {_OPTION}={after}, a path by ./{after}", ctx
                )
        own = [f"{_OPTION}=N" if word == _OPTION else word for word in options]
        return super().parse_args(ctx, own + args[len(options) :])
