"""The scope of a body: the values and constants that its nodes can read, and new constants and names for it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.cached import cached_property
from onnx_migrate.facts.value_types import TypeTable, ValueType
from onnx_migrate.model.graphs import (
    BodyKey,
    FunctionKey,
    function_key,
    function_path,
    inputs_of_each,
    nested_bodies,
    output_names,
    producers,
    subgraph_path,
    subgraphs,
)
from onnx_migrate.model.names import Names
from onnx_migrate.model.weights import Weights
from onnx_migrate.standard.schema import is_onnx

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Scope", "scopes"]


_SMALL = 16
"""Elements of a constant up to which its array is cached, as many nodes read the same small constants."""


@lru_cache(maxsize=1024)
def _array(tensor: bytes) -> np.ndarray[Any, Any]:
    return onnx.numpy_helper.to_array(TensorProto.FromString(tensor))


@dataclass
class Scope:
    """One body and the names that are visible in it. Lookups that find nothing continue in the enclosing body."""

    body: onnx.GraphProto | onnx.FunctionProto
    path: str
    names: Names
    types: TypeTable
    weights: Weights
    inputs_override_initializers: bool
    """Whether a caller can override an initializer that is listed as an input: from IR version 4 on. Before, all are
    listed (onnx/docs/IR.md, "Graphs"), and they count as constants."""
    may_add_initializers: bool
    """Whether an initializer may be added without being listed as an input: from IR version 4 on."""
    key: BodyKey = ()
    function: FunctionKey | None = None
    parent: Scope | None = None
    _constants: dict[str, TensorProto | onnx.NodeProto] | None = field(default=None, repr=False)
    _resolved: dict[str, TensorProto | onnx.NodeProto | None] = field(default_factory=dict, repr=False)
    """The constants behind outputs of Identity nodes, so that each chain of Identity nodes is followed only once."""
    _shared: dict[tuple[str | np.dtype[Any], tuple[int, ...], bytes], str] = field(
        default_factory=dict, repr=False
    )
    _reads: set[str] | None = field(default=None, repr=False)
    _written: list[onnx.NodeProto] = field(default_factory=list, repr=False)
    """Nodes that were written since the names in `_reads` were collected."""
    constant_summaries: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Cached summaries of constants, by name (see `rewrite.constant_summary`)."""
    leading_constants: list[onnx.NodeProto] = field(default_factory=list, repr=False)
    """Constant nodes to insert at the front of the body, for a body that cannot have new initializers."""

    def inner(
        self, node: onnx.NodeProto, index: int, attribute: str, place: int, graph: onnx.GraphProto
    ) -> Scope:
        """Return the scope of a sub-graph of `node`, whose index in the body was `index` before the rewrite began."""
        return Scope(
            graph,
            subgraph_path(self.path, node, attribute, place),
            self.names,
            self.types,
            self.weights,
            self.inputs_override_initializers,
            self.may_add_initializers,
            (*self.key, index, attribute, place),
            self.function,
            self,
        )

    def nested(self) -> Iterator[Scope]:
        """Yield this scope and then those of all sub-graphs inside it, each before the ones inside it."""
        yield self
        for index, node in enumerate(self.body.node):
            for attribute, graph_index, graph in subgraphs(node):
                yield from self.inner(node, index, attribute, graph_index, graph).nested()

    def value_type(self, name: str) -> ValueType:
        """Return the known element type and shape of a value."""
        return self.types.lookup(self.function, self.key, name)

    def record_type(self, name: str, known: ValueType) -> None:
        """Enter the type of a value that a rewrite has added to this body."""
        self.types.record(self.function, self.key, name, known)

    def constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return the array of a constant: an initializer that cannot be overridden, or a Constant node.

        Follows Identity. None for a value that is computed at run time, and for sparse initializers.
        """
        source = self.constant_source(name)
        if source is None:
            return None
        if isinstance(source, TensorProto):
            small = source.data_location != TensorProto.EXTERNAL and math.prod(source.dims) <= _SMALL
            return _array(source.SerializeToString()).copy() if small else self.weights.array(source)
        return _constant_value(source, self.weights)

    def constant_type(self, name: str) -> int | None:
        """Return the element type of an initializer; None for any other value. Follows Identity."""
        source = self.constant_source(name)
        return source.data_type if isinstance(source, TensorProto) else None

    def constant_source(self, name: str) -> TensorProto | onnx.NodeProto | None:
        """Return the initializer or Constant node that defines a constant; None for any other value. Follows Identity."""
        followed: list[tuple[Scope, str]] = []
        definition: TensorProto | onnx.NodeProto | None = None
        scope: Scope | None = self
        while scope is not None:
            if name in scope._resolved:
                definition = scope._resolved[name]
                break
            # Outer bodies are searched only after the inner one, because an inner name hides an outer one.
            source = (scope._constants or scope._table()).get(name)
            if source is None:
                scope = scope.parent
            elif isinstance(source, TensorProto) or source.op_type != "Identity":
                definition = source
                break
            else:
                scope._resolved[name] = None  # ends the search on a cycle, which a broken model may have
                followed.append((scope, name))
                name = source.input[0] if source.input else ""
        # All aliases of the definition share the answer, so a later look-up is one step.
        for passed, alias in followed:
            passed._resolved[alias] = definition
        return definition

    def add_constant(self, array: np.ndarray[Any, Any], hint: str) -> str:
        """Add a constant to the body and return its name; an equal constant that was added before is reused.

        It becomes an initializer of a graph. In a function, which has none, and before IR version 4 it becomes a
        Constant node.
        """
        key = (array.dtype, array.shape, array.tobytes())
        if key in self._shared:
            return self._shared[key]
        self._shared[key] = name = self.names.fresh(hint)
        self.add_tensor(onnx.numpy_helper.from_array(array, name))
        return name

    def add_view(self, name: str, dtype: int, dims: tuple[int, ...], hint: str) -> str | None:
        """Add a constant of another element type and shape with the bytes of one, and return its name.

        The payload of a large tensor is referred to, not read. None for a value that is no constant tensor.
        """
        source = self.constant_source(name)
        # Only a tensor has bytes that another type can read.
        if isinstance(source, onnx.NodeProto):
            source = (
                source.attribute[0].t if source.attribute and source.attribute[0].name == "value" else None
            )
        if source is None:
            return None
        view = TensorProto.FromString(source.SerializeToString())
        if view.data_location != TensorProto.EXTERNAL and not view.HasField("raw_data"):
            view = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(source))
        view.data_type = dtype
        del view.dims[:]
        view.dims.extend(dims)
        return self._added_once((f"{name} {dtype}", dims, b""), view, hint)

    def add_packed(self, data: bytes, dtype: int, dims: tuple[int, ...], hint: str) -> str:
        """Add a constant of these bytes, as a TensorProto holds them raw, and return its name."""
        tensor = TensorProto(data_type=dtype, dims=dims, raw_data=data)
        return self._added_once((f"packed {dtype}", dims, data), tensor, hint)

    def _added_once(self, key: tuple[str, tuple[int, ...], bytes], tensor: TensorProto, hint: str) -> str:
        """Add a tensor under a fresh name, with its type, if none of this key was added before; return the name."""
        if key not in self._shared:
            self._shared[key] = tensor.name = self.names.fresh(hint)
            self.add_tensor(tensor)
            self.record_type(tensor.name, ValueType(tensor.data_type, key[1]))
        return self._shared[key]

    def add_tensor(self, tensor: TensorProto) -> None:
        """Add a constant with a name of its own to the body."""
        name = tensor.name
        if self.function is None and isinstance(self.body, onnx.GraphProto) and self.may_add_initializers:
            self.body.initializer.append(tensor)
            self._table()[name] = self.body.initializer[-1]
        else:
            node = onnx.helper.make_node("Constant", [], [name], name=self.names.fresh(f"{name}_constant"))
            node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(tensor)
            self.leading_constants.append(node)
            self._table()[name] = node

    @property
    def added_constants(self) -> frozenset[str]:
        """The names of the constants that `add_constant` has added."""
        return frozenset(self._shared.values())

    def register(self, node: onnx.NodeProto) -> None:
        """Include a node that was written after the scope was created in the lookups of constants and of names read."""
        if _is_constant(node):
            self._table()[node.output[0]] = node
        self._written.append(node)

    @cached_property
    def makers(self) -> dict[str, onnx.NodeProto]:
        """The nodes of the body by the names of their outputs, at the time of the first access."""
        return producers(self.body)

    def is_read(self, name: str) -> bool:
        """Return whether a node of the body or of its sub-graphs reads a value, or it is an output of one of these.

        The answer may be outdated for a value that nodes read before the rewrite.
        """
        if self._reads is None:
            self._reads = set()
            for _, body in nested_bodies(self.body):
                self._reads.update(output_names(body))
                self._reads.update(chain.from_iterable(inputs_of_each(body.node)))
        self._reads.update(chain.from_iterable(inputs_of_each(self._written)))
        self._written.clear()
        return name in self._reads

    def _table(self) -> dict[str, TensorProto | onnx.NodeProto]:
        if self._constants is None:
            # Constants are looked up by their output.
            self._constants = {node.output[0]: node for node in self.body.node if _is_constant(node)}
            if isinstance(self.body, onnx.GraphProto):
                overridable = (
                    # A caller may replace such an initializer.
                    {value.name for value in self.body.input} if self.inputs_override_initializers else set()
                )
                for tensor in self.body.initializer:
                    if tensor.name not in overridable:
                        self._constants[tensor.name] = tensor
        return self._constants


def scopes(
    proto: onnx.ModelProto, weights: Weights, *, result_ir_version: int, types: TypeTable | None = None
) -> list[Scope]:
    """Return the scopes of a model's main graph and of its local functions; they share one set of names.

    `result_ir_version` is the IR version that the model will have after the rewrite. `types` defaults to the types of
    the model.
    """
    shared = Names(proto), types or TypeTable(proto), weights, proto.ir_version >= 4, result_ir_version >= 4
    functions = (
        Scope(function, function_path(function), *shared, function=function_key(function))
        for function in proto.functions
    )
    return [Scope(proto.graph, "graph", *shared), *functions]


def _is_constant(node: onnx.NodeProto) -> bool:
    if node.op_type not in ("Constant", "Identity") or not is_onnx(node.domain) or len(node.output) != 1:
        return False
    if node.op_type == "Identity":
        return len(node.input) == 1
    return not any(attribute.ref_attr_name for attribute in node.attribute)


def _constant_value(node: onnx.NodeProto, weights: Weights) -> np.ndarray[Any, Any] | None:
    """Return the array of a Constant node; None for sparse, string and referred attributes (Constant-12 has all the forms)."""
    import numpy as np

    # The value is known only at the call.
    if len(node.attribute) != 1 or node.attribute[0].ref_attr_name:
        return None
    attribute = node.attribute[0]
    if attribute.name == "value":
        return weights.array(attribute.t) if attribute.type == AttributeProto.TENSOR else None
    if attribute.name in ("value_float", "value_floats"):
        return np.array(onnx.helper.get_attribute_value(attribute), np.float32)
    if attribute.name in ("value_int", "value_ints"):
        return np.array(onnx.helper.get_attribute_value(attribute), np.int64)
    return None
