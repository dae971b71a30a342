"""The options that say on which inputs, and with which tolerance, two models are compared."""

from __future__ import annotations

from typing import Any

import rich_click as click

__all__ = ["bytes_of", "tolerance_options"]

_OPTIONS = (
    click.option(
        "--rtol", type=float, help="Largest relative difference allowed; by default derived from the element type."
    ),
    click.option(
        "--atol", type=float, help="Largest absolute difference allowed; by default derived from the values."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random inputs."),
)  # fmt: skip


def tolerance_options(command: Any) -> Any:
    """Add --rtol, --atol and --seed, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def bytes_of(gigabytes: float | None) -> int | None:
    """Return --memory-limit in bytes, None if it was not given."""
    return None if gigabytes is None else int(gigabytes * 2**30)
