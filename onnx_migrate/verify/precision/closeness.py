"""How far the outputs of a model in another precision are from the original's, and which nodes they part at.

The result runs strictly (strict.py). It may be as far from the original as its type's rounding makes it, or twice as far as
the original is with its weights and inputs rounded alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.tensors import numbers
from onnx_migrate.process import mark
from onnx_migrate.verdicts import RoundedOutput
from onnx_migrate.verify.compare.arrays import paired
from onnx_migrate.verify.compare.comparison import compare
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.evaluators import (
    OPTIMIZED,
    STRICT,
    UNOPTIMIZED,
    EvaluationError,
    Runnable,
    open_model,
)
from onnx_migrate.verify.evaluators.strict import NARROW, rounded_weights
from onnx_migrate.verify.inputs.constraints.value_ranges import exact_inputs
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp, with_weights_moved
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.model_traits import is_random, with_fixed_numbers
from onnx_migrate.verify.settings import Settings

__all__ = ["CLOSENESS", "RANGES", "ROUNDING", "Closeness", "closeness", "number_ranges"]

ROUNDING: dict[int, float] = {TensorProto.FLOAT16: 5e-3, TensorProto.BFLOAT16: 2e-2, TensorProto.FLOAT: 5e-3}
"""By how much of an output's largest magnitude a result may be off."""

_FLOORS = 2.0
"""How many times as far off as the original with rounded weights and inputs it may be."""

_SHARE = 0.005
"""Of the elements of an output that are no floats, the share that may differ."""

_EPSILON = 2.0**-11
"""What a node's rounding adds, below which errors are not compared."""

_AMPLIFIES = 4.0
"""How many times as large as its inputs' a node makes an error that it is said to be the cause of."""

_ZEROS = "zeros"
"""Inputs, as of silence or padding, on which results may be off, as nothing but rounding is left, but not infinite or NaN."""

_DISTRIBUTIONS = ("normal", "uniform", "small", _ZEROS)
"""Of inputs that are generated: numbers of another size, or of one sign, overflow or vanish elsewhere."""

_HALF = 65504.0
"""The largest number of float16."""

_ALIKE = 1 / 16
"""How much the numbers of a mask may differ, as it is added to others, as a share of the largest."""

_AT_ONCE = 200
"""How many inner values are recorded in one run."""


@dataclass(frozen=True)
class Closeness:
    """What comparing found.

    `reason` says why nothing could be compared, "" else. `causes` are the outputs of the original's nodes at which the result
    leaves it; none where it does not. `sizes` are the largest and the smallest magnitudes but 0 of what these give out.
    `refusal` is what ONNX Runtime says where it loads the original with optimisation, and the result without alone. `beyond`
    are outputs at which a narrow original itself overflows, every value rounded, so that there is nothing to compare with.
    """

    outputs: tuple[RoundedOutput, ...] = ()
    causes: tuple[str, ...] = ()
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reason: str = ""
    refusal: str = ""
    beyond: tuple[str, ...] = ()

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


@dataclass
class _Reference:
    """What an original computes on some inputs."""

    runnable: Runnable
    feeds: list[Feed]
    outputs: list[dict[str, Any]]
    floors: dict[str, float] = field(default_factory=dict)

    @cached_property
    def graph(self) -> Frame:
        """The main graph, with the types of its values."""
        return frames_of(self.runnable.model, TypeTable(self.runnable.model))[0]


CLOSENESS = "onnx_migrate.verify.precision.closeness:closeness"
"""What runs in the child process."""

_references: dict[tuple[bytes, str, int], _Reference] = {}
"""Of the original that was last run in this process."""


