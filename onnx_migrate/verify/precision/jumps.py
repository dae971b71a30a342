"""Finds outputs that jump: near a tie, narrow numbers change a comparison, a choice or a rounding to integers.

Few inputs are so near a tie that a rounding shows it, and rounded weights and inputs may make the original jump, too. So the
result runs again with rounding errors made 8 times as large. The error of a continuous output then grows about 8 times. A jump
has the size of its step, and happens on 8 times as many inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Step, Value
from onnx_migrate.verify.evaluators import COARSE, STRICT, EvaluationError, Runnable, open_model
from onnx_migrate.verify.evaluators.strict import COARSER
from onnx_migrate.verify.inputs.generate import WIDE
from onnx_migrate.verify.precision.causes import inner_errors
from onnx_migrate.verify.precision.decisions import CHANCE, share_beyond
from onnx_migrate.verify.precision.errors import ROUNDING, SHARE, fed, in_float, largest_of
from onnx_migrate.verify.precision.reference import Reference, error_on

__all__ = ["CERTAIN", "jump"]

_LARGER = 24.0
"""Error with coarse rounding / error: coarse rounding multiplies a continuous error by 8; above 24 times it is a jump."""

_SMALLEST = 2 * ROUNDING[TensorProto.FLOAT16]
"""The error up to which an output does not jump, as a share of its largest value."""

CERTAIN = 2 * _SMALLEST
"""An output with at least this error, as a share of its largest value, jumps even without coarse rounding."""


def jump(
    reference: Reference,
    result: Runnable,
    errors: Mapping[str, float],
    floor_shares: Callable[[int], Mapping[str, float]],
) -> tuple[str, tuple[str, ...]] | None:
    """Return the output that jumps, and all nodes of the main graph up to the start of the jump; None if none does.

    An output behind a choice jumps if more of its elements do than coarse rounding explains. `floor_shares` gives, for the feed
    at a place, the shares of elements that rounding of weights and inputs alone moves.
    """
    try:
        model = open_model(result, COARSE)
    except (EvaluationError, MemoryError):
        return None
    for index in [index for index in reference.order if reference.feeds[index].name != WIDE]:
        try:
            run = in_float(model.run(fed(reference.feeds[index].inputs, result.model)))
        except (EvaluationError, MemoryError):
            continue
        for name, value in run.items():
            error = error_on(reference, index, name, run)
            if (
                not isinstance(value, np.ndarray)
                or value.dtype.kind != "f"
                or not _is_jump(error, errors[name])
            ):
                continue
            if name not in reference.decided or _jump_many(
                reference, index, name, value, floor_shares(index)
            ):
                message = (
                    f"output {name!r} jumps, because rounding can change a comparison, a choice or a rounding before it. Its"
                    f" error is {100 * errors[name]:.2g} % of its largest value, and {100 * error:.2g} % with rounding 8 times as"
                    " coarse"
                )
                reference.is_off_on(index, STRICT)
                return message, tuple(_up_to(_first(reference, result, index, name)))
    return None


def _jump_many(
    reference: Reference, place: int, name: str, value: Any, floor_shares: Mapping[str, float]
) -> bool:
    """Return whether too many elements of an output behind a choice jump with 8 times as large rounding errors."""
    expected, floor = reference.outputs[place][name], floor_shares.get(name, 0.0)
    # A changed choice can change the number of elements, as in NonZero.
    if value.shape != expected.shape or floor > CHANCE:
        return floor <= CHANCE
    moved = share_beyond(expected, value, _SMALLEST * max(largest_of(expected), reference.scale(name)))
    return moved > COARSER * max(SHARE, 2 * floor)


def _is_jump(coarse: float, fine: float) -> bool:
    """Return whether an output jumps; if it is infinite or NaN with fine rounding, it overflows instead."""
    return fine < math.inf and coarse > _SMALLEST and (coarse > _LARGER * fine or fine > CERTAIN)


def _first(reference: Reference, result: Runnable, place: int, output: str) -> list[Step]:
    """Return the nodes with jumping outputs and without jumping inputs."""
    *_, (fine, coarse) = [({}, {}), *inner_errors(reference, result, place, (STRICT, COARSE))]
    jumping = {name for name in coarse if _is_jump(coarse[name], fine.get(name, 0.0))}

    def any_of(values: Sequence[Value]) -> bool:
        return any(value.name in jumping for value in values)

    steps = reference.graph.steps
    first = [step for step in steps if any_of(step.made) and not any_of(_read(step))]
    # The jump may begin at a value that no run records, for example inside a loop.
    return first or [step for step in steps if output in step.node.output]


def _up_to(last: list[Step]) -> Iterator[str]:
    """Yield the first outputs of nodes and of all before them, theirs at the end."""
    earlier_steps, pending = dict.fromkeys(last), list(last)
    while pending:
        for value in _read(pending.pop()):
            if value.maker is not None and value.maker not in earlier_steps:
                earlier_steps[value.maker] = None
                pending.append(value.maker)
    yield from (step.node.output[0] for step in reversed(earlier_steps) if step.node.output[0])


def _read(step: Step) -> list[Value]:
    """Return the values that a node reads, with those of its own body that bodies inside it read."""
    inside = [value for _, frame in step.inner for other in frame.steps for value in _read(other)]
    return [*step.read, *(value for value in inside if value.frame is step.frame)]
