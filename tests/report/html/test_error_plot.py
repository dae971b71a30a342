"""The plot of the error at every value: its bars, its scale and the mark of the first difference."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from onnx_migrate.report.html.error_plot import ErrorPlot, error_plot
from onnx_migrate.verdicts import FirstDifference, ValueDistance


def plot_of(*errors: float, first: int | None = None) -> ErrorPlot:
    values = [
        ValueDistance(f"v{n}", f"v{n}", f"node{n}", "Conv", (2,), error) for n, error in enumerate(errors)
    ]
    found = error_plot(values, None if first is None else FirstDifference((), original_value=f"v{first}"))
    assert found is not None
    return found


def test_without_values_there_is_no_plot() -> None:
    assert error_plot([], None) is None


def test_a_bar_is_higher_by_as_much_for_each_power_of_ten() -> None:
    plot = plot_of(1e-6, 1e-4, 1e-2, 1.0)
    heights = [bar.height for bar in plot.bars]

    steps = {round(two - one, -1) for one, two in pairwise(heights)}
    assert len(steps) == 1
    assert steps.pop() > 50
    assert [line.label for line in plot.lines] == ["100 %", "1 %", "0.01 %", "1e-06"]
    assert plot.lines[0].top == plot.bars[3].top


@pytest.mark.parametrize(
    ("error", "text"),
    [(0.0, "no error"), (0.024, "2.4 %"), (math.inf, "NaN or infinity in one model only")],
)
def test_each_bar_tells_its_value_and_error(error: float, text: str) -> None:
    assert plot_of(error, 0.5).bars[0].text == f"v0: {text} (Conv 'node0')"


def test_no_error_is_no_bar_and_infinity_the_highest() -> None:
    none, tiny, most = plot_of(0.0, 1e-30, math.inf).bars

    assert none.height == 0
    assert tiny.height == 1
    assert most.height == max(bar.height for bar in plot_of(1.0, 1e-3).bars)


def test_the_first_difference_is_marked_and_all_after_it_have_its_colour() -> None:
    plot = plot_of(0.0, 1e-7, 0.1, 0.0, 0.2, first=2)

    assert [bar.style for bar in plot.bars] == ["none", "none", "failed", "failed", "failed"]
    assert plot.first == 50.0
    assert plot.bars[2].text.startswith("first difference, v2")


def test_a_first_difference_without_a_bar_is_not_marked() -> None:
    plot = plot_of(0.1, 0.2, first=7)

    assert plot.first is None
    assert {bar.style for bar in plot.bars} == {"none"}


def test_thousands_of_values_share_bars_that_show_their_largest_error() -> None:
    errors = [0.0] * 5_000
    errors[3_333] = 0.5
    plot = plot_of(*errors, first=3_333)

    assert len(plot.bars) == 1_667
    assert (plot.count, plot.same) == (5_000, 4_999)
    (bar,) = [bar for bar in plot.bars if bar.height]
    assert bar.text.startswith("first difference, largest of 3 values: v3333: 50 %")
    assert plot.first == pytest.approx(bar.left + bar.width / 2, abs=0.01)


def test_the_table_has_the_largest_errors() -> None:
    plot = plot_of(*[0.0, *(10.0**-n for n in range(15))])

    assert [value.value for value in plot.largest] == [f"v{n}" for n in range(1, 11)]
