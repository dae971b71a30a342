"""Passes that run again with other options, to add a way out to the error of a proof."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from onnx import numpy_helper

from onnx_migrate import VerificationFailed, default_pipeline, migrate
from onnx_migrate.advice import Advice
from onnx_migrate.engine.helping_passes import AdvisingPass, Retry
from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.errors import MigrateError
from onnx_migrate.files import load
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verification import retry
from onnx_migrate.verification.retry import Retrying
from onnx_migrate.verify import Settings
from onnx_migrate.verify.prover import Prover
from tests.harness import model
from tests.support.small_model import HERE

NET = "17 (float[2] x) => (float[2] y) <float[2] w = {0.5, 2.}> { y = Mul(x, w) }"


@dataclass(frozen=True)
class Scales(AdvisingPass):
    """Scales the weight, and knows that a factor of 1 is right."""

    name = "scales"
    factor: float = 2.0

    def run(self, model: Model, log: ChangeLog) -> Model:
        for tensor in model.proto.graph.initializer:
            array = numpy_helper.to_array(tensor) * np.float32(self.factor)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        if not self.factor:
            raise MigrateError("no factor")
        return model

    def advice_on(self, error: MigrateError, retry: Retry) -> tuple[Advice, ...]:
        works = [factor for factor in (3.0, 1.0) if retry.holds({self.name: replace(self, factor=factor)})]
        return (Advice(f"factor={works[0]:g} works", tried=True), *error.advice)


@dataclass(frozen=True)
class Fails(Scales):
    name = "fails"
    optional = True


def retrying(*passes: Pass) -> Retrying:
    original = load(model(NET))
    return Retrying(Pipeline(passes), Prover(Settings(isolated=False)), original, original, ChangeLog())


def test_a_pass_adds_the_request_that_works_to_the_error() -> None:
    with pytest.raises(VerificationFailed) as caught:
        migrate(model(NET), pipeline=default_pipeline(simplify=False).add(Scales()), **HERE)
    assert caught.value.hint.startswith("factor=1 works; ")


def test_optional_passes_are_left_out() -> None:
    assert [item.name for item in retrying(Scales(), Fails()).passes] == ["scales"]
    assert retrying(Scales(factor=1.0), Fails(factor=0.0)).holds({})


@pytest.mark.parametrize(("factor", "loads"), [(2.0, True), (0.0, False)])
def test_a_result_that_loads_need_not_hold(factor: float, loads: bool) -> None:
    tried = retrying(Scales())
    assert tried.loads({"scales": Scales(factor=factor)}) is loads
    if loads:
        assert not tried.holds({"scales": Scales(factor=factor)})


def test_the_time_for_tries_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not retrying().is_over
    monkeypatch.setattr(retry, "_PATIENCE", -1.0)
    assert retrying().is_over
