"""How far the outputs of a model in another precision are from the original's, and which nodes they part at.

The result runs strictly (strict.py). It may be as far from the original as its type's rounding makes it, or twice as far as
the original is with its weights and inputs rounded alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnx import TensorProto

from onnx_migrate.process import mark
from onnx_migrate.verdicts import RoundedOutput
from onnx_migrate.verify.compare.arrays import paired
from onnx_migrate.verify.compare.comparison import compare
from onnx_migrate.verify.evaluators import (
    OPTIMIZED,
    STRICT,
    UNOPTIMIZED,
    EvaluationError,
    Runnable,
    open_model,
)
from onnx_migrate.verify.evaluators.strict import is_narrow
from onnx_migrate.verify.model_traits import is_random, with_fixed_numbers
from onnx_migrate.verify.precision.causes import AT_ONCE, causes_of
from onnx_migrate.verify.precision.errors import FROM_DOUBLE, ROUNDING, fed, in_float, is_masked, magnitudes
from onnx_migrate.verify.precision.jumps import decides, jump
from onnx_migrate.verify.precision.reference import (
    Reference,
    error_on,
    floors_of_narrow,
    floors_of_wide,
    recorded,
    reference_of,
    worst_errors,
)
from onnx_migrate.verify.settings import Settings

__all__ = ["CLOSENESS", "RANGES", "Closeness", "closeness", "number_ranges"]

_FLOORS = 2.0
"""How many times as far off as the original with rounded weights and inputs it may be."""

_JUMPING = 4.0
"""How many times that at most where the original decides by numbers: it may be off by a jump, which is no rounding."""


@dataclass(frozen=True)
class Closeness:
    """What comparing found.

    `reason` says why nothing could be compared, "" else. `causes` are the outputs of the original's nodes at which the result
    leaves it; none where it does not. `sizes` are the largest and the smallest magnitudes but 0 of what these give out.
    `refusal` is what ONNX Runtime says where it loads the original and not the result, or that an output jumps. `beyond` are
    outputs at which a narrow original itself overflows, every value rounded, so that there is nothing to compare with.
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


CLOSENESS = "onnx_migrate.verify.precision.closeness:closeness"
"""What runs in the child process."""


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
    from_double = kind == TensorProto.FLOAT and not is_narrow(original.model)
    rounding = FROM_DOUBLE if from_double else ROUNDING[kind]
    try:
        mark("original: running")
        reference = reference_of(original, result, settings, unseen)
        mark("result: running")
        errors: dict[str, float] = {}
        for way in (STRICT,) if migrated or kind != TensorProto.FLOAT16 else (STRICT, UNOPTIMIZED, OPTIMIZED):
            try:
                model = open_model(result, way)
            except EvaluationError as error:
                if way == STRICT or not _loads(reference.runnable, way):
                    raise
                return _refused(reference, error)
            runs: list[dict[str, Any]] = []
            for feed in reference.feeds:
                runs.append(in_float(model.run(fed(feed.inputs, result.model))))
                for name, off in worst_errors(reference, runs).items():
                    errors[name] = max(off, errors.get(name, 0.0))
                if any(error > rounding for error in errors.values()) and not reference.floors:
                    narrow = migrated or kind == TensorProto.FLOAT
                    reference.floors = (
                        floors_of_narrow(reference, settings)
                        if narrow
                        else floors_of_wide(reference, result, kind)
                    )
                floors = reference.floors
                most = _JUMPING * rounding if decides(reference.graph) and not migrated else float("inf")
                limits = {name: min(max(rounding, _FLOORS * floors.get(name, 0.0)), most) for name in errors}
                if not migrated and any(error > limits[name] for name, error in errors.items()):
                    break  # the search goes on elsewhere
            else:
                continue
            break
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
    if kind == TensorProto.FLOAT16 and not migrated and decides(reference.graph):
        jumping = jump(reference, result, errors)
        if jumping is not None:
            return replace(found, refusal=jumping[0], causes=jumping[1])
    if found.agrees or kind == TensorProto.FLOAT:
        return found
    worst = max(outputs, key=lambda output: output.excess)
    at = max(
        range(len(runs)),
        key=lambda place: error_on(reference, place, worst.name, runs[place]),
    )
    causes, sizes = causes_of(reference, result, at, max(output.limit for output in outputs), way)
    return replace(found, causes=causes, sizes=sizes)


def _loads(runnable: Runnable, way: str) -> bool:
    try:
        open_model(runnable, way)
    except EvaluationError:
        return False
    return True


def _refused(reference: Reference, error: EvaluationError) -> Closeness:
    """Return that the result does not load where the original does, as after some fusions across Casts, and at which node."""
    # A fused node is named after one of its own.
    named = [step for step in reference.graph.steps if step.node.name and f"({step.node.name}" in str(error)]
    longest = sorted(named, key=lambda step: len(step.node.name))[-1:]
    causes = tuple(step.node.output[0] for step in longest)
    return Closeness(refusal=f"ONNX Runtime does not load it: {error}", causes=causes)


RANGES = "onnx_migrate.verify.precision.closeness:number_ranges"
"""What runs in the child process, before the first comparison."""


def number_ranges(original: Runnable, settings: Settings) -> dict[str, tuple[float, float, bool]]:
    """Return of the values of the main graph the largest and the smallest magnitude but 0, on the inputs of the search.

    The third is whether the largest ones may be larger on other inputs, as those of a mask are not.
    """
    if is_random(original.model):
        original = with_fixed_numbers(original)
    try:
        reference = reference_of(original, original, settings, 0)
    except EvaluationError:
        return {}
    found: dict[str, tuple[float, float, bool]] = {}
    names = recorded(reference, None)
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        try:
            run = open_model(reference.runnable, STRICT, some).run(reference.feeds[0].inputs)
        except (EvaluationError, MemoryError):
            continue
        for name in some:
            found[name] = (*magnitudes(run[name]), not is_masked(run[name]))
    return found


def _tolerated(reference: Reference, runs: Sequence[Mapping[str, Any]], settings: Settings) -> Iterable[str]:
    """Yield the outputs that are within the tolerance that the user gave."""
    for name in reference.outputs[0]:
        pairs = [(one[name], other[name]) for one, other in zip(reference.outputs, runs, strict=True)]
        parts = [part for one, other in pairs for part in paired(name, one, other) or [(name, one, None)]]
        if not any(compare(*part, settings.tolerance).problem for part in parts):
            yield name
