"""`dynamic_batch`: which axis of which input is the batch."""

from __future__ import annotations

import pytest

import onnx_migrate
from onnx_migrate.errors import UsageError
from onnx_migrate.model.dim_plan import DimPlan, batch_symbols, plans_for_batch
from onnx_migrate.model.interface import Interface, Port
from tests.harness import model
from tests.support.repairs import text


def ways(*shapes: tuple[int | str, ...]) -> list[dict[str, dict[int, str]]]:
    ports = tuple(Port(f"x{index}", "float", shape) for index, shape in enumerate(shapes))
    interface = Interface(ports, ())
    return [plan.axes for plan in plans_for_batch(DimPlan(), interface, "N")]


def test_likeliest_first() -> None:
    assert ways((1, 3, 8, 8)) == [{"x0": {0: "N"}}]
    assert ways((4, 3), (4, 7))[0] == {"x0": {0: "N"}, "x1": {0: "N"}}
    assert ways((1, 16), (2, 1, 8))[0] == {"x0": {0: "N"}, "x1": {1: "N"}}
    assert ways((1, 16), (8,)) == [{"x0": {0: "N"}}]
    assert {"x0": {0: "N"}} in ways((1, 16), (1,))
    assert ways(("M", 3)) == []
    assert ways(("M", 76, 32, 1)) == []
    assert ways(("M", 1)) == []
    with pytest.raises(UsageError):
        ways((7, 3), (5, 2))


def test_which_symbols_are_a_batch() -> None:
    assert batch_symbols({"x": {0: "T", 1: "N"}}) == {"N"}
    assert batch_symbols({"x": {0: "B", 1: "N"}}) == {"B"}
    assert batch_symbols({"x": {0: "anything", 2: "H"}}) == {"anything"}
    assert batch_symbols({"x": {1: "batch_size", 0: "T"}}) == {"batch_size"}
    assert batch_symbols({"x": {2: "H"}}) == set()


def test_a_state_has_its_batch_where_the_network_has_it() -> None:
    """[1, 1, 3]: layers and batch are both 1. The network tells which is which."""
    rows = ",".join(["0.5"] * 36)
    source = text(
        "float[4,1,2] x, float[1,1,3] h", "float[4,1,1,3] y, float[1,1,3] yh",
        "y, yh = LSTM<hidden_size=3>(x, w, r, , , h)",
        "float[1,12,2] w = {" + ",".join(["0.5"] * 24) + "}, float[1,12,3] r = {" + rows + "}",
    )  # fmt: skip

    migration = onnx_migrate.migrate(model(source), dynamic_batch="batch")

    interface = Interface.of(migration.model)
    assert [port.shape for port in interface.inputs] == [(4, "batch", 2), (1, "batch", 3)]
    assert [port.shape for port in interface.outputs] == [(4, 1, "batch", 3), (1, "batch", 3)]
    assert migration.report.dynamic is not None
    assert migration.report.dynamic["holds"]


def test_an_open_batch_stays_open() -> None:
    migration = onnx_migrate.migrate(
        model(text("float[M,4] x", "float[M,4] y", "y = Relu(x)")), dynamic_batch=True
    )

    assert Interface.of(migration.model).inputs[0].shape == ("M", 4)
