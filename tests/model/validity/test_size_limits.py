"""How many nodes, inputs and so on a model may have, as it is and with the calls of its local functions written out."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.errors import CannotMigrate, LoadError
from onnx_migrate.files import load
from onnx_migrate.model.validity.size_limits import MOST_LEVELS, MOST_NODES, check_growth, require_size
from onnx_migrate.rewrite.inline_functions import inline_calls
from tests.campaigns.hostile.building import model, node
from tests.campaigns.hostile.growth import doubling
from tests.support.small_model import small


def crowded(field: str, count: int) -> onnx.ModelProto:
    proto = small()
    owner = proto if field in ("functions", "metadata_props", "opset_import") else proto.graph
    repeated = getattr(owner, field)
    for _ in range(count):
        repeated.add()
    return proto


@pytest.mark.parametrize(
    ("field", "count", "text"),
    [
        ("functions", 50_001, "it has 50,001 functions, and at most 50,000 are handled"),
        ("opset_import", 1_001, "it has 1,002 opset imports, and at most 1,000"),
        ("input", 100_000, "it has 100,001 inputs, and at most 100,000"),
        ("output", 100_001, "it has 100,002 outputs"),
    ],
)
def test_more_than_any_model_has_is_refused(field: str, count: int, text: str) -> None:
    with pytest.raises(LoadError, match=text) as caught:
        load(crowded(field, count).SerializeToString())
    assert caught.value.code == "too-large"


def test_what_large_models_have_is_taken() -> None:
    require_size(crowded("node", 200_000), "model")
    require_size(crowded("initializer", 100_000), "model")


def test_a_node_of_more_values_than_any_has_is_refused() -> None:
    proto = small()
    node = proto.graph.node[0]
    node.output.extend(f"o{index}" for index in range(100_000 - len(node.output)))
    require_size(proto, "model")
    node.output.append("one")

    with pytest.raises(LoadError, match="100,001 inputs or outputs, and at most 100,000") as caught:
        require_size(proto, "model")
    assert caught.value.code == "too-large"


def calling(levels: int, calls: int = 2) -> onnx.ModelProto:
    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(levels, calls))


def test_the_count_is_that_of_inlining(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = calling(8)
    inlined = onnx.ModelProto()
    inlined.CopyFrom(proto)
    calls = inline_calls(inlined)
    expanded = len(inlined.graph.node) + calls - 1  # the calls are nodes too, but for that of the main graph
    monkeypatch.setattr("onnx_migrate.model.validity.size_limits.MOST_NODES", expanded)
    check_growth(proto)
    monkeypatch.setattr("onnx_migrate.model.validity.size_limits.MOST_NODES", expanded - 1)
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
