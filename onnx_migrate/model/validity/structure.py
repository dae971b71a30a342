"""All checks of a model except those by the schemas of operators: tensors, attributes, names, types, functions.

The cost is linear in the size of the graph. The checks read no weights except the indices of sparse tensors. Source of
the rules for a declared type: onnx.proto, comments of TypeProto and ValueInfoProto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import (
    Body,
    default_graphs,
    default_path,
    function_path,
    may_hold_graphs,
    nested_bodies,
    subgraph_path,
    subgraphs,
)
from onnx_migrate.model.validity.attributes import attribute_fault
from onnx_migrate.model.validity.equations import equation_faults
from onnx_migrate.model.validity.fault import Fault, Problem, where_of
from onnx_migrate.model.validity.functions import function_faults, import_faults
from onnx_migrate.model.validity.node_types import constant_faults
from onnx_migrate.model.validity.tensors import Array, array_of, dtype_fault, sparse_fault, tensor_fault
from onnx_migrate.model.validity.values import definitions, order_faults, shadowing_faults, value_faults

__all__ = ["Length", "declared_type_faults", "name_faults", "structure_faults", "type_problem"]

_WITH_TENSORS = frozenset(
    (
        AttributeProto.TENSOR,
        AttributeProto.TENSORS,
        AttributeProto.SPARSE_TENSOR,
        AttributeProto.SPARSE_TENSORS,
    )
)
_WITH_GRAPHS = frozenset((AttributeProto.GRAPH, AttributeProto.GRAPHS))
_NONE: frozenset[int] = frozenset()

Length = Callable[[TensorProto], int | None]
"""Returns the bytes of data that a tensor marked EXTERNAL refers to; None if that is not known."""


def structure_faults(
    proto: onnx.ModelProto, length: Length = lambda tensor: None, array: Array = array_of
) -> Iterator[Fault]:
    """Yield the faults of a model, except those that the schemas of operators show."""
    yield from _faults(proto, _Check(untyped=proto.ir_version < 2, length=length, array=array))
    yield from equation_faults(proto)


def name_faults(proto: onnx.ModelProto) -> Iterator[Fault]:
    """Yield the faults in the names of values, functions and domains; an edit of the graph can cause such faults."""
    yield from _faults(proto, _Check(contents=False))


def _faults(proto: onnx.ModelProto, check: _Check) -> Iterator[Fault]:
    yield from check.body(proto.graph, "graph", ())
    for function in proto.functions:
        yield from check.body(function, function_path(function), ())
        for attribute, graph_index, graph in default_graphs(function):
            visible = {name for _, body in nested_bodies(function) for name in definitions(body).names}
            yield from check.body(graph, default_path(function, attribute, graph_index), (visible,))
    yield from function_faults(proto)
    yield from import_faults(proto)


class _Check:
    def __init__(
        self,
        *,
        untyped: bool = False,
        length: Length = lambda tensor: None,
        array: Array = array_of,
        contents: bool = True,
    ) -> None:
        self._contents = contents
        self._untyped = untyped
        self._length = length
        self._array = array

    def body(
        self, body: Body, path: str, outer: tuple[Set[str], ...], before: tuple[Set[str], ...] = ()
    ) -> Iterator[Fault]:
        """Yield the faults of a body and of the sub-graphs in it.

        `outer` has the names that the bodies around it define, and `before` those that they define before it.
        """
        if self._contents and isinstance(body, onnx.GraphProto):
            yield from declared_type_faults(body, path, main=path == "graph")
            yield from self._initializers(body, path)
        defined_values = definitions(body)
        yield from value_faults(body, path, defined_values, outer)
        if (
            self._contents
            and isinstance(body, onnx.GraphProto)
            and ("", "Constant") in defined_values.operators
        ):
            yield from constant_faults(body, path)
        if path != "graph":
            yield from order_faults(body, path, set(defined_values.produced).difference({""}, *before))
        holders = any(may_hold_graphs(*operator) for operator in defined_values.operators)
        if not self._contents and not holders and not before:
            return
        # Inputs and initializers are defined before the first node.
        defined = {*defined_values.inputs, *defined_values.initializers}
        for node in body.node:
            if before:
                yield from shadowing_faults(node, path, before)
            attributes = node.attribute[:]
            kinds = {attribute.type for attribute in attributes} if attributes else _NONE
            if self._contents and (kinds or node.op_type == "Constant"):
                problem = attribute_fault(node, untyped=self._untyped)
                if problem:
                    reason = f"it {problem.reason}"
                    yield Fault(problem.code, reason, where_of(path, node), "correct the attribute")
                    # A malformed attribute may hold no readable graph, so nothing inside it is checked.
                    continue
                if not kinds.isdisjoint(_WITH_TENSORS):
                    yield from self._tensors(node, path)
            for attribute, graph_index, graph in (
                subgraphs(node) if not kinds.isdisjoint(_WITH_GRAPHS) else ()
            ):
                inner = subgraph_path(path, node, attribute, graph_index)
                yield from self.body(graph, inner, (*outer, defined_values.names), (*before, defined))
            # Only sub-graphs need to know the values before their node.
            if holders:
                defined.update(node.output)

    def _initializers(self, graph: onnx.GraphProto, path: str) -> Iterator[Fault]:
        for tensor in graph.initializer:
            problem = tensor_fault(tensor, self._bytes(tensor))
            if problem:
                yield Fault(
                    problem.code,
                    f"the initializer is not a tensor: {problem.reason}",
                    Where(path, tensor.name),
                )
        for sparse in graph.sparse_initializer:
            problem = self._sparse(sparse)
            if problem:
                name = sparse.values.name
                yield Fault(
                    problem.code,
                    f"the sparse initializer is not a tensor: {problem.reason}",
                    Where(path, name),
                )

    def _tensors(self, node: onnx.NodeProto, path: str) -> Iterator[Fault]:
        for attribute in node.attribute:
            kind = attribute.type
            if kind not in _WITH_TENSORS:
                continue
            problem: Problem | None = None
            # An attribute that the call of a function sets has no tensor here.
            if kind == AttributeProto.TENSOR and not attribute.ref_attr_name:
                problem = tensor_fault(attribute.t, self._bytes(attribute.t))
            elif kind == AttributeProto.TENSORS:
                faults = (tensor_fault(tensor, self._bytes(tensor)) for tensor in attribute.tensors)
                problem = next(filter(None, faults), None)
            elif kind == AttributeProto.SPARSE_TENSOR and not attribute.ref_attr_name:
                problem = self._sparse(attribute.sparse_tensor)
            elif kind == AttributeProto.SPARSE_TENSORS:
                problem = next(filter(None, map(self._sparse, attribute.sparse_tensors)), None)
            if problem:
                yield Fault(
                    problem.code,
                    f"the tensor in its attribute {attribute.name!r} is not valid: {problem.reason}",
                    where_of(path, node),
                )

    def _sparse(self, sparse: onnx.SparseTensorProto) -> Problem | None:
        return sparse_fault(sparse, self._bytes(sparse.values), self._array)

    def _bytes(self, tensor: TensorProto) -> int | None:
        return self._length(tensor) if tensor.data_location == TensorProto.EXTERNAL else None


def declared_type_faults(graph: onnx.GraphProto, path: str, *, main: bool) -> Iterator[Fault]:
    """Yield the faults in the declared types of a graph. In the main graph (`main`) every input must have a type."""
    fine: set[bytes] = set()
    for role, values in (("input", graph.input), ("output", graph.output), ("inner value", graph.value_info)):
        for value in values:
            key = value.type.SerializeToString()
            # Many values share a type, and one check of it is enough.
            if key in fine:
                continue
            problem = type_problem(value.type)
            if not key:
                if not main or role != "input":
                    continue
                problem = Problem(code="no-dtype", reason="none is declared")
            if problem:
                yield Fault(
                    problem.code,
                    f"the {role} has no valid type: {problem.reason}",
                    where=Where(path, value.name),
                    hint="declare its type",
                )
            fine.add(key)


def type_problem(type_: onnx.TypeProto) -> Problem | None:
    """Return the fault of a type; None for a type without any kind, which says nothing."""
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        return dtype_fault(type_.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        return dtype_fault(type_.sparse_tensor_type.elem_type)
    if kind == "sequence_type":
        return type_problem(type_.sequence_type.elem_type)
    if kind == "optional_type":
        return type_problem(type_.optional_type.elem_type)
    if kind == "map_type":
        return dtype_fault(type_.map_type.key_type) or type_problem(type_.map_type.value_type)
    return None
