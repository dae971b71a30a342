"""Finds what helps a model that target runtimes do not support; every solution is tried on the model's structure."""

from __future__ import annotations

from typing import Any

from onnx_migrate.advice import Advice
from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.errors import MigrateError
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.options import Options
from onnx_migrate.pipelines import pipeline_of
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.part import cut
from onnx_migrate.splitting import split_for
from onnx_migrate.standard.targets import Target, Targets, milestones
from onnx_migrate.standard.targets.releases import key
from onnx_migrate.tried_advice import example_dims, fix_dims_text

__all__ = ["remedies", "with_remedies"]


def remedies(checker: CompatibilityChecker, targets: Targets) -> tuple[str, ...]:
    """Return solutions for a model that the targets do not support: fixed dims, floats, a later release, a shorter model."""
    model = checker.model
    texts = [_fixed_dims(model, targets), _quantised(model, targets), _cut_off(model, targets)]
    if len(targets) == 1:
        texts.insert(2, _later_release(checker, targets.members[0]))
    return tuple(filter(None, texts))


def with_remedies(error: MigrateError, model: Model, options: Options) -> tuple[Advice, ...]:
    """Return the advice on an error of the passes for runtimes: its own without fixed dims, which are tried, and the remedies."""
    if options.targets is None:
        return error.advice
    own = (piece for piece in error.advice if not piece.fixes_dims)
    helps = remedies(CompatibilityChecker(model), options.targets)
    return (*own, *(Advice(text, tried=True) for text in helps))


def _fixed_dims(model: Model, targets: Targets) -> str:
    """Return the options that fix all dims of the inputs, if the targets support the model then."""
    fixed = example_dims(model)
    support = _taken(model, targets, fix_shape=fixed) if fixed else ""
    return f"with fixed dims {support}, for example with {fix_dims_text(fixed)}" if support else ""


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

    The text promises less if an operator of the result is neither measured nor read. An option of a feature that is not installed
    helps nobody.
    """
    if not all(hasattr(Options, name) for name in options):
        return ""
    log = ChangeLog()
    try:
        pipeline_of(Options.of_installed(runtime=targets, simplify=False, **options)).run(model, log)
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
    if not hasattr(Options, "split"):  # the feature is not installed
        return ""
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
