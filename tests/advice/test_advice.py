"""What is said of a model and a runtime, as plain values."""

from __future__ import annotations

import json

from onnx_migrate.advice.advice import Advice, Standing
from onnx_migrate.engine.objections import Objection
from onnx_migrate.errors import CannotMigrate, Where
from tests.support.targets import targets_of

(TARGET,) = targets_of('[[release]]\nopset = 13\nsource = "its manual"')


def test_standings_are_in_order() -> None:
    assert [item.rank for item in Standing] == [3, 2, 1, 0]


def test_as_json() -> None:
    refusal = CannotMigrate("there is no such thing", code="target-lacks")
    objection = Objection("no such thing", Where("graph", "n", "Thing"), 2)
    advice = Advice(
        TARGET, Standing.NO, (objection,), obstacles=(objection,), helps=("another",), refusal=refusal
    )
    found = json.loads(json.dumps(advice.as_dict()))

    assert (found["standing"], found["code"], found["helps"]) == ("no", "target-lacks", ["another"])
    assert found["runtime"]["measured"] is False
    assert found["obstacles"] == [
        {
            "reason": "no such thing",
            "scope": "graph",
            "node": "n",
            "operator": "Thing",
            "nodes": 2,
            "wrong": False,
        }
    ]
