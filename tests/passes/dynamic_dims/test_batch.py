"""`dynamic_batch`, where the axis of the batch has to be found."""

from __future__ import annotations

import onnx_migrate
from onnx_migrate.model.interface import Interface
from tests.harness import model
from tests.support.repairs import text


def test_the_plan_that_succeeds_is_the_one_that_is_reported() -> None:
    """[1, 1, 3]: layers and batch are both 1. Only the network's operators show which is the batch."""
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
    assert migration.report.dynamic.holds
    assert [(dim.input, dim.axis, dim.symbol) for dim in migration.report.dims.dims] == [
        ("x", 1, "batch"),
        ("h", 1, "batch"),
    ]


def test_a_batch_that_is_dynamic_already_is_kept() -> None:
    migration = onnx_migrate.migrate(
        model(text("float[M,4] x", "float[M,4] y", "y = Relu(x)")), dynamic_batch=True
    )

    assert Interface.of(migration.model).inputs[0].shape == ("M", 4)
