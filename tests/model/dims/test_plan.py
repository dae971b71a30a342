"""The plan of dims that become dynamic."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.model.dims.plan import DimPlan, DynamicDim, batch_symbols, plans_for_batch
from onnx_migrate.model.interface import Interface, Port


def interface(*shapes: tuple[int | str | None, ...]) -> Interface:
    ports = tuple(Port(f"x{index}", "float", shape) for index, shape in enumerate(shapes))
    return Interface(ports, (Port("y", "float", (1, 4)),))


def batches(*shapes: tuple[int | str | None, ...]) -> list[dict[str, dict[int, str]]]:
    return [plan.axes for plan in plans_for_batch(DimPlan(), interface(*shapes), "N")]


def test_a_plan_holds_the_length_and_the_kind_of_each_axis() -> None:
    plan = DimPlan.of({"x0": {0: "N", 2: "H"}, "y": {0: "N"}}, interface((1, 3, 32, "W")))

    assert plan.dims == (DynamicDim("x0", 0, "N", 1, True), DynamicDim("x0", 2, "H", 32, False))
    assert plan.output_names == {"y": {0: "N"}}
    assert plan.frozen_sizes == {"N": 1, "H": 32}
    assert plan.batch == {"N"}


def test_an_axis_that_is_open_already_has_no_frozen_size() -> None:
    plan = DimPlan.of({"x0": {0: "N", 1: "W"}}, interface((1, "old")))

    assert plan.frozen_sizes == {"N": 1}


def test_one_symbol_for_two_lengths_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        DimPlan.of({"x0": {0: "N", 1: "N"}}, interface((1, 3)))

    assert caught.value.code == "other-size"


def test_the_batch_is_looked_for_on_the_likeliest_axis_first() -> None:
    assert batches((1, 3, 8, 8)) == [{"x0": {0: "N"}}]
    assert batches((4, 3), (4, 7))[0] == {"x0": {0: "N"}, "x1": {0: "N"}}
    assert batches((1, 16), (2, 1, 8))[0] == {"x0": {0: "N"}, "x1": {1: "N"}}
    assert batches((1, 16), (8,)) == [{"x0": {0: "N"}}]
    assert {"x0": {0: "N"}} in batches((1, 16), (1,))
    assert batches(("M", 76, 32, 1)) == []
    assert batches(("M", 1)) == []
    assert batches((None, 14)) == batches((None, 1)) == []
    assert batches((1, 16), (None, 1)) == [{"x0": {0: "N"}}]
    with pytest.raises(UsageError):
        batches((7, 3), (5, 2))


def test_axes_that_the_user_named_are_kept_beside_the_batch() -> None:
    asked = DimPlan.of({"x1": {1: "T"}}, interface((1, 4), (1, 7)))

    (plan, *_) = plans_for_batch(asked, interface((1, 4), (1, 7)), "N")

    assert plan.axes == {"x0": {0: "N"}, "x1": {1: "T"}}


@pytest.mark.parametrize("symbol", ["N", "items", "T"])
def test_the_batch_asked_for_is_a_batch_whatever_it_is_called(symbol: str) -> None:
    """Both inputs have it on axis 1, where a name alone would not say so."""
    (plan, *_) = plans_for_batch(DimPlan(), interface((4, 1, 3), (5, 1, 3)), symbol)

    assert plan.axes == {"x0": {1: symbol}, "x1": {1: symbol}}
    assert plan.batch == {symbol}


@pytest.mark.parametrize(
    ("symbols", "batch"),
    [
        ({0: "T", 1: "N"}, {"N"}),
        ({0: "B", 1: "N"}, {"B"}),
        ({0: "anything", 2: "H"}, {"anything"}),
        ({1: "batch_size", 0: "T"}, {"batch_size"}),
        ({2: "H"}, set()),
    ],
)
def test_which_symbols_are_a_batch(symbols: dict[int, str], batch: set[str]) -> None:
    assert batch_symbols({"x": symbols}) == batch


def test_one_symbol_replaces_those_of_equal_axes() -> None:
    sides = interface((1, 4), (1, 5))
    plan, others = DimPlan.of({"x0": [0, 1], "x1": [0, 1]}, sides).with_one_symbol(sides)

    assert others == {"x1_dim_0": "x0_dim_0"}
    assert plan.axes == {"x0": {0: "x0_dim_0", 1: "x0_dim_1"}, "x1": {0: "x0_dim_0", 1: "x1_dim_1"}}


def test_what_changed_between_two_interfaces_is_as_planned() -> None:
    """The batch of the plan stays the batch; an axis that another pass named is added, one that stayed is left out."""
    before = interface((4, 6, 8), (1, 2))
    plan = DimPlan((DynamicDim("x0", 1, "K", 6, True), DynamicDim("x0", 2, "L", 8, False)))

    made = plan.made_between(before, interface((4, "K", 8), ("M", 2)))

    assert made.dims == (DynamicDim("x0", 1, "K", 6, True), DynamicDim("x1", 0, "M", 1, True))


def test_a_part_of_a_plan_and_its_text() -> None:
    plan = DimPlan.of({"x0": {0: "N", 2: "H"}, "x1": {0: "N"}, "y": {0: "N"}}, interface((1, 3, 32), (1, 4)))

    assert plan.texts() == ["x0:0=N,2=H", "x1:0=N"]
    assert plan.only({"N"}).texts() == ["x0:0=N", "x1:0=N"]
    assert plan.only({"N"}).output_names == {}
    assert DimPlan.of(plan.texts(), interface((1, 3, 32), (1, 4))).dims == plan.dims
