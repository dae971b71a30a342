"""The checks at both ends of a pipeline: a broken source is repaired or an error, and an invalid result is an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from onnx_migrate.errors import IllegalModel, InvalidModel
from onnx_migrate.facts.quantized_axes import axis_faults
from onnx_migrate.model.graphs import (
    all_nodes,
    bodies,
    default_graphs,
    function_key,
    initializer_names,
    node_label,
)
from onnx_migrate.model.legality import node_faults
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.model.uncalled_functions import uncalled_faults
from onnx_migrate.model.validity.fault import Fault
from onnx_migrate.model.validity.ir_features import FoundFeature, features
from onnx_migrate.model.validity.narrow_types import has_narrow_types
from onnx_migrate.model.validity.node_types import type_faults
from onnx_migrate.model.validity.size_limits import check_growth
from onnx_migrate.model.validity.structure import Length, name_faults, structure_faults
from onnx_migrate.model.validity.tensors import Array, IntArray
from onnx_migrate.model.validity.tolerated import tolerated
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.inline_functions import inline_calls, other_opset
from onnx_migrate.rewrite.unknown_operators import has_unknown_operators, write_unknown_operators
from onnx_migrate.standard.ir_versions import IrFeature
from onnx_migrate.standard.opsets import imported, owners
from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "IrLimit",
    "accepted",
    "check_nodes",
    "check_result",
    "note_older_ir",
    "note_tolerated",
    "settle_ir_version",
]

_ML = "ai.onnx.ml"


@dataclass(frozen=True)
class IrLimit:
    """The fact that a pass gave the model the IR version that the user asked for."""

    ir_version: int
    opset: int = 0
    """Up to this opset, ai.onnx may be newer than the IR version: a runtime that takes both, or the caller, asked for it."""
    kept: bool = False
    """Whether the IR version is the original's, which may have something newer already."""


def accepted(model: Model, log: ChangeLog | None = None, *, strict: bool = False) -> Model:
    """Return the model for the passes: this one, or a copy of a broken one, repaired to match what ONNX Runtime does.

    `log` gets a note on each repair. Raises InvalidModel, with a code for its kind, for the first fault beyond repair;
    with `strict`, for the first fault. Raises CannotMigrate, code `too-large`, for a model that grows beyond all bounds when
    its functions are expanded. The passes compare nodes with the schemas of their operators, since they know more forms than
    the one that the opset selects. Reads no weights.
    """
    broken = next(_structure_faults(model), None)
    if broken is not None:
        if strict:
            raise broken.error()
        from onnx_migrate.model.mending import mend  # most models are valid

        given_proto, model = model.proto, model.copy()
        model.as_given = given_proto
        mended = mend(model.proto, _length_of(model), _reader(model))
        if any(mending.unread for mending in mended):
            model.as_given = None  # the proof starts at the repaired model
        for remaining_fault in _structure_faults(model):
            raise remaining_fault.error()
        if log is not None:
            for mending in mended:
                log.note("load", "mended", mending.reason, subject=mending.subject, severity="warning")
    # Functions that call each other may expand to more nodes than memory holds.
    check_growth(model.proto)
    if any(True for function in model.proto.functions for _ in default_graphs(function)):
        from onnx_migrate.model.mending.default_graphs import bind_default_graphs  # few functions have any

        given_proto = model.as_given or model.proto
        model = model.copy()
        model.as_given = given_proto
        for path in bind_default_graphs(model.proto):
            if log is not None:
                reason = (
                    f"{path}: graphs that are defaults of its attributes stand where its nodes refer to them"
                )
                log.note("load", "attribute-defaults", reason, subject=path)
    if not strict and has_unknown_operators(model.proto):
        model = model.copy()  # no runtime has the operators, so the proof starts from what they mean
        for subject, reason in write_unknown_operators(model):
            if log is not None:
                log.note("load", "mended", reason, subject=subject, severity="warning")
    if not strict:
        model = _with_one_float_type(model, log)
    for where, reason in axis_faults(model):
        raise InvalidModel(
            f"not a valid ONNX model: {reason}",
            code="invalid-node",
            where=where,
            hint="correct the axis, or the shape of the scale; no runtime runs the node",
        )
    return model


