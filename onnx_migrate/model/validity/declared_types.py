"""Whether the declared types of inputs, outputs and inner values are types: element types that exist.

Source: onnx.proto, comments of TypeProto and ValueInfoProto.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.model.validity.fault import Fault, Problem
from onnx_migrate.model.validity.tensors import dtype_fault

__all__ = ["declared_type_faults"]


def declared_type_faults(graph: onnx.GraphProto, path: str, *, main: bool) -> Iterator[Fault]:
    """Yield the faults in the declared types of a graph. In the main graph (`main`) every input must have a type."""
    fine: set[bytes] = set()
    for what, values in (("input", graph.input), ("output", graph.output), ("inner value", graph.value_info)):
        for value in values:
            key = value.type.SerializeToString()
            if key in fine:
                continue
            problem = _fault(value.type)
            if not key:
                if not main or what != "input":
                    continue
                problem = Problem(code="no-dtype", reason="none is declared")
            if problem:
                yield Fault(
                    problem.code,
                    f"the {what} has no valid type: {problem.reason}",
                    where=Where(path, value.name),
                    hint="declare its type",
                )
            fine.add(key)


def _fault(type_: onnx.TypeProto) -> Problem | None:
    """Return what is not valid in a type; None for one without any kind, which says nothing."""
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        return dtype_fault(type_.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        return dtype_fault(type_.sparse_tensor_type.elem_type)
    if kind == "sequence_type":
        return _fault(type_.sequence_type.elem_type)
    if kind == "optional_type":
        return _fault(type_.optional_type.elem_type)
    if kind == "map_type":
        return dtype_fault(type_.map_type.key_type) or _fault(type_.map_type.value_type)
    return None
