"""Compares the outputs of a model in another precision with the original's, and finds the first nodes that differ.

The result runs strictly (strict.py). Its error may be as large as the rounding of its type, or twice the floor. The floor is the
error of the original with its weights and inputs rounded. Only the original determines a limit, whichever nodes keep their type.
A limit never exceeds the ceiling of the type (errors.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from onnx import TensorProto

from onnx_migrate.advice import untried
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
    Runnable,
    open_model,
)
from onnx_migrate.verify.evaluators.scopes import with_own_names
from onnx_migrate.verify.inputs.generate import WIDE
from onnx_migrate.verify.kernel import Observation, judge
from onnx_migrate.verify.model_traits import without_draws
from onnx_migrate.verify.precision.causes import causes_of, originals
from onnx_migrate.verify.precision.errors import fed, is_masked, magnitudes
from onnx_migrate.verify.precision.feeds import share_of_numbers
from onnx_migrate.verify.precision.jumps import CERTAIN, jump
from onnx_migrate.verify.precision.measured import Measured
from onnx_migrate.verify.precision.reference import Reference, error_on, recorded, reference_of
from onnx_migrate.verify.settings import Settings
from onnx_migrate.verify.tolerances import tolerance_for

__all__ = [
    "CLOSENESS",
    "MATRIX",
    "RANGES",
    "RUNS",
    "Closeness",
    "closeness",
    "number_ranges",
    "run_optimised",
]

MATRIX = frozenset({"Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"})
"""Operators that take most time; users want a narrow type to speed them up."""

_HALF_OF_OUTPUT = 0.5
"""The share of an output's elements that are finite on some input: with fewer, too little is compared."""


@dataclass(frozen=True)
class Closeness:
    """The findings of a comparison.

    `reason` says why nothing could be compared, "" otherwise. `causes` are the outputs of the original's nodes at which the
    result starts to differ, none if it does not. `refusal` is ONNX Runtime's message if it loads only the original, or says that
    an output jumps. `beyond` are outputs at which a narrow original itself overflows with every value rounded, so that nothing
    can be compared.
    """

    outputs: tuple[RoundedOutput, ...] = ()
    causes: tuple[str, ...] = ()
    reason: str = ""
    refusal: str = ""
    fails: bool = False
    """True if `refusal` is an error of ONNX Runtime; `causes` are then all nodes without a kernel."""
    beyond: tuple[str, ...] = ()
    on_others: bool = False
    """True if the failing feed is not the one used during the search, and no value is NaN or infinite."""
    inputs: tuple[str, ...] = ()
    """The names of the feeds that were compared."""
    largest: tuple[RoundedOutput, ...] = ()
    """The largest error of each output; `outputs` have the errors that are largest relative to their limits."""
    way: str = STRICT
    """The configuration in which the result ran last; if the result has too large an error, it is in this one."""
    domain: str = ""
    """The domain of the input floats, if the original computes few numbers on random ones; "" for all floats."""

    @property
    def agrees(self) -> bool:
        """Whether the result loads, and all outputs are within their limits."""
        return not self.refusal and all(output.agrees for output in self.outputs)

    @property
    def worst(self) -> str:
        """The worst finding, as a sentence."""
        return self.refusal or str(max(self.outputs, key=lambda output: output.excess))

    @property
    def problem(self) -> str:
        """The worst finding, and the first value that differs from the original."""
        where = f"; the first value that leaves the original is {self.causes[-1]!r}" if self.causes else ""
        return f"{self.worst}{where}"

    @property
    def excess(self) -> float:
        """Error of the worst output divided by its limit; infinite if the result does not load."""
        return float("inf") if self.refusal else max((output.excess for output in self.outputs), default=0.0)


CLOSENESS = "onnx_migrate.verify.precision.closeness:closeness"
"""The function that the child process runs."""


def closeness(
    original: Runnable,
    result: Runnable,
    kind: int,
    settings: Settings,
    draws: int = 1,
    migrated: bool = False,
    strictly: bool = False,
    most: float | None = None,
) -> Closeness:
    """Run both on the same inputs, in the current process, and compare.

    Inputs are drawn `draws` times, unless the user gave some. `migrated` says that the original already has the type, so that the
    result rounds no further values. A result in float16 also runs in ONNX Runtime's own way, with and without optimisation,
    unless `strictly`. `most` asks for a quick rejection: only the feed and the configuration that failed last run. It stops at
    the first output above `most` times its limit, and names no causes. The function looks for jumps if all outputs are within
    their limits, or an error is too large for rounding.
    """
    original, result = map(with_own_names, without_draws(original, result))
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
        # The next result most likely fails in the configuration in which the last one failed.
        for way in sorted(ways, key=lambda way: way != reference.way):
            within = measured.run(way)
            # Coarse rounding also runs strictly, so `jump` can compare it with this run only.
            rounded = dict(measured.errors) if way == STRICT else rounded
            if not within:
                break
        may_jump = within or (measured.way == STRICT and max(rounded.values(), default=0.0) > CERTAIN)
        if halves and reference.decides and may_jump and most is None:
            jumping = jump(reference, result, rounded, measured.floor_shares)
            if jumping is not None:
                return Closeness(measured.compared, refusal=jumping[0], causes=jumping[1])
    except EvaluationError as error:
        # If the original does not run in this configuration either, the result is not at fault.
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
    verdict = Closeness(
        outputs,
        beyond=tuple(measured.beyond),
        on_others=measured.on_others,
        inputs=tuple(feed.name for feed in reference.feeds),
        largest=measured.largest,
        way=measured.way,
        domain=reference.domain,
    )
    if verdict.agrees and not migrated:
        verdict = replace(verdict, reason=_uncompared(reference, verdict) or _by_chance(measured.by_chance))
    if verdict.agrees or kind == TensorProto.FLOAT or most is not None:
        return verdict
    worst, runs = max(outputs, key=lambda output: output.excess), measured.runs
    judged = {place: run for place, run in runs.items() if reference.feeds[place].name != WIDE} or runs
    if not any(error_on(reference, place, worst.name, judged[place]) > worst.limit for place in judged):
        judged = runs
    at = max(judged, key=lambda place: error_on(reference, place, worst.name, runs[place]))
    limit = max(output.limit for output in outputs)
    return replace(verdict, causes=causes_of(reference, result, at, limit, measured.way))


