"""Some cases of the fuzzer, and that it finds what is broken. `python -m tests.campaigns.fuzz` runs more."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.migration import Migration
from tests.campaigns.fuzz import oracle, wire_oracle
from tests.campaigns.fuzz.case import Case, case_of
from tests.campaigns.fuzz.pool import run
from tests.verify.harness import net

SEEDS = range(60 if onnx.defs.onnx_opset_version() >= 22 else 30)
"""Another release of onnx makes other models of them, and an old one takes 15 s to collect its own test cases."""

GOOD = net(
    "(float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { t = Add (x, w)  y = Softmax (t) }", opset=11
)


@pytest.mark.long
def test_random_models_and_bytes_keep_every_promise() -> None:
    found = {result.seed: result.finds for result in run(SEEDS) if result.finds}
    assert not found, "see python -m tests.campaigns.fuzz --seed N"


@pytest.mark.long
def test_a_seed_is_one_case() -> None:
    assert [case_of(seed) for seed in range(15)] == [case_of(seed) for seed in range(15)]


def good(**options: Any) -> Case:
    return Case(0, "generated", "text", GOOD.SerializeToString(), {"simplify": False, "opset": 17, **options})


def test_a_good_model_is_no_find() -> None:
    assert oracle.check(good()) == oracle.Outcome("verified", (), oracle.check(good()).digest)


def broken(monkeypatch: pytest.MonkeyPatch, change: Any) -> tuple[str, ...]:
    """Return what is found when migrate returns a result that `change` was applied to."""
    genuine = oracle.migrate

    def migrate(*args: Any, **kwargs: Any) -> Migration:
        migration = genuine(*args, **kwargs)
        change(migration.model)
        return migration

    monkeypatch.setattr(oracle, "migrate", migrate)
    return oracle.check(good()).finds


def rename_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = model.graph.node[-1].output[0] = "z"


def change_weight(model: onnx.ModelProto) -> None:
    value = onnx.numpy_helper.to_array(model.graph.initializer[0]) + np.float32(0.5) * np.arange(
        3, dtype=np.float32
    )
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(value, "w"))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (rename_output, "other outputs"),
        (change_weight, "numbers: outputs"),
        (lambda model: setattr(model.opset_import[0], "version", 16), "at opset [16]"),
        (lambda model: setattr(model.graph.input[0].type.tensor_type, "elem_type", 11), "other inputs"),
        (lambda model: setattr(model.graph.node[0], "op_type", "Nothing"), "ONNX Runtime loads the original"),
        (lambda model: setattr(model.graph.node[0], "op_type", "Nothing"), "onnx.checker refuses"),
    ],
)
def test_a_broken_promise_is_a_find(change: Any, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(found in text for text in broken(monkeypatch, change))


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (CannotMigrate("x", code="not-a-code"), "is not explained"),
        (CannotMigrate("x " * 3000, code="no-equal"), "a message of"),
        (CannotMigrate("x", code="numbers-differ"), "computes other numbers"),
        (ValueError("x"), "exception: ValueError"),
    ],
)
def test_a_bad_error_is_a_find(error: Exception, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def migrate(*args: Any, **kwargs: Any) -> Migration:
        raise error

    monkeypatch.setattr(oracle, "migrate", migrate)
    assert any(found in text for text in oracle.check(good()).finds)


def test_another_reading_of_bytes_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    data = GOOD.SerializeToString()
    assert wire_oracle.wire_finds(data) == []
    other = files.load(net("(float[2] x) => (float[2] y) { y = Relu (x) }").SerializeToString())
    monkeypatch.setattr(files, "load", lambda data: other)
    assert wire_oracle.wire_finds(data) == ["wire: read as another model than protobuf reads"]
    assert wire_oracle.wire_finds(data[:20]) == ["wire: read although protobuf refuses it"]