def _with_one_float_type(model: Model, log: ChangeLog | None) -> Model:
    """Return a model in which no operator gets two floating-point types; no runtime loads it, so the proof starts from that."""
    if not has_narrow_types(model.proto):
        return model
    from onnx_migrate.model.mending import mend_float_types  # most models have one type

    mended = model.copy()
    mendings = mend_float_types(mended.proto)
    # A repair that leaves a fault is no repair.
    if not mendings or next(type_faults(mended.proto), None) is not None:
        return model  # a later check refuses it, and names the node
    for mending in mendings:
        if log is not None:
            log.note("load", "mended", mending.reason, subject=mending.subject, severity="warning")
    return mended


def check_nodes(model: Model) -> None:
    """Raise InvalidModel for the first node that is not valid at the model's opset, and for nodes that form a cycle.

    A form that the schemas do not know may run all the same, so this is for a model that no runtime loads.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    sort_model(proto)
    for fault in _faults(model, names=True):
        raise fault.error()


def note_tolerated(model: Model, log: ChangeLog) -> None:
    """Write notes on faults that onnx.checker refuses although runtimes run the model."""
    for subject, reason in tolerated(model.proto, _reader(model)):
        log.note(
            "load",
            "tolerated",
            f"{reason}; onnx.checker reports an error, but runtimes run the model",
            subject=subject,
        )


def note_older_ir(model: Model, log: ChangeLog) -> None:
    """Write notes on features newer than the model's IR version that neither onnx.checker nor runtimes refuse."""
    newer = [
        feature_use
        for feature_use in features(model.proto)
        if feature_use.since > model.proto.ir_version and feature_use.feature is not IrFeature.UNLISTED
    ]
    if newer:
        log.note(
            "load",
            "older-ir",
            f"the IR version is {model.proto.ir_version}, and the model has {_listed(newer)}",
            subject="model",
        )


def settle_ir_version(result: Model, original: Model, log: ChangeLog) -> None:
    """Raise the IR version of a result, in place, if it has a newer feature that the original does not have.

    A feature that the original already has at too low an IR version does not raise it, since programs load that. There is one
    exception: initializers of a sub-graph that are not listed as inputs. Neither onnx.checker nor ONNX Runtime accepts them
    below IR version 4. Raises IllegalModel if a pass set the IR version, and the result has a newer feature.
    """
    proto = result.proto
    newer = [feature_use for feature_use in features(proto) if feature_use.since > proto.ir_version]
    limit = log.fact(IrLimit, "", "")
    if limit is not None:
        # A pass that set the IR version allowed opsets up to its limit.
        allowed = {f"opset {number} of ai.onnx" for number in range(limit.opset + 1)}
        newer = [
            feature_use
            for feature_use in newer
            if feature_use.feature is not IrFeature.OPSET or feature_use.text not in allowed
        ]
    if newer and (limit is None or limit.kept):
        had = {
            feature_use.feature: feature_use.since for feature_use in features(original.proto)[::-1]
        }  # the newest opset last
        newer = [
            feature_use
            for feature_use in newer
            if feature_use.since > had.get(feature_use.feature, 0) or _refused(proto, feature_use)
        ]
    if newer and limit is not None:
        raise IllegalModel(
            f"it has {_listed(newer)}, and was to have IR version {proto.ir_version}",
            hint="a pass wrote that after the IR version was set: ask for a newer one, or leave the pass out",
        )
    if newer:
        needed = max(feature_use.since for feature_use in newer)
        reason = f"IR version {proto.ir_version} became {needed}, as the model has {_listed(newer)}"
        log.note("result", "ir-version", reason, subject="model")
        proto.ir_version = needed


