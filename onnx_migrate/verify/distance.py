"""Measures how far the outputs of a model that computes something else on purpose are from the original's."""

from __future__ import annotations

from onnx_migrate.isolate import mark
from onnx_migrate.verdicts import Distance
from onnx_migrate.verify.compare.arrays import flatten, largest_difference, scale_of
from onnx_migrate.verify.equivalence.reference_run import ReferenceRun
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, open_model

__all__ = ["DISTANCE_STAGE", "distance"]

DISTANCE_STAGE = "another model: running"
"""The stage in which the distance is measured; what fails in it says nothing of the result."""


def distance(reference: ReferenceRun, other: Runnable) -> Distance | None:
    """Run `other` on the feeds of a run of the original, as that ran first, and return the largest difference.

    Only outputs are compared, and only their finite elements. None where `other` does not load or run.
    """
    mark(DISTANCE_STAGE)
    found: list[Distance] = []
    try:
        model = open_model(other, reference.first)
        for inputs, expected in zip(
            reference.inputs(reference.first), reference.runs[reference.first], strict=True
        ):
            given = model.run(inputs)
            for name in given.keys() & expected.keys() - reference.inner:
                mine, theirs = flatten(name, expected[name]), flatten(name, given[name])
                if [part for part, _ in mine] != [part for part, _ in theirs]:
                    found.append(Distance(name, float("inf"), 0.0, reshaped=True))
                    continue
                for (part, before), (_, after) in zip(mine, theirs, strict=True):
                    if before is None or after is None:
                        continue
                    if before.shape != after.shape:
                        found.append(Distance(part, float("inf"), 0.0, reshaped=True))
                    else:
                        found.append(Distance(part, largest_difference(before, after), scale_of(after)))
    except EvaluationError:
        return None
    return max(found, key=_relative, default=None)


def _relative(found: Distance) -> tuple[float, str]:
    return found.largest / (found.scale or 1.0), found.output
