"""A request is resolved once in a migration."""

from __future__ import annotations

from onnx_migrate.passes.input_dims import requested_dims

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.support.repairs import text

SOURCE = text("float[1,4] x", "float[1,4] y", "y = Relu(x)")


def test_a_request_that_can_be_read_once_serves_all_passes() -> None:
    log, request = ChangeLog(), iter(["x:N,4"])

    first = requested_dims(request, Model(model(SOURCE)), log)
    second = requested_dims(request, Model(model(SOURCE)), log)

    assert first.axes == {"x": {0: "N"}}
    assert second is first


def test_another_request_is_resolved_anew() -> None:
    log = ChangeLog()
    requested_dims("x:N,4", Model(model(SOURCE)), log)

    assert requested_dims("x:1,K", Model(model(SOURCE)), log).axes == {"x": {1: "K"}}
    assert requested_dims(None, Model(model(SOURCE)), log).is_empty
