"""Reads the user's inputs for a model, and finds the sizes at which it runs on images if its dims are open.

These are the images' own sizes, or multiples of 32 or 64.
"""

from __future__ import annotations

from onnx_migrate.model.model import Model
from onnx_migrate.process import Returned
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.inputs.given import GivenInputs
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import Settings

__all__ = ["bind_inputs", "first_failure"]

_MULTIPLES = (32, 64)
"""Sizes of an image are rounded to multiples of these: networks halve them five or six times."""

_SIZES = 3
"""Number of different sizes that are tried."""

_FIRST_FAILURE = "onnx_migrate.verify.own_inputs:first_failure"
"""The function that the child process runs."""


def bind_inputs(given: GivenInputs, model: Model, settings: Settings, *, complete: bool = True) -> None:
    """Read the user's inputs for a model, as `GivenInputs.bind` does. Raises UsageError."""
    given.bind(model.proto, complete=complete)
    if given.has_own_sizes:
        _settle_sizes(given, model, settings)


def _settle_sizes(given: GivenInputs, model: Model, settings: Settings) -> None:
    """Round images to sizes at which a model runs, if it does not run at their own sizes.

    The inputs are bound to the model. The comparison reports the error of a model that runs at none of these sizes.
    """
    with Prover(settings) as prover:
        runnable = prover.runnable(model)
        for multiple in (1, *_MULTIPLES):
            feeds = given.feeds if multiple == 1 else given.round_sizes(multiple)
            ending = settings.call(_FIRST_FAILURE, runnable, _of_each_size(feeds.sets))
            if not isinstance(ending, Returned) or not ending.value:
                return
    given.round_sizes(1)


def _of_each_size(feeds: tuple[Feed, ...]) -> list[Feed]:
    """Return the first feed of each of a few combinations of shapes."""
    first_by_shapes: dict[tuple[object, ...], Feed] = {}
    for feed in feeds:
        first_by_shapes.setdefault(tuple(getattr(value, "shape", ()) for value in feed.inputs.values()), feed)
        # A few shapes are enough for the search of free dims.
        if len(first_by_shapes) == _SIZES:
            break
    return list(first_by_shapes.values())


def first_failure(model: Runnable, feeds: list[Feed]) -> str:
    """Return why a model does not run on one of these feeds, "" if it runs on all."""
    try:
        evaluator = open_model(model, UNOPTIMIZED)
        for feed in feeds:
            evaluator.run(dict(feed.inputs))
    except EvaluationError as error:
        return str(error)
    return ""
