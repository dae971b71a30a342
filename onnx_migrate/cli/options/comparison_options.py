"""The options that say on which inputs, and with which tolerance, two models are compared."""

from __future__ import annotations

import math
from typing import Any

import rich_click as click

__all__ = ["library_option", "tolerance_options"]


class _Tolerance(click.FloatRange):
    """A number that is 0 or more, and finite."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises click.BadParameter."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


_OPTIONS = (
    click.option(
        "--rtol", type=_Tolerance(min=0), metavar="FLOAT",
        help="Largest relative difference allowed; by default derived from the element type."
    ),
    click.option(
        "--atol", type=_Tolerance(min=0), metavar="FLOAT",
        help="Largest absolute difference allowed; by default derived from the values."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random inputs."),
)  # fmt: skip


library_option = click.option(
    "--ort-library", multiple=True, type=click.Path(), metavar="FILE",
    help="Load this shared library with the kernels of custom operators into ONNX Runtime, in the process that runs the "
    "models, so that models with such operators are verified. Repeat it for more.",
)  # fmt: skip


def tolerance_options(command: Any) -> Any:
    """Add --rtol, --atol and --seed, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
