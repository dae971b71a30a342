"""The plot of a comparison: the error of every value that both models compute, along the original's graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnx_migrate.messages import share_text
from onnx_migrate.verdicts import FirstDifference, ValueDistance

__all__ = ["ErrorPlot", "PlotBar", "PlotLine", "error_plot"]

_HEIGHT = 220
"""Pixels of the plot without its margins."""

_TOP = 18
"""Pixels above the largest error, for the words "first difference"."""

_DECADES = 9
"""Largest number of powers of ten between the smallest and the largest error of a plot; smaller errors are bars of one pixel."""

_ABOVE = 0.2
"""How far the largest error may be above the last line, as a power of ten; its bar ends at that line."""

_LEAST = 3
"""Smallest number of powers of ten of a plot, so that small differences between bars do not look large."""

_SPACED = 4
"""Largest number of lines with a label."""

_BARS = 2_000
"""Largest number of bars. If there are more values, each bar shows the largest error of several."""

_SHOWN = 10
"""Values in the table below the plot: those with the largest errors."""


@dataclass(frozen=True)
class PlotBar:
    """A bar: its left edge and width in percent of the plot, its top and height in pixels, its text, and its style.

    `style` is "failed" for the first difference and all values after it, or "none".
    """

    left: float
    width: float
    top: int
    height: int
    text: str
    style: str


@dataclass(frozen=True)
class PlotLine:
    """A horizontal line: its place in pixels, and the error that it stands for."""

    top: int
    label: str


@dataclass(frozen=True)
class ErrorPlot:
    """The bars in the order of the original's nodes, the lines behind them, and the first difference.

    `first` is the place of the first difference in percent, None if no bar shows it. `largest` are the values with the largest
    errors. `count` is the number of values, and `same` of those without any error.
    """

    height: int
    bars: tuple[PlotBar, ...]
    lines: tuple[PlotLine, ...]
    first: float | None
    largest: tuple[ValueDistance, ...]
    count: int
    same: int


def error_plot(values: Sequence[ValueDistance], first: FirstDifference | None) -> ErrorPlot | None:
    """Return the plot of some values on a logarithmic scale; None if there are none."""
    if not values:
        return None
    scale = _Scale.of([value.error for value in values])
    worst_index = next(
        (index for index, value in enumerate(values) if first and value.value == first.original_value), None
    )
    step = -(-len(values) // _BARS)
    groups = [values[start : start + step] for start in range(0, len(values), step)]
    width = 100 / len(groups)
    bars = []
    for number, group in enumerate(groups):
        worst = max(group, key=lambda value: value.error)
        top = scale.top(worst.error)
        style = "none" if worst_index is None else "failed" if (number + 1) * step > worst_index else "none"
        bars.append(
            PlotBar(
                round(number * width, 3),
                round(width, 3),
                top,
                scale.bottom - top,
                _text(worst, len(group), is_first=worst_index is not None and number == worst_index // step),
                style,
            )
        )
    return ErrorPlot(
        scale.bottom + 1,
        tuple(bars),
        tuple(scale.lines()),
        None if worst_index is None else round(worst_index // step * width + width / 2, 3),
        tuple(sorted((value for value in values if value.error), key=lambda value: -value.error)[:_SHOWN]),
        len(values),
        sum(not value.error for value in values),
    )


@dataclass(frozen=True)
class _Scale:
    """A logarithmic scale between two powers of ten."""

    low: int
    high: int
    bottom: int = _TOP + _HEIGHT

    @classmethod
    def of(cls, errors: Sequence[float]) -> _Scale:
        """Return the scale on which all these errors are visible."""
        powers = [0.0 if error == math.inf else math.log10(error) for error in errors if error]
        high = math.ceil(max(powers, default=0.0) - _ABOVE)
        low = max(min(math.floor(min(powers, default=0.0)), high - _LEAST), high - _DECADES)
        return cls(low, high)

    def top(self, error: float) -> int:
        """Return the place of an error in pixels; an infinite one is as high as the plot."""
        if not error:
            return self.bottom
        power = self.high if error == math.inf else min(self.high, math.log10(error))
        share = (power - self.low) / (self.high - self.low)
        return min(self.bottom - 1, round(self.bottom - share * _HEIGHT))

    def lines(self) -> list[PlotLine]:
        """Return a line for each power of ten, or for every second or third."""
        step = -(-(self.high - self.low) // _SPACED)
        return [
            PlotLine(self.top(10.0**power), _label(power)) for power in range(self.high, self.low - 1, -step)
        ]


def _label(power: int) -> str:
    """Return a power of ten as a share, as in "1 %", or "1e-06" for small ones."""
    return f"{100 * 10.0**power:,g} %" if power >= -4 else f"1e{power:03d}"


def _text(value: ValueDistance, count: int, *, is_first: bool) -> str:
    """Return the description of a bar."""
    error = "NaN or infinity in one model only" if value.error == math.inf else share_text(value.error)
    text = f"{value.value}: {error if value.error else 'no error'} ({value.operator} {value.node!r})"
    most = f"largest of {count} values: " if count > 1 else ""
    return f"{'first difference, ' if is_first else ''}{most}{text}"
