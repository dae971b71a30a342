"""Removes from a model what tells tools something about it, and on which no number depends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import onnx

from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import tensors
from onnx_migrate.spec.ir_versions import IrFeature

__all__ = ["differ_in_ir_version_alone", "drop_annotation"]


def drop_annotation(proto: onnx.ModelProto, feature: IrFeature) -> int:
    """Remove an annotation from a model, in place, wherever it is; return the number of places that had it.

    The metadata of the model itself stays: it is as old as IR version 3.
    """
    return _DROP[feature](proto)


def differ_in_ir_version_alone(one: Model, other: Model) -> bool:
    """Return whether two models have other IR versions, and differ otherwise in annotations only, if in anything."""
    if one.proto.ir_version == other.proto.ir_version or one.weights.folder != other.weights.folder:
        return False
    if len(one.proto.graph.node) != len(other.proto.graph.node):
        return False  # to spare the copies
    if any(mine is not its for mine, its in zip(one.weights.memory, other.weights.memory, strict=False)):
        return False
    return _bare(one.proto) == _bare(other.proto)


def _bare(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy without IR version and annotations."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    copy.ClearField("ir_version")
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
    """Clear a field where it is set, and return how often it was."""
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