def closeness(
    original: Runnable,
    result: Runnable,
    kind: int,
    settings: Settings,
    unseen: int = 0,
    migrated: bool = False,
) -> Closeness:
    """Run both on the same inputs, in whatever process this is, and compare.

    For each number `unseen` these are other inputs, unless the user gave some. `migrated` says that the original has the type
    itself, so that no values of it are rounded that were not before.
    """
    if is_random(original.model):
        original, result = with_fixed_numbers(original), with_fixed_numbers(result)
    try:
        mark("original: running")
        reference = _reference(original, result, settings, unseen)
        mark("result: running")
        model = open_model(result, STRICT)
        runs: list[dict[str, Any]] = []
        for feed in reference.feeds:
            runs.append(_in_float(model.run(_fed(feed.inputs, result.model))))
            errors = _worst(reference, runs)
            if any(error > ROUNDING[kind] for error in errors.values()) and not reference.floors:
                narrow = migrated or kind == TensorProto.FLOAT
                reference.floors = (
                    _floors_of_narrow(reference, settings) if narrow else _floors(reference, result, kind)
                )
            floors = reference.floors
            limits = {name: max(ROUNDING[kind], _FLOORS * floors.get(name, 0.0)) for name in errors}
            if not migrated and any(error > limits[name] for name, error in errors.items()):
                break  # the search goes on elsewhere
    except EvaluationError as error:
        return Closeness(reason=f"it does not {error.failed_to}: {error}")
    beyond = tuple(name for name, floor in floors.items() if floor == float("inf"))
    if migrated and settings.tolerance.is_given:
        limits |= {name: errors[name] for name in _tolerated(reference, runs, settings)}
    outputs = tuple(
        RoundedOutput(name, error, limits[name], floors.get(name))
        for name, error in errors.items()
        if name not in beyond
    )
    found = Closeness(outputs, beyond=beyond)
    if kind == TensorProto.FLOAT16 and found.agrees and not migrated:
        return _loaded(found, reference, result)
    if found.agrees or kind == TensorProto.FLOAT:
        return found
    worst = max(outputs, key=lambda output: output.excess)
    at = max(
        range(len(runs)),
        key=lambda place: _error_on(reference, place, worst.name, runs[place]),
    )
    causes, sizes = _causes(reference, result, at, max(output.limit for output in outputs))
    return replace(found, causes=causes, sizes=sizes)


def _loaded(found: Closeness, reference: _Reference, result: Runnable) -> Closeness:
    """Return what was found, unless optimisation makes of the result what does not load, as some fusions do across Casts."""
    try:
        open_model(result, OPTIMIZED)
    except EvaluationError as error:
        try:
            open_model(reference.runnable, OPTIMIZED)
        except EvaluationError:
            return found
        # A fused node is named after one of its own.
        named = [
            step for step in reference.graph.steps if step.node.name and f"({step.node.name}" in str(error)
        ]
        longest = sorted(named, key=lambda step: len(step.node.name))[-1:]
        causes = tuple(step.node.output[0] for step in longest)
        refusal = f"ONNX Runtime does not load it with optimisation: {error}"
        return replace(found, causes=causes, refusal=refusal)
    return found


RANGES = "onnx_migrate.verify.precision.closeness:number_ranges"
"""What runs in the child process, before the first comparison."""


def number_ranges(original: Runnable, settings: Settings) -> dict[str, tuple[float, float, bool]]:
    """Return of the values of the main graph the largest and the smallest magnitude but 0, on the inputs of the search.

    The third is whether the largest ones may be larger on other inputs, as those of a mask are not.
    """
    if is_random(original.model):
        original = with_fixed_numbers(original)
    try:
        reference = _reference(original, original, settings, 0)
    except EvaluationError:
        return {}
    found: dict[str, tuple[float, float, bool]] = {}
    names = _recorded(reference, None)
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        try:
            run = open_model(reference.runnable, STRICT, some).run(reference.feeds[0].inputs)
        except (EvaluationError, MemoryError):
            continue
        for name in some:
            found[name] = (*_size(run[name]), not _is_masked(run[name]))
    return found


def _is_masked(values: Any) -> bool:
    """Return whether nothing is above 0, or the largest magnitudes are all negative and nearly the same."""
    top = _size(values)[0]
    largest = values[np.isfinite(values) & (np.abs(values) >= top / 2)]
    return not np.any(values > 0) or bool(np.all(largest < 0) and np.ptp(largest) <= top * _ALIKE)


def _as_masked(expected: Any, given: Any) -> Any:
    """Return an inner value with the numbers of a mask infinite where they are that in another type, which is no error."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind != "f" or expected.shape != given.shape:
        return expected
    infinite = np.isneginf(given) & (expected <= -_HALF)
    return np.where(infinite, given, expected) if infinite.any() and _is_masked(expected) else expected


def _recorded(reference: _Reference, made: set[str] | None) -> list[str]:
    """Return the computed floats of the original's main graph, that a result makes too if it is given."""
    return [
        value.name
        for step in reference.graph.steps
        for value in step.outputs
        if value is not None
        and value.tensor is None
        and (value.dtype == TensorProto.FLOAT or value.dtype in NARROW)
        and not value.container
        and (made is None or value.name in made)
    ]


