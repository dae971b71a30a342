"""The steps of ai.onnx on the samples of their operators: a model before and after a step, or before and after all steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import onnx

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.errors import MigrateError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import newest_opset, versions
from tests.passes.steps.samples import Sample
from tests.passes.steps.step_samples import STEP_SAMPLES

__all__ = ["StepRun", "step_runs", "without"]


@dataclass(frozen=True)
class StepRun:
    """A sample of an operator before and after steps of the operator."""

    operator: str
    number: int
    """The number of the sample among those of the operator, the first being 1."""
    way: str
    """The opsets as "14→13", or "without" for a target that lacks the operator."""
    before: onnx.GraphProto
    after: onnx.GraphProto | MigrateError


@cache
def step_runs(operator: str) -> tuple[StepRun, ...]:
    """Return the runs of each sample of an operator: from each version one up and one down, and down to the oldest opset."""
    return tuple(_runs(operator))


def _runs(operator: str) -> Iterator[StepRun]:
    for number, sample in enumerate(STEP_SAMPLES[operator], 1):
        for way, opset, convert in _ways(operator, sample):
            model = sample.model(opset)
            try:
                after: onnx.GraphProto | MigrateError = convert(Model(model)).proto.graph
            except MigrateError as error:
                after = error
            yield StepRun(operator, number, way, sample.model(opset).graph, after)


Conversion = Callable[[Model], Model]


def _ways(operator: str, sample: Sample) -> Iterator[tuple[str, int, Conversion]]:
    last = min(sample.last, newest_opset())
    own = [version for version in versions("", operator) if sample.first <= version <= last]
    for version in versions("", operator):
        if sample.first < version <= last + 1 and version > 1 and version - 1 <= last:
            yield f"{version - 1}→{version}", version - 1, lambda model, to=version: _lifted(model, to)
    for version in own:
        if version > OLDEST:
            yield f"{version}→{version - 1}", version, lambda model, to=version - 1: _lowered(model, to)
    if own and own[-1] > OLDEST + 1:
        yield f"{own[-1]}→{OLDEST}", own[-1], lambda model: _lowered(model, OLDEST)
    if decomposition_of("", operator) is not None and own:
        yield "without", last, lambda model: _converted_without(model, operator)


def _lifted(model: Model, to: int) -> Model:
    return make_pass("migrate_opset", opset=to, unlist=False).run(model, ChangeLog())


def _lowered(model: Model, to: int) -> Model:
    log = ChangeLog()
    newer = make_pass("migrate_opset", opset=to, unlist=False, newer="lower").run(model, log)
    return make_pass("lower_opset", opset=to).run(newer, log)


def _converted_without(model: Model, operator: str) -> Model:
    decomposed = decompose_model(
        model, lambda node, scope: "unfit" if node.op_type == operator else None, ChangeLog(), "fit"
    )
    if decomposed.refusals:
        raise decomposed.refusals[0].error
    return decomposed.model


def without(proto: onnx.ModelProto, operator: str) -> onnx.ModelProto:
    """Return a model for a target that lacks an operator. Raises MigrateError if no other operators replace it."""
    return _converted_without(Model(proto), operator).proto
