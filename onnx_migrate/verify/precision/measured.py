"""Measures the errors of a result's outputs, in one configuration after the other, and their limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.narrow_floats import is_narrow
from onnx_migrate.model.origin import was_narrow
from onnx_migrate.verdicts import RoundedOutput
from onnx_migrate.verify.evaluators import (
    STRICT,
    UNOPTIMIZED,
    EvaluationError,
    Evaluator,
    Runnable,
    open_model,
)
from onnx_migrate.verify.evaluators.strict import LARGEST_HALF, rounded_weights
from onnx_migrate.verify.inputs.generate import WIDE
from onnx_migrate.verify.precision.decisions import CHANCE, share_beyond
from onnx_migrate.verify.precision.errors import (
    CEILING,
    FROM_DOUBLE,
    FROM_DOUBLE_CEILING,
    ROUNDING,
    SHARE,
    fed,
    in_float,
    largest_of,
)
from onnx_migrate.verify.precision.feeds import ALL_HIDDEN
from onnx_migrate.verify.precision.reference import (
    Reference,
    error_on,
    floors_of_narrow,
    outputs_in,
)
from onnx_migrate.verify.precision.scenes import SCENE
from onnx_migrate.verify.settings import Settings

__all__ = ["TYPES", "Measured"]

TYPES: dict[int, str] = {
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.FLOAT: "float32",
}
"""Names of the types that a run simulates, for reports."""

_FLOORS = 2.0
"""Limit / floor: a result rounds inner values too, which about doubles the error that rounded weights and inputs make."""

_CAME_BACK = 2.0
"""Limit for a model that came from the narrow type / limit for others: its weights are rounded already, so its floor is lower.

Without it, a result that was within its limit could not be made again from its float32 version.
"""

_DECIDING_CEILING = 4.0
"""Ceiling for models with ArgMax, TopK and similar operators: 4 times the type's rounding, since a larger error may be a changed
decision."""

_STEEP = 4.0
"""Ceiling on scenes / ceiling on random inputs: outputs are steep at the edges that a detector finds, which rounding moves."""

_NEAR = 0.25
"""Ratio of error to limit. Above it, more inputs are drawn.

We compared 101 models in 158 runs. If the first draws had errors below 0.4 of the limit, further draws had at most 4 times as
large ones.
"""

_FEWER = 2
"""Generated inputs on which a result runs as ONNX Runtime runs it, which rounds less often; masks that hide all come on top."""

_SMALLEST_NORMAL = 2.0**-14
"""The smallest normal number of float16.