def _reference(original: Runnable, result: Runnable, settings: Settings, unseen: int) -> _Reference:
    shapes = "".join(str(value.type.tensor_type.shape) for value in result.model.graph.input)
    key = (original.structure or b"", shapes, unseen)
    if key not in _references:
        model = open_model(original, STRICT)
        extent = Extent(distributions=_DISTRIBUTIONS)
        search = FeedSearch(model, original.model, result.model, settings.seed + unseen, extent)
        if settings.feeds is None:
            search.generate()
        else:
            search.use(settings.feeds)
        for other in [key for key in _references if key[0] != (original.structure or b"")]:
            del _references[other]
        _references[key] = _Reference(original, search.feeds, list(map(_in_float, search.outputs)))
    return _references[key]


def _floors(reference: _Reference, result: Runnable, kind: int) -> dict[str, float]:
    """Return how far off each output is with rounded weights and inputs alone."""
    try:
        model = open_model(rounded_weights(reference.runnable, result, kind), UNOPTIMIZED)
        runs = [_in_float(model.run(feed.inputs)) for feed in reference.feeds]
    except EvaluationError:
        return {}
    return {name: error if np.isfinite(error) else 0.0 for name, error in _worst(reference, runs).items()}


def _floors_of_narrow(reference: _Reference, settings: Settings) -> dict[str, float]:
    """Return how far off each output of a narrow original is as the runtime runs it, and where weights and inputs are rounded
    to a neighbour; infinite where the original overflows in one of the two alone.
    """
    exact, seed = exact_inputs(reference.runnable.model), settings.seed
    moved = [perturbed_by_ulp(feed.inputs, seed, exact) for feed in reference.feeds]
    found: dict[str, float] = {}
    for runnable, configuration, inputs in (
        (reference.runnable, UNOPTIMIZED, [feed.inputs for feed in reference.feeds]),
        (with_weights_moved(reference.runnable, seed), STRICT, moved),
    ):
        try:
            model = open_model(runnable, configuration)
            runs = [_in_float(model.run(given)) for given in inputs]
        except EvaluationError:
            continue
        errors = _worst(reference, runs)
        found |= {name: max(error, found.get(name, 0.0)) for name, error in errors.items()}
    return found


def _tolerated(reference: _Reference, runs: Sequence[Mapping[str, Any]], settings: Settings) -> Iterable[str]:
    """Yield the outputs that are within the tolerance that the user gave."""
    for name in reference.outputs[0]:
        pairs = [(one[name], other[name]) for one, other in zip(reference.outputs, runs, strict=True)]
        parts = [part for one, other in pairs for part in paired(name, one, other) or [(name, one, None)]]
        if not any(compare(*part, settings.tolerance).problem for part in parts):
            yield name


def _fed(inputs: Mapping[str, Any], model: onnx.ModelProto) -> dict[str, Any]:
    """Return inputs in the element types that a model declares."""
    fed = dict(inputs)
    for value in model.graph.input:
        kind, array = value.type.tensor_type.elem_type, fed.get(value.name)
        if isinstance(array, np.ndarray) and kind in ROUNDING:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
            fed[value.name] = array if array.dtype == dtype else numbers(array).astype(dtype)
    return fed


def _in_float(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _wide(value) for name, value in run.items()}


def _wide(value: Any) -> Any:
    array = numbers(value) if isinstance(value, np.ndarray) else value
    narrow = isinstance(array, np.ndarray) and array.dtype.itemsize == 2 and array.dtype.kind in "fV"
    return array.astype(np.float32) if narrow else array


