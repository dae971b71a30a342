"""Tries each piece of advice on an error on the model's structure, before onnx-migrate prints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from onnx_migrate.advice import Advice
from onnx_migrate.errors import MigrateError
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.model.model import Model
from onnx_migrate.options import Options
from onnx_migrate.pipelines import pipeline_of
from onnx_migrate.process import OutOfTime
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["example_dims", "fix_dims_text", "tried_advice"]

_FAR = 320
"""A length for an axis of an image: a multiple of the strides that networks have."""
_LONG = 128
"""A length for any other axis but the first."""


def tried_advice(error: MigrateError, model: Model, options: Options) -> tuple[Advice, ...]:
    """Return the advice on an error of a model, with a mark on advice that works, and without useless advice.

    Advice without options does not change, and neither does advice for which no time remains.
    """
    tried: list[Advice] = []
    every = [*error.advice]
    try:
        while every:
            piece = every[0]
            outcome = piece if piece.tried or not piece.options else _outcome(piece, error, model, options)
            tried += [outcome] if outcome else []
            every.pop(0)
    except OutOfTime:  # the refusal says more than the end of the search for a way out
        pass
    return tuple(_without_repetition([*tried, *every]))


def _without_repetition(every: Iterable[Advice]) -> Iterator[Advice]:
    """Yield the advice, except pieces with the same options as an earlier piece that works."""
    working_options: list[Mapping[str, Any]] = []
    for piece in every:
        if piece.options and piece.options in working_options:
            # The same options cannot help twice.
            continue
        working_options += [piece.options] if piece.tried else []
        yield piece


def _outcome(advice: Advice, error: MigrateError, model: Model, options: Options) -> Advice | None:
    """Return the advice after a migration that follows it; None if that ends with the same refusal."""
    changes, example = dict(advice.options), ""
    if advice.fixes_dims:
        if any(map(options.of_feature, ("fix_shape", "dynamic", "dynamic_batch"))):
            return advice  # the sizes of other dims are the user's to choose
        changes["fix_shape"] = example_dims(model)
        if not changes["fix_shape"]:
            return None
        example = fix_dims_text(changes["fix_shape"])
    if not all(hasattr(options, name) for name in changes):
        return None  # the feature is not installed
    if options.pipeline is not None or "precision" in changes or error.code == "precision-lost":
        return advice  # other passes ignore the options; a search for float32 nodes takes as long as the call
    failure = _failure(model, replace(options, **_aside(options), **changes))
    if failure is None:
        return advice if options.of_feature("precision") else advice.worked(example)
    is_same = failure.code == error.code and failure.reason == error.reason
    return advice if example and not is_same else None


_ASIDE: dict[str, Any] = {
    "simplify": False,
    "precision": None,
    "precision_tolerance": None,
    "precision_io": False,
    "keep_fp32": (),
}


def _aside(options: Options) -> dict[str, Any]:
    """Return the options that a trial leaves out, since their passes run the model."""
    return {name: value for name, value in _ASIDE.items() if hasattr(options, name)}


def _failure(model: Model, options: Options) -> MigrateError | None:
    """Return the error that ends the passes of a request, None if they make a model."""
    try:
        pipeline_of(options).run(model, ChangeLog())
    except MigrateError as failure:
        return failure
    except (MemoryError, RecursionError) as failure:  # the first refusal says more
        return MigrateError(f"the trial ended with {type(failure).__name__}", code="out-of-memory")
    return None


def example_dims(model: Model) -> dict[str, list[int]]:
    """Return shapes for the inputs that have open dims; dims of one name have one size."""
    sizes: dict[str, int] = {}
    fixed: dict[str, list[int]] = {}
    for value in fed_inputs(model.proto.graph):
        dims = value.type.tensor_type.shape.dim
        if not value.type.tensor_type.HasField("shape") or all(dim.HasField("dim_value") for dim in dims):
            continue
        shape = []
        for axis, dim in enumerate(dims):
            guess = 1 if axis == 0 else _FAR if len(dims) == 4 and axis > 1 else _LONG
            # A dim without a name has a length of its own.
            symbol = dim.dim_param or f"{value.name} {axis}"
            shape.append(dim.dim_value if dim.dim_value > 0 else sizes.setdefault(symbol, guess))
        fixed[value.name] = shape
    return fixed


def fix_dims_text(fixed: dict[str, list[int]]) -> str:
    """Return the options of the command line that give inputs these shapes."""
    return " ".join(f"--fix-shape {name}:{','.join(map(str, dims))}" for name, dims in fixed.items())
