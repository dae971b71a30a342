"""Dims of outputs are the inputs' symbols, numbers, the user's names, or names of their own."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.dynamic_dims.output_dims import declare_outputs

from onnx_migrate.errors import UsageError
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.steps import refuses
from tests.support.repairs import text

SOURCE = text(
    "float[N,4,T] x", "float[9,9,9] y, float[9,9,9] z",
    "y = Relu(x) z = MaxPool<kernel_shape=[2], strides=[2]>(x)",
)  # fmt: skip


def declared(names: dict[str, dict[int, str]]) -> list[tuple[int | str | None, ...] | None]:
    result = Model(model(SOURCE))
    frozen = Interface.of(model(text("float[1,4,8] x", "float[1,4,8] y, float[1,4,4] z", "y = Relu(x)")))
    plan = DimPlan.of_axes({"x": {0: "N", 2: "T"}, **names}, frozen)
    declare_outputs(result, plan, {}, ChangeLog(), "dynamic_dims")
    return [port.shape for port in Interface.of(result.proto).outputs]


def test_symbols_and_numbers_are_inferred_and_other_lengths_get_own_names() -> None:
    assert declared({}) == [("N", 4, "T"), ("N", 4, "T//2")]


def test_a_name_of_the_users_stands_for_a_length_of_its_own() -> None:
    assert declared({"z": {2: "half"}})[1] == ("N", 4, "half")


def test_a_name_for_a_fixed_length_is_refused() -> None:
    refuses("frozen-output", declared, {"y": {1: "C"}})


def test_a_second_name_for_an_inputs_symbol_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        declared({"y": {0: "M"}})

    assert caught.value.code == "two-names"


def untyped(body: str) -> Model:
    found = model(text("float[N,4] x", "float[9,9] y", body))
    found.graph.output[0].ClearField("type")
    found.opset_import.add(domain="mine", version=1)
    frozen = Interface.of(model(text("float[1,4] x", "float[1,4] y", "y = Relu(x)")))
    result = Model(found)
    declare_outputs(result, DimPlan.of_axes({"x": {0: "N"}}, frozen), {}, ChangeLog(), "dynamic_dims")
    return result


def test_an_output_without_a_type_gets_the_inferred_one() -> None:
    (port,) = Interface.of(untyped("y = Shape(x)").proto).outputs
    assert (port.kind, port.shape) == ("int64", (2,))


def test_an_output_whose_type_is_not_inferred_stays_without() -> None:
    """Element type 0 with a shape is not a type: ONNX Runtime does not load it."""
    (value,) = untyped("y = mine.Odd(x)").proto.graph.output
    assert value.type.WhichOneof("value") is None
