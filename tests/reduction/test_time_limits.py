"""The two limits of a reduction: each check's own, and that of the search. Errors name the option that allows more."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

import onnx_migrate
from onnx_migrate import MigrateError
from tests.harness import model

NET = "17 (float[2,4] x) => (float[2,4] y) { a = Relu (x) b = Tanh (a) y = Neg (b) }"

ENDLESS = """17 (float[2,4] x) => (float[2,4] y) <int64 n = {1000000000000}, bool c = {1}> {
  y = Loop (n, c, x) <body = l (int64 i, bool k, float[2,4] h) => (bool k2, float[2,4] h2) {
    h2 = Tanh (h) k2 = Identity (k) }>
}"""
"""A run of a small model may end within any limit, if this process has to wait for the processor."""


def other(text: str = NET) -> onnx.ModelProto:
    return model(text.replace("Tanh", "Sigmoid"))


@pytest.mark.parametrize(
    ("text", "options", "option"),
    [
        (NET, {"check": "exit 3 # {}", "time_limit": 1e-9, "isolated": False}, "--time-limit"),
        (NET, {"run_in": "onnxruntime", "time_limit": 1e-9, "isolated": False}, "--time-limit"),
        (NET, {"message": "x", "time_limit": 1e-9}, "--time-limit"),
        (NET, {"against": other(), "time_limit": 1e-9}, "--time-limit"),
        (ENDLESS, {"against": other(ENDLESS), "check_timeout": 1e-9}, "--check-timeout"),
    ],
    ids=["command", "runtime", "message", "pair", "run of a pair"],
)
def test_no_time_for_the_original_is_an_error(text: str, options: dict[str, Any], option: str) -> None:
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.reduce(model(text), **options)

    assert type(caught.value) is MigrateError
    assert caught.value.code == "timed-out"
    assert option in caught.value.hint
    assert "--timeout" not in caught.value.with_hint


def test_a_note_names_the_limit_of_a_run() -> None:
    report = onnx_migrate.reduce(model(ENDLESS), check="sleep 9 # {}", check_timeout=1e-9).report

    (note,) = (note for note in report.notes if "no runtime here runs the model" in note)
    assert "timed out after 1e-09 s" in note
    assert note.endswith("--check-timeout allows more time")
