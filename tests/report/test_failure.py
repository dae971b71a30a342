"""Errors as exit codes and as JSON."""

from __future__ import annotations

import json

import pytest

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
from onnx_migrate.report.failure import Failure, exit_code
from onnx_migrate.report.json_form import json_of


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
        "hint": "give one",
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


def test_a_model_that_was_not_loaded_has_no_partial_report() -> None:
    entry = json_of(Failure.of("m.onnx", LoadError("no ONNX model")))

    assert entry["outcome"] == "failed"
    assert (entry["before"], entry["changes"], entry["blocked"], entry["verification"]) == (
        None,
        [],
        None,
        None,
    )