An output with a smaller largest value is compared with this number, because float16 rounds all of it to multiples of 6e-8.
"""


class Measured:
    """The errors of a result's outputs, run in one configuration after the other, and their limits."""

    def __init__(
        self,
        reference: Reference,
        result: Runnable,
        kind: int,
        settings: Settings,
        migrated: bool,
        most: float | None,
    ) -> None:
        """`most` is a multiple of the limit. Once an output exceeds it on one feed, nothing more is run."""
        self._reference, self._result, self._settings, self._migrated = reference, result, settings, migrated
        self._kind, self._enough, self._tried = kind, 1.0 if most is None else most, most is not None
        from_double = kind == TensorProto.FLOAT and not is_narrow(reference.runnable.model)
        self._came_back = _CAME_BACK if was_narrow(reference.runnable.model, kind) else 1.0
        self._rounding = FROM_DOUBLE if from_double else ROUNDING[kind]
        self._ceiling = FROM_DOUBLE_CEILING if from_double else CEILING[kind]
        if reference.decides and not migrated:
            self._ceiling = min(self._ceiling, _DECIDING_CEILING * self._rounding)
        self._halves = {
            output.name
            for output in result.model.graph.output
            if output.type.tensor_type.elem_type == TensorProto.FLOAT16
        }
        self._tolerance = None if migrated else settings.precision_tolerance
        self._decided = frozenset() if migrated else reference.decided
        self._rounded: list[Evaluator] = []
        self.errors: dict[str, float] = {}
        self.outputs: dict[str, RoundedOutput] = {}
        """For each output, the error that is largest relative to its limit on the same inputs."""
        self._largest: dict[str, RoundedOutput] = {}
        """The largest error of each output."""
        self.beyond: dict[str, None] = {}
        """Outputs at which the original itself overflows."""
        self.by_chance: dict[str, float] = {}
        """Outputs that depend on a choice which rounded weights and inputs alone change, with the share of their elements."""
        self.way = STRICT
        """The configuration in which the result ran last."""
        self.runs: dict[int, dict[str, Any]] = {}
        """The outputs of the result, by the places of feeds."""
        self.on_others = False
        """Whether it was off, every value rounded, on another feed than the one on which results are tried."""

    @property
    def compared(self) -> tuple[RoundedOutput, ...]:
        """The outputs without those that overflow in the original, and without those that chance decides."""
        excluded = {*self.beyond, *self.by_chance}
        return tuple(output for name, output in self.outputs.items() if name not in excluded)

    @property
    def largest(self) -> tuple[RoundedOutput, ...]:
        """The largest errors, each with its limit, of the same outputs."""
        excluded = {*self.beyond, *self.by_chance}
        return tuple(output for name, output in self._largest.items() if name not in excluded)

    def run(self, way: str) -> bool:
        """Load the result in a configuration, and compare. Raises EvaluationError if it does not load or run."""
        model = open_model(self._result, way)
        return self.compare(lambda inputs: model.run(fed(inputs, self._result.model)), way)

    def compare(self, run_on: Callable[[Mapping[str, Any]], Mapping[str, Any]], way: str = STRICT) -> bool:
        """Run on all inputs, or in a search up to the first with too large an error; return whether no input had one.

        Raises EvaluationError if the result does not run.
        """
        reference, self.runs, self.way = self._reference, {}, way
        for index in self._places(way):
            run = in_float(run_on(reference.feeds[index].inputs))
            self.runs[index] = run
            errors = self._errors(index, run, way)
            floors: Mapping[str, float] = {}
            # The floor costs further runs of the original, so it is measured only if it may raise a limit.
            if any(error > self._enough * self._rounding for error in errors.values()) or (
                self._migrated and _overflows(reference.outputs[index])
            ):
                self.find_floor(index)
                floors = reference.floors[index]
            for name, error in errors.items():
                if floors.get(name) == math.inf and _is_beyond(reference.outputs[index][name], run[name]):
                    self.beyond[name] = None
                    continue
                wide = reference.feeds[index].name == WIDE and math.isfinite(error)
                self.errors[name] = max(0.0 if wide else error, self.errors.get(name, 0.0))
                output = self._output(index, name, error, floors.get(name), run)
                if output is not None:
                    self._add(output, wide=wide)
            if not self._migrated and any(output.excess > self._enough for output in self.outputs.values()):
                self.on_others = way == STRICT and index != reference.order[0]
                reference.is_off_on(index, way)
                return False
        return True

    def excess_on(self, place: int, run_on: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> float:
        """Return error / limit of the worst output on the feed at a place, in a strict run. The limit is measured first.

        On a wide feed only NaN and infinite numbers count. Raises EvaluationError if the result does not run.
        """
        reference = self._reference
        self.find_floor(place)
        floors = reference.floors[place]
        run = in_float(run_on(reference.feeds[place].inputs))
        worst = 0.0
        for name, error in self._errors(place, run, STRICT).items():
            floor = floors.get(name, 0.0)
            if floor == math.inf or (reference.feeds[place].name == WIDE and math.isfinite(error)):
                continue
            output = self._output(place, name, error, floor, run)
            worst = max(worst, output.excess if output is not None else 0.0)
        return worst

    def _errors(self, place: int, run: Mapping[str, Any], way: str) -> dict[str, float]:
        """Return the errors of outputs; those of a narrow original as the runtime runs both, if they are smaller."""
        reference = self._reference
        errors = {
            name: self._error(place, name, self._held(place, name, run)) for name in reference.outputs[0]
        }
        if way != STRICT and is_narrow(reference.runnable.model) and max(errors.values()) > self._rounding:
            same = outputs_in(reference, way, place)
            errors = {name: min(error, self._error(place, name, run, same)) for name, error in errors.items()}
        return errors

    def _error(
        self, place: int, name: str, run: Mapping[str, Any], expected: Mapping[str, Any] | None = None
    ) -> float:
        least = _SMALLEST_NORMAL if self._kind == TensorProto.FLOAT16 else 0.0
        return error_on(self._reference, place, name, run, expected, least)

    def _held(self, place: int, name: str, run: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a run on wide inputs in which a float16 output has the original's numbers if float16 cannot hold them.

        The user who asks for outputs of float16 knows their range.
        """
        value = run[name]
        expected = self._reference.outputs[place][name]
        if (
            name not in self._halves
            or self._reference.feeds[place].name != WIDE
            or not isinstance(value, np.ndarray)
            or value.shape != expected.shape
        ):
            return run
        return {name: np.where(np.abs(expected) > LARGEST_HALF, expected, value)}

    def _places(self, way: str) -> Iterator[int]:
        order = [*self._reference.order]
        if self._tried:
            # A try must be quick, and `is_off_on` has moved the feed that failed last to the front.
            yield order[0]
        elif way != STRICT and self._settings.feeds is None:
            hidden = [index for index in order[_FEWER:] if self._reference.feeds[index].name == ALL_HIDDEN]
            yield from (*order[:_FEWER], *hidden)
        else:
            yield from order
            if any(output.excess > _NEAR for output in self.outputs.values()):
                yield from self._reference.draw_again()

    def _add(self, output: RoundedOutput, *, wide: bool) -> None:
        """Take an error on one feed into account; on a `wide` one only for the report, and only within its limit."""
        name = output.name
        if wide and not output.agrees:
            output = replace(output, limit=CEILING[self._kind])
        larger = name not in self._largest or output.error > self._largest[name].error
        if larger and (output.agrees or not wide):
            self._largest[name] = output
        if not wide and (name not in self.outputs or output.excess > self.outputs[name].excess):
            self.outputs[name] = output

    def _output(
        self, place: int, name: str, error: float, floor: float | None, run: Mapping[str, Any]
    ) -> RoundedOutput | None:
        """Return the error of an output; None if a choice that depends on chance decides it, which `by_chance` then records.

        For an output behind a choice, if an element exceeds the limit, the error is the share of elements that another choice
        changes.
        """
        expected = self._reference.outputs[place][name]
        limit = self._limit(place, floor or 0.0)
        counts = _holds_no_floats(expected)
        if limit < error < math.inf and name in self._decided and not counts:
            floor = self._reference.floor_shares.get(place, {}).get(name, 0.0)
            error = share_beyond(expected, run[name], self._moved(place, name))
            counts = True
        if counts and not self._migrated:
            limit = max(self._tolerance or SHARE, _FLOORS * (floor or 0.0))
            if (floor or 0.0) > CHANCE and error < math.inf:
                self.by_chance[name] = max(floor or 0.0, self.by_chance.get(name, 0.0))
                return None
        return RoundedOutput(name, error, limit, floor, TYPES[self._kind], counts)

    def _moved(self, place: int, name: str) -> float:
        """Return by how much an element must be off that another choice has changed, on the feed at a place."""
        reference = self._reference
        return self._rounding * max(largest_of(reference.outputs[place][name]), reference.scale(name))

    def _limit(self, place: int, floor: float) -> float:
        """Return the limit for an output's error on the feed at a place; rounding of weights and inputs alone causes `floor`."""
        if self._tolerance is not None:
            return self._tolerance
        steep = _STEEP if self._reference.feeds[place].name == SCENE else 1.0
        limit = self._came_back * max(self._rounding, _FLOORS * floor)
        return min(limit, steep * self._ceiling)

    def floor_shares(self, place: int) -> Mapping[str, float]:
        """Return, of outputs behind a choice, the shares of elements that rounding alone moves on the feed at a place."""
        self.find_floor(place)
        return self._reference.floor_shares.get(place, {})

    def find_floor(self, place: int) -> None:
        """Measure the errors that rounding alone causes in outputs on the feed at a place."""
        reference = self._reference
        if place in reference.floors:
            return
        if self._migrated or self._kind == TensorProto.FLOAT:
            floor = floors_of_narrow(reference, self._settings, UNOPTIMIZED)
            reference.floors = dict.fromkeys(range(len(reference.feeds)), floor)
            return
        if reference.own_floors is None:
            narrow = is_narrow(reference.runnable.model)
            reference.own_floors = floors_of_narrow(reference, self._settings) if narrow else {}
        floors, shares = dict(reference.own_floors), dict[str, float]()
        for run in self._rounded_runs(place):
            for name in reference.outputs[place]:
                error = self._error(place, name, run)
                # An infinite floor would excuse the output from every comparison.
                if error == math.inf:
                    continue
                floors[name] = max(error, floors.get(name, 0.0))
                if name in self._decided and not _holds_no_floats(run[name]):
                    moved = share_beyond(reference.outputs[place][name], run[name], self._moved(place, name))
                    shares[name] = max(moved, shares.get(name, 0.0))
        reference.floors[place], reference.floor_shares[place] = floors, shares

    def _rounded_runs(self, place: int) -> Iterator[Mapping[str, Any]]:
        """Yield the original's outputs on the feed at a place with large weights rounded, then with all weights and inputs.

        One rounding may cancel the other by chance.
        """
        reference = self._reference
        try:
            if not self._rounded:
                self._rounded = [
                    open_model(rounded_weights(reference.runnable, self._kind, stored=stored), UNOPTIMIZED)
                    for stored in (True, False)
                ]
            for model in self._rounded:
                yield in_float(model.run(reference.feeds[place].inputs))
        except EvaluationError:
            return


def _holds_no_floats(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind not in "fc"


def _is_beyond(expected: Any, given: Any) -> bool:
    """Return whether the original overflows in an output, and the result only there."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind != "f" or expected.shape != given.shape:
        return False
    finite = np.isfinite(expected)
    return not finite.all() and bool(np.isfinite(given[finite]).all())


def _overflows(outputs: Mapping[str, Any]) -> bool:
    arrays = (
        value for value in outputs.values() if isinstance(value, np.ndarray) and value.dtype.kind == "f"
    )
    return not all(np.isfinite(array).all() for array in arrays)
