"""Finds advice on a refusal, and tries each piece on the model's structure before onnx-migrate prints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from onnx_migrate.advice import Advice
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.errors import MigrateError
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import all_nodes, fed_inputs
from onnx_migrate.model.model import Model
from onnx_migrate.options import Options
from onnx_migrate.pipelines import default_pipeline, pipeline_of
from onnx_migrate.process import OutOfTime
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.part import cut
from onnx_migrate.splitting import split_for
from onnx_migrate.standard.targets import Target, Targets, milestones
from onnx_migrate.standard.targets.releases import key

__all__ = ["remedies", "tried_advice"]

_FAR = 320
"""A length for an axis of an image: a multiple of the strides that networks have."""
_LONG = 128
"""A length for any other axis but the first."""


def remedies(checker: CompatibilityChecker, targets: Targets) -> tuple[str, ...]:
    """Return solutions for a model that the targets do not support: fixed dims, floats, a later release, a shorter model."""
    model = checker.model
    texts = [_fixed_dims(model, targets), _quantised(model, targets), _cut_off(model, targets)]
    if len(targets) == 1:
        texts.insert(2, _later_release(checker, targets.members[0]))
    return tuple(filter(None, texts))


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
        changes["fix_shape"] = _example_dims(model)
        if not changes["fix_shape"]:
            return None
        example = _fix_options(changes["fix_shape"])
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


def _fixed_dims(model: Model, targets: Targets) -> str:
    """Return the options that fix all dims of the inputs, if the targets support the model then."""
    fixed = _example_dims(model)
    support = _taken(model, targets, fix_shape=fixed) if fixed else ""
    return f"with fixed dims {support}, for example with {_fix_options(fixed)}" if support else ""


def _fix_options(fixed: dict[str, list[int]]) -> str:
    return " ".join(f"--fix-shape {name}:{','.join(map(str, dims))}" for name, dims in fixed.items())


def _example_dims(model: Model) -> dict[str, list[int]]:
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


def _quantised(model: Model, targets: Targets) -> str:
    """Return the option that converts a quantised model to a form that the targets support: pairs, else floats."""
    if not any("Quantize" in node.op_type or node.op_type.startswith("Q") for node in all_nodes(model.proto)):
        return ""
    if pairs := _taken(model, targets, quantized_form="qdq"):
        return f"as pairs of QuantizeLinear and DequantizeLinear, {pairs}: --quantized-form qdq"
    support = _taken(model, targets, quantized_form="float")
    return f"as floats, whose numbers are others, {support}: --quantized-form float" if support else ""


def _taken(model: Model, targets: Targets, **options: Any) -> str:
    """Return that targets support the result of a migration with these options, "" if the migration ends with an error.

    The text promises less if an operator of the result is neither measured nor read.
    """
    log = ChangeLog()
    try:
        default_pipeline(runtime=targets, simplify=False, **options).run(model, log)
    except MigrateError:
        return ""
    unknown = any(note.code == "operators-not-known" for note in log.notes)
    return f"no rule that onnx-migrate knows excludes {targets}" if unknown else f"{targets} supports it"


def _later_release(checker: CompatibilityChecker, target: Target) -> str:
    """Return the first later release that supports the model, with or without a migration."""
    for milestone in milestones(target.table):
        if key(milestone.number) > key(target.number):
            standing = checker.advise(milestone).standing
            if standing.rank >= Support.AFTER.rank:
                return f"{milestone} supports it {standing.value}"
    return ""


def _cut_off(model: Model, targets: Targets) -> str:
    """Return advice to cut off the unsupported nodes at the end, if they are fewer than half of all nodes."""
    try:
        split = split_for(model, Options(runtime=targets))
        if not split.outputs or split.behind > split.before:
            return ""
        # A trial shows that the cut is possible.
        cut(model, split.outputs)
    except MigrateError:
        return ""
    nodes = f"the {count_of(split.behind, 'node')} from {split.label!r} ({split.operator}) on"
    return (
        f"without {nodes} at the end, with {listed(map(repr, split.outputs))} as outputs, {targets} supports it: --split"
        " writes both parts"
    )
