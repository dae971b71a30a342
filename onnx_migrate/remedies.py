"""What would help where a runtime does not take a model; each is tried on the model's structure before it is said."""

from __future__ import annotations

from typing import Any

from onnx_migrate.compatibility import CompatibilityChecker, Support
from onnx_migrate.errors import MigrateError
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import all_nodes, fed_inputs
from onnx_migrate.model.model import Model
from onnx_migrate.options import Options, default_pipeline
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.part import cut
from onnx_migrate.splitting import split_for
from onnx_migrate.standard.targets import Target, Targets, milestones
from onnx_migrate.standard.targets.releases import key

__all__ = ["remedies"]

_FAR = 320
"""A length for an axis of an image: a multiple of the strides that networks have."""
_LONG = 128
"""A length for any other axis but the first."""


def remedies(checker: CompatibilityChecker, targets: Targets) -> tuple[str, ...]:
    """Return what would help with a model that the targets do not take: fixed dims, floats, a later release, a shorter model."""
    model = checker.model
    found = [_fixed_dims(model, targets), _quantised(model, targets), _cut_off(model, targets)]
    if len(targets) == 1:
        found.insert(2, _later_release(checker, targets.members[0]))
    return tuple(item for item in found if item)


def _fixed_dims(model: Model, targets: Targets) -> str:
    """Return the options that fix all dims of the inputs, if the targets take the model then."""
    sizes: dict[str, int] = {}
    fixed: dict[str, list[int]] = {}
    for value in fed_inputs(model.proto.graph):
        dims = value.type.tensor_type.shape.dim
        if not value.type.tensor_type.HasField("shape") or all(dim.HasField("dim_value") for dim in dims):
            continue
        found = []
        for axis, dim in enumerate(dims):
            guess = 1 if axis == 0 else _FAR if len(dims) == 4 and axis > 1 else _LONG
            symbol = dim.dim_param or f"{value.name} {axis}"
            found.append(dim.dim_value if dim.dim_value > 0 else sizes.setdefault(symbol, guess))
        fixed[value.name] = found
    if not fixed:
        return ""
    taken = _taken(model, targets, fix_shape=fixed)
    options = " ".join(f"--fix-shape {name}:{','.join(map(str, dims))}" for name, dims in fixed.items())
    return f"with fixed dims {taken}, for example with {options}" if taken else ""


def _quantised(model: Model, targets: Targets) -> str:
    """Return the option that writes a quantised model in a form that the targets take: pairs, or floats if pairs do not help."""
    if not any("Quantize" in node.op_type or node.op_type.startswith("Q") for node in all_nodes(model.proto)):
        return ""
    if pairs := _taken(model, targets, quantized_form="qdq"):
        return f"as pairs of QuantizeLinear and DequantizeLinear, {pairs}: --quantized-form qdq"
    taken = _taken(model, targets, quantized_form="float")
    return f"as floats, whose numbers are others, {taken}: --quantized-form float" if taken else ""


def _taken(model: Model, targets: Targets, **options: Any) -> str:
    """Return that targets take what a migration with these options makes, "" if it is refused.

    No more is said than is known where an operator of the result is neither measured nor read.
    """
    log = ChangeLog()
    try:
        default_pipeline(runtime=targets, simplify=False, **options).run(model, log)
    except MigrateError:
        return ""
    unknown = any(note.code == "operators-not-known" for note in log.notes)
    return f"nothing known keeps it from {targets}" if unknown else f"{targets} takes it"


def _later_release(checker: CompatibilityChecker, target: Target) -> str:
    """Return the first later release that takes the model, as it is or after a migration."""
    for item in milestones(target.table):
        if key(item.number) > key(target.number):
            standing = checker.advise(item).standing
            if standing.rank >= Support.AFTER.rank:
                return f"{item} takes it {standing.value}"
    return ""


def _cut_off(model: Model, targets: Targets) -> str:
    """Return how to cut off the nodes at the end that the targets do not take, if they are fewer than half of them."""
    try:
        found = split_for(model, Options(runtime=targets))
        if not found.outputs or found.behind > found.before:
            return ""
        cut(model, found.outputs)
    except MigrateError:
        return ""
    nodes = f"the {count_of(found.behind, 'node')} from {found.label!r} ({found.operator}) on"
    return (
        f"without {nodes} at the end, with {listed(map(repr, found.outputs))} as outputs, {targets} takes it: --split writes"
        " that, and the rest beside it"
    )