def _worst(reference: _Reference, runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return for each output how far it is off at most, over all runs."""
    return {
        name: max(_error_on(reference, place, name, run) for place, run in enumerate(runs))
        for name in reference.outputs[0]
    }


def _error_on(reference: _Reference, place: int, name: str, run: Mapping[str, Any]) -> float:
    """Return how far an output is off on the feed at a place."""
    error = error_of(reference.outputs[place][name], run[name])
    return 0.0 if reference.feeds[place].name == _ZEROS and np.isfinite(error) else error


def error_of(expected: Any, given: Any) -> float:
    """Return how far a value is off, as a share of the largest magnitude of the expected one; infinite for NaN in its place.

    Of what is no float, the share of elements that differ.
    """
    if isinstance(expected, list):
        if len(expected) != len(given):
            return float("inf")
        return max(map(error_of, expected, given), default=0.0)
    if expected is None or not isinstance(expected, np.ndarray) or not isinstance(given, np.ndarray):
        return 0.0 if expected is given else float("inf")
    if expected.shape != given.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    if expected.dtype.kind not in "fc":
        share = float(np.mean(expected != given))
        return 0.0 if share <= _SHARE else share
    finite = np.isfinite(expected)
    if not np.array_equal(np.isnan(expected), np.isnan(given)):
        return float("inf")
    infinite = ~finite & ~np.isnan(expected)
    if not np.array_equal(given[infinite], expected[infinite]) or not np.all(np.isfinite(given[finite])):
        return float("inf")
    if not finite.any():
        return 0.0
    top = float(np.max(np.abs(expected[finite])))
    off = float(np.max(np.abs(given[finite].astype(np.float64) - expected[finite])))
    return off / top if top else off


# Where the two part


def _causes(
    reference: _Reference, result: Runnable, feed: int, limit: float
) -> tuple[tuple[str, ...], dict[str, tuple[float, float]]]:
    """Return the outputs of the nodes of the original's main graph at which errors become too large, and their sizes."""
    made = {name for node in result.model.graph.node for name in node.output}
    inputs = reference.feeds[feed].inputs
    errors, sizes = _inner_errors(reference, result, inputs, _recorded(reference, made))
    while limit > _EPSILON / 4:
        for step in reference.graph.steps:
            if _error(step.outputs, errors) > limit:
                causes = _chain(step, errors, limit)
                return causes, {name: sizes[name] for name in causes if name in sizes}
        limit /= 2
    return (), {}


def _inner_errors(
    reference: _Reference, result: Runnable, feed: Mapping[str, Any], names: Sequence[str]
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """Return of inner values how far they are off, and their sizes, on some inputs."""
    errors: dict[str, float] = {}
    sizes: dict[str, tuple[float, float]] = {}
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        try:
            one = open_model(reference.runnable, STRICT, some).run(feed)
            other = _in_float(open_model(result, STRICT, some).run(_fed(feed, result.model)))
        except (EvaluationError, MemoryError):
            continue
        for name in some:
            errors[name] = error_of(_as_masked(_wide(one[name]), other[name]), other[name])
            sizes[name] = _size(one[name])
    return errors, sizes


def _size(value: Any) -> tuple[float, float]:
    sizes = np.abs(value[np.isfinite(value)]) if isinstance(value, np.ndarray) else np.zeros(0)
    nonzero = sizes[sizes > 0]
    return (float(nonzero.max()), float(nonzero.min())) if nonzero.size else (0.0, 0.0)


def _error(values: Iterable[Value | None], errors: Mapping[str, float]) -> float:
    return max((errors.get(value.name, 0.0) for value in values if value is not None), default=0.0)


def _chain(last: Step, errors: Mapping[str, float], limit: float) -> tuple[str, ...]:
    """Return the node at which an error is too large, and those before it, back to where it begins."""
    chain = [last]
    while True:
        given = [value for value in chain[-1].inputs if value is not None and value.maker is not None]
        largest = max(given, key=lambda value: errors.get(value.name, 0.0), default=None)
        error = errors.get(largest.name, 0.0) if largest is not None else 0.0
        if largest is None or largest.maker is None or error <= max(limit / 8, _EPSILON):
            break
        chain.append(largest.maker)
    gains = [_error(step.outputs, errors) / max(_error(step.inputs, errors), _EPSILON) for step in chain]
    worst = max(gains)
    causes = [step for step, gain in zip(chain, gains, strict=True) if gain > _AMPLIFIES or gain == worst]
    return tuple(value.name for step in (last, *causes) for value in step.outputs[:1] if value is not None)