def _refused(proto: onnx.ModelProto, found: FoundFeature) -> bool:
    return found.feature is IrFeature.UNLISTED and any(
        initializer_names(located.body) - {value.name for value in located.body.input}
        for located in bodies(proto)
        if located.key and isinstance(located.body, onnx.GraphProto)
    )


def _listed(newer: Sequence[FoundFeature]) -> str:
    return ", ".join(
        f"{feature_use.text} (since IR version {feature_use.since}; {feature_use.place})"
        for feature_use in newer
    )


def check_result(result: Model, original: Model, *, names: bool = True) -> None:
    """Raise for a result that is not valid: IllegalModel, or InvalidModel if the original has the same fault.

    Without `names`, the names of values, functions and domains count as valid.
    """
    fault = next(_faults(result, names=names), None)
    if fault is None:
        return
    for own in _faults(original, names=True):
        if own.code == fault.code:
            raise InvalidModel(
                f"not a valid ONNX model: {own.reason}", code=own.code, where=own.where, hint=own.hint
            )
    if _untouched(fault, result.proto, original.proto) or _clashes_behind_calls(fault, original.proto):
        # Of a node at an opset that does not have its operator, or inside a function, types are found to clash only later.
        raise InvalidModel(
            f"not a valid ONNX model: {fault.reason}", code=fault.code, where=fault.where, hint=fault.hint
        )
    raise IllegalModel(fault.reason, where=fault.where)


def _untouched(fault: Fault, result: onnx.ModelProto, original: onnx.ModelProto) -> bool:
    """Return whether a fault in types is of a node that the original has too, but for names."""
    if fault.code != "type-mismatch" or fault.where is None:
        return False
    named = [
        node
        for node in all_nodes(result)
        if node_label(node) == fault.where.node and node.op_type == fault.where.operator
    ]
    before = {_form(node) for node in all_nodes(original)}
    return bool(named) and all(_form(node) in before for node in named)


def _clashes_behind_calls(fault: Fault, original: onnx.ModelProto) -> bool:
    """Return whether types clash in the original too, once its function calls are inlined."""
    if fault.code != "type-mismatch" or not original.functions:
        return False
    inlined = onnx.ModelProto()
    inlined.CopyFrom(original)
    same = {
        function_key(function) for function in inlined.functions if other_opset(inlined, function) is None
    }
    inline_calls(inlined, same)
    return next(type_faults(inlined), None) is not None


def _form(node: onnx.NodeProto) -> bytes:
    """Return a node without names."""
    copy = onnx.NodeProto(
        op_type=node.op_type, domain="" if is_onnx(node.domain) else node.domain, attribute=node.attribute
    )
    copy.input.extend("x" if name else "" for name in node.input)
    return copy.SerializeToString(deterministic=True)


def _faults(model: Model, *, names: bool) -> Iterator[Fault]:
    proto = model.proto
    yield from node_faults(proto)
    if any(imported(owner.opset_import, _ML) is not None for owner in owners(proto)):
        yield from node_faults(proto, _ML)
    yield from type_faults(proto)
    if names:
        yield from name_faults(proto)


def _structure_faults(model: Model) -> Iterator[Fault]:
    length, array = _length_of(model), _reader(model)
    yield from structure_faults(model.proto, length, array)
    yield from uncalled_faults(model.proto)


def _length_of(model: Model) -> Length:
    weights = model.weights

    def length(tensor: TensorProto) -> int | None:
        return None if weights.is_absent(tensor) else weights.payload(tensor).length

    return length


def _reader(model: Model) -> Array:
    weights = model.weights

    def array(tensor: TensorProto) -> IntArray | None:
        if tensor.data_location == TensorProto.EXTERNAL and weights.is_absent(tensor):
            return None
        return weights.array(tensor)

    return array
