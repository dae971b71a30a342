"""A sample of the models whose results are migrated a second time; `second.py` runs all."""

from __future__ import annotations

import onnx
import pytest

from tests.campaigns.idempotence.second import REQUESTS, again
from tests.support.paths import FIXTURES

MODELS = ("control_flow_opset11", "crnn_opset9", "detector_opset10", "transformer_opset12")
"""One each with branches, a recurrent network, Resizes, and products of matrices."""


@pytest.mark.parametrize("request_name", REQUESTS)
@pytest.mark.parametrize("model", MODELS)
def test_a_second_migration_of_a_result_changes_nothing(model: str, request_name: str) -> None:
    assert again(FIXTURES / f"{model}.onnx", request_name) == "same"


def test_what_a_second_migration_changes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = iter(("Relu", "Neg"))

    def migrate(model: object, **options: object) -> object:
        node = onnx.helper.make_node(next(made), ["x"], ["y"])
        proto = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [], []))
        return type("Migration", (), {"model": proto})

    monkeypatch.setattr("onnx_migrate.migrate", migrate)
    assert again(b"", "default") == "changed: 1 Relu became 1 Neg"
