import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.validity.growth import MOST_LEVELS, MOST_NODES, check_growth
from onnx_migrate.rewrite.inline_functions import inline_calls
from tests.hostile.building import model, node
from tests.hostile.growth import doubling


def calling(levels: int, calls: int = 2) -> onnx.ModelProto:
    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(levels, calls))


def test_the_count_is_that_of_inlining(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = calling(8)
    inlined = onnx.ModelProto()
    inlined.CopyFrom(proto)
    calls = inline_calls(inlined)
    expanded = len(inlined.graph.node) + calls - 1  # the calls are nodes too, but for that of the main graph
    monkeypatch.setattr("onnx_migrate.model.validity.growth.MOST_NODES", expanded)
    check_growth(proto)
    monkeypatch.setattr("onnx_migrate.model.validity.growth.MOST_NODES", expanded - 1)
    with pytest.raises(CannotMigrate, match=f"stand for {expanded:,} nodes"):
        check_growth(proto)


def test_a_large_number_has_not_a_digit_for_each_function() -> None:
    with pytest.raises(CannotMigrate, match="more than 1,000,000,000,000 nodes") as caught:
        check_growth(calling(90))
    assert caught.value.code == "too-large"
    assert str(caught.value.where) == "function f:F0"


def test_levels_are_counted() -> None:
    check_growth(calling(MOST_LEVELS, 1))
    with pytest.raises(CannotMigrate, match=f"a chain of {MOST_LEVELS + 1} functions"):
        check_growth(calling(MOST_LEVELS + 1, 1))


def test_functions_that_nothing_calls_do_not_count() -> None:
    check_growth(model([node("Relu", ["x"], ["y"])], functions=doubling(40)))


def test_real_sizes_are_far_below_the_limit() -> None:
    assert MOST_NODES >= 1_000_000
