"""How far the outputs of a model in another precision are from the original's, and which nodes they part at.

The result runs strictly (strict.py). It may be as far from the original as its type's rounding makes it, or twice as far as
the original is with its weights and inputs rounded alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Step
from onnx_migrate.process import mark
from onnx_migrate.standard.schema import RECURRENT
from onnx_migrate.verdicts import RoundedOutput
from onnx_migrate.verify.compare.values import paired
from onnx_migrate.verify.evaluators import (
    OPTIMIZED,
    STRICT,
    UNOPTIMIZED,
    EvaluationError,
    Evaluator,
    Runnable,
    open_model,
)
from onnx_migrate.verify.evaluators.strict import is_narrow, rounded_weights
from onnx_migrate.verify.kernel import Observation, judge
from onnx_migrate.verify.model_traits import without_draws
from onnx_migrate.verify.precision.causes import causes_of, originals
from onnx_migrate.verify.precision.errors import FROM_DOUBLE, ROUNDING, fed, in_float, is_masked, magnitudes
from onnx_migrate.verify.precision.jumps import SURELY, jump
from onnx_migrate.verify.precision.reference import (
    Reference,
    error_on,
    floors_of_narrow,
    recorded,
    reference_of,
)
from onnx_migrate.verify.settings import Settings

__all__ = [
    "CLOSENESS",
    "MATRIX",
    "RANGES",
    "RUNS",
    "Closeness",
    "Measured",
    "closeness",
    "number_ranges",
    "run_optimised",
]

MATRIX = frozenset({"Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"})
"""Operators for whose time a narrow type is asked for."""

_FLOORS = 2.0
"""How many times as far off as the original with rounded weights and inputs it may be."""

_JUMPING = 4.0
"""How many times that at most where the original decides by numbers: it may be off by a jump, which is no rounding."""

_NEAR = 0.25
"""By which share of what is allowed an output is off on some distribution before more inputs are drawn. In 158 comparisons
of 101 models, further draws were off at most 4 times as far as the first ones where these were off by less than 0.4 of that."""

_FEWER = 2
"""On how many generated ones a result runs as ONNX Runtime runs it, which rounds less often."""


@dataclass(frozen=True)
class Closeness:
    """What comparing found.

    `reason` says why nothing could be compared, "" else. `causes` are the outputs of the original's nodes at which the result
    leaves it; none where it does not.
    `refusal` is what ONNX Runtime says where it loads the original and not the result, or that an output jumps. `beyond` are
    outputs at which a narrow original itself overflows, every value rounded, so that there is nothing to compare with.
    """

    outputs: tuple[RoundedOutput, ...] = ()
    causes: tuple[str, ...] = ()
    reason: str = ""
    refusal: str = ""
    fails: bool = False
    """Whether that is what ONNX Runtime says, and `causes` are all nodes of the form that it has no kernel of."""
    beyond: tuple[str, ...] = ()
    on_others: bool = False
    """Whether it is off by rounding alone, on another feed than the one on which results are tried."""

    @property
    def agrees(self) -> bool:
        """Whether the result loads, and all outputs are within their limits."""
        return not self.refusal and all(output.agrees for output in self.outputs)

    @property
    def worst(self) -> str:
        """What is worst, as a sentence."""
        return self.refusal or str(max(self.outputs, key=lambda output: output.excess))

    @property
    def problem(self) -> str:
        """What is worst, and where the result leaves the original."""
        where = f"; the first value that leaves the original is {self.causes[-1]!r}" if self.causes else ""
        return f"{self.worst}{where}"

    @property
    def excess(self) -> float:
        """By how many times the worst output is off more than allowed; infinite where the result does not load."""
        return float("inf") if self.refusal else max((output.excess for output in self.outputs), default=0.0)


CLOSENESS = "onnx_migrate.verify.precision.closeness:closeness"
"""What runs in the child process."""


def closeness(
    original: Runnable,
    result: Runnable,
    kind: int,
    settings: Settings,
    draws: int = 1,
    migrated: bool = False,
    strictly: bool = False,
    most: float | None = None,
    named_from: float = 0.0,
) -> Closeness:
    """Run both on the same inputs, in whatever process this is, and compare.

    These are drawn so many times, unless the user gave some. `migrated` says that the original has the type itself, so that no
    values of it are rounded that were not before. A result in float16 also runs as ONNX Runtime runs it, with and without
    optimisation, unless `strictly`. With `most` it runs on the feed and in the configuration alone in which a result was off
    last, neither causes nor jumps are looked for, and the comparison ends at the first output that is off by more than so many
    times what is allowed. Causes are looked for where one is off by at least `named_from` times that; and jumps where one is
    within its limit everywhere, or off by more than rounding makes it.
    """
    original, result = without_draws(original, result)
    try:
        mark("original: running")
        reference = reference_of(original, result, settings, draws)
        mark("result: running")
        measured = Measured(reference, result, kind, settings, migrated, most)
    except EvaluationError as error:
        return Closeness(reason=f"it does not {error.failed_to}: {error}")
    halves = kind == TensorProto.FLOAT16 and not migrated
    ways = (STRICT, UNOPTIMIZED, OPTIMIZED) if halves and not strictly else (STRICT,)
    if most is not None:
        ways = (reference.way,)
    rounded: dict[str, float] = {}
    try:
        for way in sorted(ways, key=lambda way: way != reference.way):
            within = measured.run(way)
            rounded = dict(measured.errors) if way == STRICT else rounded
            if not within:
                break
        may_jump = within or (measured.way == STRICT and max(rounded.values(), default=0.0) > SURELY)
        if halves and reference.decides and may_jump and most is None:
            jumping = jump(reference, result, rounded)
            if jumping is not None:
                return Closeness(measured.compared, refusal=jumping[0], causes=jumping[1])
    except EvaluationError as error:
        if measured.way == STRICT or not _runs(reference, measured.way):
            return Closeness(reason=f"it does not {error.failed_to}: {error}")
        reference.way = measured.way
        return _refused(reference, error)
    outputs = measured.compared
    if migrated and settings.tolerance.is_given:
        tolerated = set(_tolerated(reference, measured.runs, settings))
        outputs = tuple(
            replace(output, limit=output.error) if output.name in tolerated else output for output in outputs
        )
    found = Closeness(outputs, beyond=tuple(measured.beyond), on_others=measured.on_others)
    if found.agrees or kind == TensorProto.FLOAT or most is not None or found.excess < named_from:
        return found
    worst, runs = max(outputs, key=lambda output: output.excess), measured.runs
    at = max(runs, key=lambda place: error_on(reference, place, worst.name, runs[place]))
    limit = max(output.limit for output in outputs)
    return replace(found, causes=causes_of(reference, result, at, limit, measured.way))


class Measured:
    """How far the outputs of a result are off, run in one way after the other, and how far they may be."""

    def __init__(
        self,
        reference: Reference,
        result: Runnable,
        kind: int,
        settings: Settings,
        migrated: bool,
        most: float | None,
    ) -> None:
        """`most` is how many times what is allowed an output may be off before nothing more is run, on one feed."""
        self._reference, self._result, self._settings, self._migrated = reference, result, settings, migrated
        self._kind, self._enough, self._tried = kind, 1.0 if most is None else most, most is not None
        from_double = kind == TensorProto.FLOAT and not is_narrow(reference.runnable.model)
        self._rounding = FROM_DOUBLE if from_double else ROUNDING[kind]
        self._most = _JUMPING * self._rounding if reference.decides and not migrated else float("inf")
        self._rounded: Evaluator | None = None
        self.errors: dict[str, float] = {}
        self.outputs: dict[str, RoundedOutput] = {}
        """Of each output the worst, by what it may be off on the same inputs."""
        self.beyond: dict[str, None] = {}
        """Outputs at which the original itself overflows."""
        self.way = STRICT
        """The configuration in which the result ran last."""
        self.runs: dict[int, dict[str, Any]] = {}
        """What it gave there, by the places of feeds."""
        self.on_others = False
        """Whether it was off, every value rounded, on another feed than the one on which results are tried."""

    @property
    def compared(self) -> tuple[RoundedOutput, ...]:
        """The outputs but those at which the original overflows."""
        return tuple(output for name, output in self.outputs.items() if name not in self.beyond)

    def run(self, way: str) -> bool:
        """Load the result in a configuration, and compare. Raises EvaluationError where it does not load or run."""
        model = open_model(self._result, way)
        return self.compare(lambda inputs: model.run(fed(inputs, self._result.model)), way)

    def compare(self, run_on: Callable[[Mapping[str, Any]], Mapping[str, Any]], way: str = STRICT) -> bool:
        """Run on all inputs, or up to the first on which a result that is searched for leaves the original; return whether none.

        Raises EvaluationError where it does not run.
        """
        reference, self.runs, self.way = self._reference, {}, way
        for place in self._places(way):
            run = in_float(run_on(reference.feeds[place].inputs))
            self.runs[place] = run
            errors = {name: error_on(reference, place, name, run) for name in reference.outputs[0]}
            floors: Mapping[str, float] = {}
            if any(error > self._enough * self._rounding for error in errors.values()) or (
                self._migrated and _overflows(reference.outputs[place])
            ):
                self._find_floor(place)
                floors = reference.floors[place]
            for name, error in errors.items():
                self._add(name, error, floors.get(name))
            if not self._migrated and any(output.excess > self._enough for output in self.outputs.values()):
                self.on_others = way == STRICT and place != reference.order[0]
                reference.is_off_on(place, way)
                return False
        return True

    def _places(self, way: str) -> Iterator[int]:
        order = [*self._reference.order]
        if self._tried:
            yield order[0]
        elif way != STRICT and self._settings.feeds is None:
            yield from order[:_FEWER]
        else:
            yield from order
            if any(output.excess > _NEAR for output in self.outputs.values()):
                yield from self._reference.draw_again()

    def _add(self, name: str, error: float, floor: float | None) -> None:
        self.errors[name] = max(error, self.errors.get(name, 0.0))
        if floor == float("inf"):
            self.beyond[name] = None
            return
        limit = min(max(self._rounding, _FLOORS * (floor or 0.0)), self._most)
        output = RoundedOutput(name, error, limit, floor)
        if name not in self.outputs or output.excess > self.outputs[name].excess:
            self.outputs[name] = output

    def _find_floor(self, place: int) -> None:
        """Find out how far off outputs are on the feed at a place by rounding alone."""
        reference = self._reference
        if place in reference.floors:
            return
        if self._migrated or self._kind == TensorProto.FLOAT:
            floor = floors_of_narrow(reference, self._settings, UNOPTIMIZED)
            reference.floors = dict.fromkeys(range(len(reference.feeds)), floor)
            return
        if reference.own_floors is None:
            ways = (UNOPTIMIZED, OPTIMIZED) if is_narrow(reference.runnable.model) else ()
            reference.own_floors = floors_of_narrow(reference, self._settings, *ways) if ways else {}
        try:
            if self._rounded is None:
                rounded = rounded_weights(reference.runnable, self._result, self._kind)
                self._rounded = open_model(rounded, UNOPTIMIZED)
            run = in_float(self._rounded.run(reference.feeds[place].inputs))
        except EvaluationError:
            run = {}
        errors = {name: error_on(reference, place, name, run) for name in run}
        own = reference.own_floors
        reference.floors[place] = own | {
            name: max(off, own.get(name, 0.0)) for name, off in errors.items() if np.isfinite(off)
        }


def _overflows(outputs: Mapping[str, Any]) -> bool:
    arrays = (
        value for value in outputs.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )
    return not all(np.isfinite(array).all() for array in arrays)


def _runs(reference: Reference, way: str) -> bool:
    """Return whether the original runs in a configuration."""
    try:
        open_model(reference.runnable, way).run(reference.feeds[0].inputs)
    except EvaluationError:
        return False
    return True


def _refused(reference: Reference, error: EvaluationError) -> Closeness:
    """Return that the result does not load or run where the original does, and at which node."""
    said = str(error)
    # Where it loads a model, ONNX Runtime names a fused node after one of its own.
    named = [
        step
        for step in reference.graph.steps
        if (name := step.node.name) and (f"({name}" in said or f"'{name}'" in said)
    ]
    longest = sorted(named, key=lambda step: len(step.node.name))[-1:]
    alike = [
        step
        for step in reference.graph.steps
        if not step.is_a(*MATRIX, *RECURRENT)
        and "Type Error" not in said  # of a fused node, whose inputs are of two types
        and any(_form(step) == _form(other) for other in longest)
    ]
    if not longest:  # the node has no name
        words = set(re.findall(r"\w+", said))
        alike = [step for step in reference.graph.steps if step.node.op_type in words]
    causes = tuple(step.node.output[0] for step in (*alike, *longest))
    said = f"ONNX Runtime does not {error.failed_to} it: {said}"
    return Closeness(refusal=said, fails=True, causes=causes)


def _form(step: Step) -> tuple[object, ...]:
    attributes = sorted(attribute.SerializeToString() for attribute in step.node.attribute)
    return step.domain, step.node.op_type, attributes


RUNS = "onnx_migrate.verify.precision.closeness:run_optimised"
"""What runs in the child process where a comparison has ended one."""


def run_optimised(original: Runnable, model: Runnable, settings: Settings) -> None:
    """Run a model with optimisation on the first inputs of an original. Raises EvaluationError; may end the process."""
    reference = reference_of(original, model, settings, 1)
    evaluator = open_model(model, OPTIMIZED)
    for feed in reference.feeds:
        evaluator.run(fed(feed.inputs, model.model))


RANGES = "onnx_migrate.verify.precision.closeness:number_ranges"
"""What runs in the child process, before the first comparison."""


def number_ranges(
    original: Runnable, settings: Settings, draws: int, large: float
) -> dict[str, tuple[float, float, bool]]:
    """Return of the values of the main graph the largest and the smallest magnitude but 0, on the first of so many draws.

    The third is whether the largest is above `large` and may be larger on other inputs, as that of a mask is not.
    """
    (original,) = without_draws(original)
    try:
        reference = reference_of(original, original, settings, draws, recording=True)
    except EvaluationError:
        return {}
    found: dict[str, tuple[float, float, bool]] = {}
    for names, run in originals(reference, 0, recorded(reference)):
        for name in names:
            top, low = magnitudes(run[name])
            found[name] = top, low, top > large and not is_masked(run[name])
    return found


def _tolerated(
    reference: Reference, runs: Mapping[int, Mapping[str, Any]], settings: Settings
) -> Iterable[str]:
    """Yield the outputs that are within the tolerance that the user gave."""
    for name in reference.outputs[0]:
        pairs = [(reference.outputs[place][name], run[name]) for place, run in runs.items()]
        parts = [part for one, other in pairs for part in paired(name, one, other) or [(name, one, None)]]
        if not any(judge(Observation(*part, settings.tolerance)).problem for part in parts):
            yield name
