"""The smallest part of two models that computes different values from the same inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from onnx_migrate import files
from onnx_migrate.engine.validity import accepted
from onnx_migrate.errors import MigrateError, UsageError
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.process import Returned, TimedOut, mark, seconds_left
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.reduction.candidate import Candidate, node_count, operators_of
from onnx_migrate.reduction.failures import Failure, shows_error
from onnx_migrate.reduction.parts import Parts, constant_tensor, replace_all
from onnx_migrate.reduction.plain_form import store_constants
from onnx_migrate.reduction.recording import recorded_values, time_option
from onnx_migrate.reduction.result import Reduction, ReductionReport, input_files, ports_of
from onnx_migrate.reduction.validity import fault_of
from onnx_migrate.verify.divergence.first import located
from onnx_migrate.verify.divergence.samples import sample_of
from onnx_migrate.verify.equivalence.counterparts import rename_values
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import Settings, interruption

__all__ = ["reduced_pair"]


@dataclass(frozen=True)
class _Region:
    """The values that each model computes where they part. `partners` are values of the second model that agree."""

    original: tuple[str, ...]
    other: tuple[str, ...]
    partners: Mapping[str, str]
    feed: Mapping[str, Any]
    error: float


def reduced_pair(
    model: Model, against: Model, settings: Settings, listen: Callable[[str], object] | None = None
) -> Reduction:
    """Return the part of both models between the last values that agree and the first that do not.

    Raises UsageError, code `check-passes`, if their outputs agree, and for other inputs or outputs. Raises MigrateError, code
    `timed-out`, if the first difference is not found in time.
    """
    say = listen or (lambda _: None)
    start = time.monotonic()
    models = [_valid(each) for each in (model, against)]
    difference = Interface.of(models[0].proto).difference(Interface.of(models[1].proto))
    if difference:
        raise UsageError(f"a pair needs the same inputs and outputs: {difference}", code="bad-check")
    smallest = _smallest(models, settings, say)
    return _result(models, smallest, time.monotonic() - start, settings)


@dataclass(frozen=True)
class _Pair:
    """Two models or parts of these that compute different values, with the largest error and the number of runs."""

    models: tuple[Candidate, Candidate]
    error: float
    runs: int
    notes: tuple[str, ...]


def _smallest(models: Sequence[Model], settings: Settings, say: Callable[[str], object]) -> _Pair:
    """Return the smallest parts that show the difference, or the models with a note on the reason. Raises as `_region` does."""
    with Prover(settings) as prover, TemporaryFolder() as folder:
        runnables = [prover.runnable(each) for each in models]
        say("looking for the first difference")
        region = _region(runnables, settings)
        say("cutting both models")
        recorded = [
            recorded_values(runnable, region.feed, _new_folder(folder / str(index)), settings)
            for index, runnable in enumerate(runnables)
        ]
        sides = [
            Parts(Candidate(each, region.feed, values, is_static=True))
            for each, values in zip(models, recorded, strict=True)
        ]
        unrecorded = dict.fromkeys(filter(None, (values.reason for values in recorded)))
        notes = [
            f"ones stand for the inner values, which were not recorded: {reason}" for reason in unrecorded
        ]
        runs, reasons = 0, dict[str, None]()
        for runs, (part, two) in enumerate(_cuts(sides, region), 1):
            error, reason = _error(part, two, settings)
            if shows_error(error, region.error):
                part, two = (replace(each, feed=dict(part.feed)) for each in (part, two))
                return _Pair((part, two), error, runs, tuple(notes))
            reasons.update(dict.fromkeys(filter(None, [reason])))
    notes.append(": ".join(["no smaller model shows the failure", *reasons]))
    whole = Candidate(models[0], region.feed), Candidate(models[1], region.feed)
    return _Pair(whole, region.error, runs, tuple(notes))


def _new_folder(path: Path) -> Path:
    path.mkdir()
    return path


def _valid(model: Model) -> Model:
    plain_model = accepted(model).copy()
    sort_model(plain_model.proto)
    store_constants(plain_model.proto)
    return plain_model


def _region(runnables: Sequence[Runnable], settings: Settings) -> _Region:
    """Return the region in which two models part. Raises UsageError if they agree, or do not run.

    Raises MigrateError, code `timed-out`, if that is not known in time.
    """
    ending = settings.alone.call(f"{__name__}:region", *runnables, settings.for_child)
    if not isinstance(ending, Returned):
        if (error := getattr(ending, "error", None)) is not None:
            raise error
        if isinstance(ending, TimedOut):
            raise MigrateError(
                f"the models could not be compared: the step {ending.stage or 'start'!r} {ending}",
                code="timed-out",
                hint=f"{time_option()} allows more time",
            )
        raise UsageError(f"the models could not be compared: {interruption(ending)}", code="bad-check")
    if ending.value is None:
        raise UsageError(
            "both models compute the same outputs, so there is nothing to reduce",
            code="check-passes",
            hint="give inputs on which they differ (--input-data)",
        )
    failing_region: _Region = ending.value
    return failing_region


def region(original: Runnable, other: Runnable, settings: Settings) -> _Region | None:
    """Find the region, in a child process."""
    agreement, difference = located(original, other, settings)
    if difference is None:
        return None
    side = agreement.original
    partners = {
        name: side.value_of(value)
        for name, value in agreement.partners.items()
        if side.value_of(value) == value
    }
    errors = [error for error in agreement.outputs.values() if np.isfinite(error)]
    worst = max(errors, default=1.0) if len(errors) == len(agreement.outputs) else 1.0
    return _Region(difference.region.original, difference.region.other, partners, side.feed, worst)


def _cuts(sides: Sequence[Parts], region: _Region) -> Iterator[tuple[Candidate, Candidate]]:
    """Yield parts of both models with the same inputs and outputs, the smallest first."""
    ends = region.original[-1], region.other[-1]
    outputs = [value.name for value in sides[0].whole.proto.graph.output]
    inside = [
        _makers(parts, names) for parts, names in zip(sides, (region.original, region.other), strict=True)
    ]
    behind = [_behind(parts, steps) for parts, steps in zip(sides, inside, strict=True)]
    for steps, names in ((inside, ([ends[0]], [ends[1]])), (behind, (outputs, outputs))):
        kept_steps = [
            [name for name in group if parts.makers.get(name, -1) in {*own}]
            for parts, own, group in zip(sides, steps, names, strict=True)
        ]
        part, two = (
            parts.part(own, group) if group else None
            for parts, own, group in zip(sides, steps, kept_steps, strict=True)
        )
        if part is None or two is None or len(kept_steps[0]) != len(kept_steps[1]):
            continue
        paired = _with_same_ports(
            part, two, dict(zip(kept_steps[1], kept_steps[0], strict=True)), region.partners
        )
        if not (fault_of(paired[0].proto) or fault_of(paired[1].proto)):
            yield paired


def _makers(parts: Parts, names: Sequence[str]) -> list[int]:
    """Return the nodes that compute these values."""
    return sorted({parts.makers[name] for name in names})


def _behind(parts: Parts, steps: Sequence[int]) -> list[int]:
    """Return these nodes and all that read from them."""
    reached = {name for index in steps for name in parts.nodes[index].output if name}
    steps_behind = {*steps}
    for index in parts.steps:
        if not reached.isdisjoint(parts.reads[index]):
            steps_behind.add(index)
            reached.update(filter(None, parts.nodes[index].output))
    return sorted(steps_behind)


def _with_same_ports(
    one: Candidate, two: Candidate, outputs: Mapping[str, str], partners: Mapping[str, str]
) -> tuple[Candidate, Candidate]:
    """Return both parts with the inputs of the first: an input of the second that is none of these becomes a constant."""
    proto = onnx.ModelProto()
    proto.CopyFrom(two.proto)
    weights = two.model.weights.copy()
    renamed = dict(outputs)
    entering = {value.name: value for value in one.proto.graph.input}
    for value in list(proto.graph.input):
        partner = value.name if value.name in one.feed else partners.get(value.name, "")
        array = two.feed[value.name]
        if (
            partner in entering
            and partner not in renamed.values()
            and np.shape(one.feed[partner]) == np.shape(array)
        ):
            renamed[value.name] = partner
        else:
            proto.graph.initializer.append(constant_tensor(value.name, np.asarray(array), weights))
    replace_all(proto.graph.input, [value for value in proto.graph.input if value.name in renamed])
    names = Names(proto)
    # An inner value of the second model may already have the name that an input or output gets.
    clashes = {
        name: names.fresh(f"{name}_of_the_second")
        for name in {*renamed.values()} - renamed.keys()
        if names.fresh(name) != name
    }
    rename_values(proto.graph, {**clashes, **renamed})
    replace_all(proto.graph.input, entering.values())
    paired_model = replace(two.model, proto=proto, weights=weights)
    return one, Candidate(paired_model, dict(one.feed), is_static=True)


def _error(one: Candidate, two: Candidate, settings: Settings) -> tuple[float, str]:
    """Return the difference between the outputs of two parts, as a share of their largest value.

    If one does not run, that is 0, with the reason.
    """
    with TemporaryFolder() as folder:
        paths = [folder / "original.onnx", folder / "other.onnx"]
        for candidate, path in zip((one, two), paths, strict=True):
            files.save(candidate.model, path)
        ending = settings.alone.call(f"{__name__}:error_of", *map(Runnable, paths), dict(one.feed))
    if isinstance(ending, Returned):
        error: tuple[float, str] = ending.value
        return error
    return 0.0, interruption(ending, time_option())


def error_of(original: Runnable, other: Runnable, feed: Mapping[str, Any]) -> tuple[float, str]:
    """Run both parts, in a child process; return the error, or 0 and the reason if one does not run."""
    mark("running the parts")
    try:
        runs = [open_model(each, UNOPTIMIZED).run(feed) for each in (original, other)]
    except EvaluationError as error:
        return 0.0, str(error)
    pairs = [(sample_of(value), sample_of(runs[1].get(name))) for name, value in runs[0].items()]
    errors = [part.error(two) for part, two in pairs if part is not None and two is not None]
    return max(errors, default=0.0), ""


def _result(models: Sequence[Model], smallest: _Pair, seconds: float, settings: Settings) -> Reduction:
    part, two = smallest.models
    inputs, outputs = ports_of(part)
    error = smallest.error
    failure = Failure(
        "wrong", "numbers", f"the outputs differ by up to {error:.3g} of the largest value", error
    )
    notes = [
        f"the part of the second model has {node_count(two.proto)} of {node_count(models[1].proto)} nodes:"
        f" {', '.join(operators_of(two.proto))}",
        *smallest.notes,
    ]
    report = ReductionReport(
        models[0].name, f"against {models[1].name}", failure, node_count(models[0].proto), node_count(part.proto),
        tuple(operators_of(part.proto).items()), inputs, outputs, smallest.runs, 0, 0, seconds, bool(seconds_left()),
        False, (), tuple(notes),
    )  # fmt: skip
    return Reduction(report, part, None, two, input_files(settings))
