"""What is reported of a migration that failed: exit codes, the error as JSON, and what had been done."""

from __future__ import annotations

import json
import pickle
from typing import Any

import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate.errors import (
    CannotMigrate,
    IllegalModel,
    InvalidModel,
    LoadError,
    MigrateError,
    PassError,
    SaveError,
    UsageError,
    VerificationFailed,
    Where,
)
from onnx_migrate.json_form import json_of
from onnx_migrate.report.failure import Failure, PartialReport, exit_code


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (LoadError, 4), (VerificationFailed, 3), (UsageError, 2), (CannotMigrate, 1), (SaveError, 1), (PassError, 1),
        (IllegalModel, 1), (MigrateError, 1),
    ],
)  # fmt: skip
def test_every_kind_of_error_has_an_exit_code(kind: type[MigrateError], code: int) -> None:
    assert exit_code(kind("reason")) == code


def test_the_place_and_the_hint_are_fields_of_their_own() -> None:
    where = Where("graph/if_1:then_branch", "n", "Resize", 10, 11)
    entry = json_of(
        Failure.of("m.onnx", CannotMigrate("no roi", code="bad-roi", where=where, hint="give one"))
    )

    assert entry["error"] == {
        "code": "bad-roi",
        "kind": "CannotMigrate",
        "reason": "no roi",
        "hint": "not tried: give one",
        "hint_tried": False,
        "scope": "graph/if_1:then_branch",
        "node": "n",
        "operator": "Resize",
        "from_version": 10,
        "to_version": 11,
    }
    assert (entry["model"], entry["outcome"]) == ("m.onnx", "refused")
    assert json.loads(json.dumps(entry)) == entry


def test_a_model_that_is_not_valid_has_an_outcome_of_its_own() -> None:
    error = InvalidModel("not a valid ONNX model: …", code="bad-dims")
    assert (json_of(Failure.of("m.onnx", error))["outcome"], exit_code(error)) == ("invalid", 4)


MODEL = """<ir_version: 6, opset_import: ["": 9]>
g (bool b, float[1,3] x) => (float[1,3] y) <float[1] k = {2.0}> {
  u = Unsqueeze <axes = [0]> (x)
  y = If (b) <
    then_branch = t () => (float[1,3] p) { p = ATen <operator = "where"> (x, k) },
    else_branch = e () => (float[1,3] q) { q = Relu (x) }
  >
}"""


@pytest.fixture
def error() -> MigrateError:
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(onnx.parser.parse_model(MODEL), isolated=False)
    return caught.value


def test_the_node_that_cannot_be_migrated_is_found_in_its_subgraph(error: MigrateError) -> None:
    entry: dict[str, Any] = json_of(Failure.of("m.onnx", error))

    blocked = entry["blocked"]
    assert (blocked["node"], blocked["scope"]) == ("p", "graph/y:then_branch")
    assert blocked["before"]["operator"] == "ATen"
    assert blocked["before"]["inputs"] == ["x", "k"]
    assert blocked["constants"] == {"k": {"type": "float", "shape": [1], "value": "[2]"}}
    assert entry["before"]["opset"] == 9
    assert [change["before"]["operator"] for change in entry["changes"]] == ["Unsqueeze"]
    assert set(entry["seconds"]) == {"load", "migrate_opset"}


def test_an_error_pickles_with_its_partial_report(error: MigrateError) -> None:
    assert json_of(Failure.of("m.onnx", pickle.loads(pickle.dumps(error)))) == json_of(
        Failure.of("m.onnx", error)
    )


def test_a_model_that_cannot_be_read_has_no_partial_report() -> None:
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(b"no model")

    assert caught.value.partial_report is None
    entry = json_of(Failure.of("m.onnx", caught.value))
    assert entry["outcome"] == "failed"
    assert (entry["before"], entry["changes"], entry["blocked"], entry["verification"]) == (
        None,
        [],
        None,
        None,
    )


def test_an_error_without_a_node_has_no_blocked_node(error: MigrateError) -> None:
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(onnx.parser.parse_model(MODEL), opset=8, lower=False)

    assert isinstance(caught.value.partial_report, PartialReport)
    assert caught.value.partial_report.node is None


def test_numbers_that_differ_are_listed_by_output() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[4] x) => (float[4] y) <float[1] k = {2.0}> { y = Mul(x, k) }'
    )

    def spoil(model: onnx.ModelProto) -> None:
        model.graph.node[0].op_type = "Add"

    with pytest.raises(onnx_migrate.VerificationFailed) as caught:
        onnx_migrate.migrate(proto, passes=[spoil], simplify=False, isolated=False)

    verification = json_of(Failure.of("m.onnx", caught.value))["verification"]
    assert verification["kind"] == "differs"
    assert [item["output"] for item in verification["comparisons"]] == ["y"]
