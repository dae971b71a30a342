"""Whether a model is valid: onnx's checker and strict shape inference accept it. Both run in another process."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.onnx_inference import without_fragile_ops
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.validity.equations import equation_faults
from onnx_migrate.process import Raised, Returned, call_in_fork
from onnx_migrate.standard.schema import schema_generation

__all__ = ["fault_of"]

_SECONDS = 20.0
"""Most seconds of a check; a model of 2,000 nodes takes less than one."""

_MEMORY = 1 << 30
"""Most bytes that a check may take."""


def fault_of(proto: onnx.ModelProto) -> str:
    """Return the first fault of a model in onnx's words; "" for a valid one."""
    plain = without_fragile_ops(_without_references(proto))
    if b"Einsum" in (structure := plain.SerializeToString()):
        for fault in equation_faults(plain):
            return fault.reason
    ending = call_in_fork(
        f"{__name__}:check", structure, seconds=_SECONDS, memory=_MEMORY, state=schema_generation()
    )
    if isinstance(ending, Returned):
        return ""
    return " ".join((ending.message if isinstance(ending, Raised) else str(ending)).split())


def check(structure: bytes) -> None:
    """Check a model, in the other process. Raises onnx's exceptions."""
    proto = onnx.ModelProto.FromString(structure)
    onnx.checker.check_model(proto)
    onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)


def _without_references(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which inputs stand for large initializers: onnx's checker would look for their files."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    graph = copy.graph
    listed = {value.name for value in graph.input}
    external = [tensor for tensor in graph.initializer if tensor.data_location == TensorProto.EXTERNAL]
    names = {tensor.name for tensor in external}
    graph.input.extend(
        helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
        for tensor in external
        if tensor.name not in listed
    )
    remaining_tensors = [tensor for tensor in graph.initializer if tensor.name not in names]
    del graph.initializer[:]
    graph.initializer.extend(remaining_tensors)
    for tensor in _external(copy):
        size = byte_size(tensor.dims, tensor.data_type) or 0
        tensor.ClearField("data_location")
        del tensor.external_data[:]
        tensor.raw_data = bytes(size)
    return copy


def _external(proto: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield the tensors of attributes and sub-graphs whose data is elsewhere."""
    return (tensor for tensor in tensors(proto) if tensor.data_location == TensorProto.EXTERNAL)