def _uncompared(reference: Reference, found: Closeness) -> str:
    """Return why the comparison says too little: on all inputs, less than half of an output is numbers; "" otherwise."""
    for name in reference.outputs[0]:
        share = max(share_of_numbers({name: run[name]}) for run in reference.outputs)
        if share < _HALF_OF_OUTPUT or (found.beyond and name in found.beyond):
            return (
                f"of output {name!r}, {1 - share:.0%} is NaN or infinite in the original on all inputs that were tried;"
                f" {untried('give inputs of yours with --input-data')}"
            )
    return ""


def _by_chance(outputs: Mapping[str, float]) -> str:
    """Return why outputs were not compared that depend on a choice which rounding alone changes; "" for none."""
    for name, share in outputs.items():
        return (
            f"rounding the weights and inputs of the original alone changes {share:.0%} of the elements of output {name!r},"
            " because it depends on a choice. Use --input-data with your own inputs"
        )
    return ""


def _runs(reference: Reference, way: str) -> bool:
    """Return whether the original runs in a configuration."""
    try:
        open_model(reference.runnable, way).run(reference.feeds[0].inputs)
    except EvaluationError:
        return False
    return True


def _refused(reference: Reference, error: EvaluationError) -> Closeness:
    """Return the finding that a result does not load or run although the original does, with the node at fault."""
    message = str(error)
    # When ONNX Runtime loads a model, it names a fused node after one of the nodes in it.
    named = [
        step
        for step in reference.graph.steps
        if (name := step.node.name) and (f"({name}" in message or f"'{name}'" in message)
    ]
    # One name may be the beginning of another, so only the longest one in the message is sure.
    longest = sorted(named, key=lambda step: len(step.node.name))[-1:]
    alike = [
        step
        for step in reference.graph.steps
        if not step.is_a(*MATRIX, *RECURRENT)
        and "Type Error" not in message  # of a fused node, whose inputs are of two types
        and any(_form(step) == _form(other) for other in longest)
    ]
    if not longest:  # the node has no name
        words = set(re.findall(r"\w+", message))
        alike = [step for step in reference.graph.steps if step.node.op_type in words]
    causes = tuple(step.node.output[0] for step in (*alike, *longest))
    message = f"ONNX Runtime does not {error.failed_to} it: {message}"
    return Closeness(refusal=message, fails=True, causes=causes)


def _form(step: Step) -> tuple[object, ...]:
    attributes = sorted(attribute.SerializeToString() for attribute in step.node.attribute)
    return step.domain, step.node.op_type, attributes


RUNS = "onnx_migrate.verify.precision.closeness:run_optimised"
"""The function that the child process runs after a comparison has ended one."""


def run_optimised(original: Runnable, model: Runnable, settings: Settings) -> None:
    """Run a model with optimisation on the first inputs of an original. Raises EvaluationError; may end the process."""
    original, model = map(with_own_names, (original, model))
    reference = reference_of(original, model, settings, 1)
    evaluator = open_model(model, OPTIMIZED)
    for feed in reference.feeds:
        evaluator.run(fed(feed.inputs, model.model))


RANGES = "onnx_migrate.verify.precision.closeness:number_ranges"
"""The function that the child process runs before the first comparison."""


def number_ranges(
    original: Runnable, settings: Settings, draws: int, large: float, failing: bool = False
) -> dict[str, tuple[float, float, bool]]:
    """Return the largest and the smallest nonzero magnitude of each value of the main graph, on the first of so many draws.

    With `failing` they are on the inputs on which a result was off last. The third number is whether the largest is above `large`
    and may be larger on other inputs. A mask does not get larger.
    """
    original = with_own_names(*without_draws(original))
    try:
        reference = reference_of(original, original, settings, draws, recording=True)
    except EvaluationError:
        return {}
    ranges: dict[str, tuple[float, float, bool]] = {}
    for names, run in originals(reference, reference.order[0] if failing else 0, recorded(reference)):
        for name in names:
            top, low = magnitudes(run[name])
            ranges[name] = top, low, top > large and not is_masked(run[name])
    return ranges


def _tolerated(
    reference: Reference, runs: Mapping[int, Mapping[str, Any]], settings: Settings
) -> Iterable[str]:
    """Yield the outputs that are within the tolerance that the user gave."""
    for name in reference.outputs[0]:
        pairs = [(reference.outputs[index][name], run[name]) for index, run in runs.items()]
        parts = [
            part for value, other in pairs for part in paired(name, value, other) or [(name, value, None)]
        ]
        tolerance = tolerance_for(settings.tolerance, name)
        if tolerance.is_given and not any(judge(Observation(*part, tolerance)).problem for part in parts):
            yield name
