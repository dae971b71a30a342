"""The options that limit the time and the memory of a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click

__all__ = ["bytes_of", "limit_options"]

F = TypeVar("F", bound=Callable[..., Any])


def limit_options(*, timeout: str, memory_limit: str) -> Callable[[F], F]:
    """Return a decorator that adds --timeout and --memory-limit, in this order, with these texts of help."""

    def add(command: F) -> F:
        positive = click.FloatRange(min=0, min_open=True)
        command = click.option("--memory-limit", type=positive, metavar="GB", help=memory_limit)(command)
        return click.option(
            "--timeout", metavar="SECONDS", type=positive, default=600, show_default=True, help=timeout
        )(command)

    return add


def bytes_of(gigabytes: float | None) -> int | None:
    """Return --memory-limit in bytes, None if it was not given."""
    return None if gigabytes is None else int(gigabytes * 2**30)
