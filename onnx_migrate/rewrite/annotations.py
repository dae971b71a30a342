"""Removes information for tools from a model, which changes no number; sets its IR version."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

import onnx

from onnx_migrate.model.graphs import all_nodes, bodies
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import tensors
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.ir_versions import IrFeature
from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "differ_in_header_alone",
    "drop_annotation",
    "drop_unused_imports",
    "note_unused_imports",
    "set_ir_version",
    "unused_imports",
]


def drop_annotation(proto: onnx.ModelProto, feature: IrFeature) -> int:
    """Remove an annotation from a model, in place, wherever it is; return the number of places that had it.

    The metadata of the model itself stays: it is as old as IR version 3.
    """
    return _DROP[feature](proto)


def differ_in_header_alone(one: Model, other: Model) -> bool:
    """Return whether `other` is `one` with another IR version, without imports that nothing uses, or both.

    It may lack annotations too, on which no number depends. Graphs, functions, weights and the versions of all domains that
    nodes are of are the same. False for models that are equal.
    """
    mine, its = one.proto, other.proto
    same = mine.ir_version == its.ir_version and _imports(mine) == _imports(its)
    if same or one.weights.folder != other.weights.folder:
        return False
    if len(mine.graph.node) != len(its.graph.node):
        return False  # to spare the copies
    if any(
        held is not as_held for held, as_held in zip(one.weights.memory, other.weights.memory, strict=False)
    ):
        return False
    return _drops_unused_imports(mine, its) and _bare(mine) == _bare(its)


def set_ir_version(
    proto: onnx.ModelProto, version: int, log: ChangeLog, pass_name: str, why: str = ""
) -> None:
    """Set the IR version, and write a note if it changes; the note ends with `why`."""
    if proto.ir_version != version:
        reason = f"IR version {proto.ir_version} became {version}{why}"
        log.note(pass_name, "ir-version", reason, subject="model")
        proto.ir_version = version


def unused_imports(proto: onnx.ModelProto) -> list[str]:
    """Return the domains that the model imports and no node, function or training graph is of; ai.onnx is not one.

    None where that would be all: a model without any import is not valid.
    """
    if proto.training_info or all(is_onnx(entry.domain) for entry in proto.opset_import):
        return []
    used = {node.domain for node in all_nodes(proto)}
    used.update(function.domain for function in proto.functions)
    unused = [
        entry.domain for entry in proto.opset_import if not is_onnx(entry.domain) and entry.domain not in used
    ]
    return unused if len(unused) < len(proto.opset_import) else []


def drop_unused_imports(proto: onnx.ModelProto, keep: Container[str] = ()) -> list[str]:
    """Remove the model's imports of domains that nothing uses, but of those to keep, in place; return these domains."""
    gone = [domain for domain in unused_imports(proto) if domain not in keep]
    if gone:
        # The list is rebuilt, because protobuf cannot remove several entries at once.
        kept_imports = [
            onnx.OperatorSetIdProto(domain=entry.domain, version=entry.version)
            for entry in proto.opset_import
            if entry.domain not in gone
        ]
        del proto.opset_import[:]
        proto.opset_import.extend(kept_imports)
    return gone


def note_unused_imports(pass_name: str, gone: list[str], log: ChangeLog) -> None:
    """Note that a pass dropped imports, if it did."""
    if gone:
        message = f"removed the import{'s' * (len(gone) > 1)} of {', '.join(gone)}, which no node uses"
        log.note(pass_name, "unused-import", message, subject=gone[0])


def _imports(proto: onnx.ModelProto) -> list[tuple[str, int]]:
    return [(entry.domain, entry.version) for entry in proto.opset_import]


def _drops_unused_imports(one: onnx.ModelProto, other: onnx.ModelProto) -> bool:
    """Return whether the imports of `other` are those of `one`, or those without the ones that nothing uses."""
    unused = unused_imports(one)
    return _imports(other) in (
        _imports(one),
        [(domain, version) for domain, version in _imports(one) if domain not in unused],
    )


def _bare(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy without IR version, imports and annotations."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.ClearField("ir_version")
    copy.ClearField("opset_import")
    for feature in _DROP:
        drop_annotation(copy, feature)
    return copy


def _metadata(proto: onnx.ModelProto) -> int:
    holders: list[Any] = [*proto.functions, *tensors(proto)]
    for located in bodies(proto):
        body = located.body
        holders += body.node
        if isinstance(body, onnx.GraphProto):
            holders += [body, *body.input, *body.output, *body.value_info]
        else:
            holders += body.value_info
    return _clear(holders, "metadata_props")


def _quantization(proto: onnx.ModelProto) -> int:
    count = 0
    for located in bodies(proto):
        if isinstance(located.body, onnx.GraphProto):
            count += len(located.body.quantization_annotation)
            del located.body.quantization_annotation[:]
    return count


def _value_info(proto: onnx.ModelProto) -> int:
    count = sum(len(function.value_info) for function in proto.functions)
    _clear(proto.functions, "value_info")
    return count


def _devices(proto: onnx.ModelProto) -> int:
    nodes = (node for located in bodies(proto) for node in located.body.node)
    return _clear([proto], "configuration") + _clear(nodes, "device_configurations")


def _clear(holders: Iterable[Any], field: str) -> int:
    """Clear a field if it is set, and return how often it was set."""
    count = 0
    for holder in holders:
        if getattr(holder, field, None):
            holder.ClearField(field)
            count += 1
    return count


_DROP: dict[IrFeature, Callable[[onnx.ModelProto], int]] = {
    IrFeature.METADATA: _metadata,
    IrFeature.QUANTIZATION: _quantization,
    IrFeature.FUNCTION_VALUE_INFO: _value_info,
    IrFeature.DEVICES: _devices,
}
