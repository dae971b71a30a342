"""Types and shapes of all values of a model, inferred by onnx before the model is rewritten."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

import onnx
from onnx import AttributeProto

from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes, skeleton
from onnx_migrate.facts.shapes import InferredOutputs, contradict, dims_of, forget_output_shapes, set_dims
from onnx_migrate.model.graphs import (
    BodyKey,
    FunctionKey,
    bodies,
    called,
    function_key,
    initializer_types,
    inputs_of_each,
    nested_bodies,
    nested_nodes,
)
from onnx_migrate.standard.element_types import type_text
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.unlisted_operators import substitute_for_inference

__all__ = ["MOST_AXES", "TypeTable", "ValueType", "value_type_of"]


@dataclass(frozen=True)
class ValueType:
    """The known part of a tensor's type: element type (a TensorProto.DataType) and shape; None if it is unknown.

    A dim is an int, or None if it is symbolic or unknown; the shape is None if the rank is unknown.
    """

    dtype: int | None = None
    shape: tuple[int | None, ...] | None = None
    container: str = ""
    """Of a sequence or an optional, the type as schemas write it, such as "seq(tensor(float))"; the rest is unknown."""
    symbols: tuple[str, ...] = ()
    """The name of each symbolic dim, "" for all others; empty if no dim has a name."""

    @property
    def rank(self) -> int | None:
        """The number of axes; None means unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def size(self) -> int | None:
        """The number of elements; None if that is unknown."""
        return None if self.shape is None or None in self.shape else prod(dim or 0 for dim in self.shape)

    def meet(self, other: ValueType) -> ValueType:
        """Return the facts that hold for a value that may be of either type."""
        # Sequences have no dims that could be merged.
        if self.container or other.container:
            return self if self == other else UNKNOWN
        dtype = self.dtype if self.dtype == other.dtype else None
        if self.shape is None or other.shape is None or len(self.shape) != len(other.shape):
            # Shapes of different ranks have no common dims.
            return ValueType(dtype, None)
        dims = tuple(a if a == b else None for a, b in zip(self.shape, other.shape, strict=True))
        symbols = (self.symbols or ("",) * len(dims), other.symbols or ("",) * len(dims))
        return ValueType(
            dtype, dims, symbols=_named(a if a == b else "" for a, b in zip(*symbols, strict=True))
        )


UNKNOWN = ValueType()
_NOTHING: dict[str, ValueType] = {}

MOST_AXES = 256
"""The most axes of a shape in the table. No runtime has tensors with more: ONNX Runtime and NumPy support 64."""


class TypeTable:
    """The types of a model's values at the time when the table was created.

    Inference runs once, at the first lookup. It runs in the body of a local function for the types of each call. If two
    calls disagree, the table keeps the part that they have in common.
    """

    def __init__(self, proto: onnx.ModelProto) -> None:
        self._proto: onnx.ModelProto | None = skeleton(proto)
        self.outputs: InferredOutputs | None = None
        """The dims of the outputs, where inference has run, and nothing but inputs and outputs is declared."""
        self._declares_inner = False
        # Operators that onnx has removed are replaced, so that it infers the types of what reads their outputs.
        for located in bodies(self._proto):
            self._declares_inner |= bool(located.key or located.body.value_info)
            opset = onnx_opset(located.owner.opset_import, ir_version=proto.ir_version)
            if opset is not None:
                substitute_for_inference(located.body.node, opset)
        self._functions: dict[FunctionKey, onnx.FunctionProto] = {}
        self._tables: dict[tuple[FunctionKey | None, BodyKey], dict[str, ValueType]] = {}

    def lookup(self, function: FunctionKey | None, body: BodyKey, name: str) -> ValueType:
        """Return the type of a value that is visible in `body` of the main graph (None) or of a function."""
        if self._proto is not None:
            proto, self._proto = self._proto, None
            # Inference is expensive, so it runs only when a caller needs the first type.
            self._infer(proto)
        while True:
            recorded_type = self._tables.get((function, body), _NOTHING).get(name)
            if recorded_type is not None or not body:
                return recorded_type or UNKNOWN
            # A body's key grows by node, attribute and index for each level, so this is the key of the
            # enclosing body.
            body = body[:-3]

    def record(self, function: FunctionKey | None, body: BodyKey, name: str, known: ValueType) -> None:
        """Enter the type of a value that a rewrite has added to a body; ignore the empty name of an omitted output."""
        if not name:
            return
        self.lookup(function, body, name)  # infer first: a later inference would overwrite the entry
        self._tables.setdefault((function, body), {})[name] = known

    def _infer(self, proto: onnx.ModelProto) -> None:
        self._functions = {function_key(function): function for function in proto.functions}
        self._ir_version = proto.ir_version
        inferred = _infer_shapes(proto) if self._declares_inner else self._infer_outputs(proto)
        self._collect(None, inferred.graph)
        seen: set[tuple[FunctionKey, bytes]] = set()
        queue = list(self._calls(inferred.graph))
        while queue:
            key, argument_types, attributes = queue.pop()
            signature = (
                key,
                b"".join(value.SerializeToString() + b"\0" for value in argument_types)
                + repr(attributes).encode(),
                # Calls with the same types and attributes give the same result, and recursion must end.
            )
            # Attributes belong to the signature, because onnx may infer shapes from them.
            if signature in seen:
                continue
            seen.add(signature)
            graph = _infer_shapes(self._instance(key, argument_types, attributes)).graph
            self._collect(key, graph)
            queue.extend(self._calls(graph))

    def _infer_outputs(self, proto: onnx.ModelProto) -> onnx.ModelProto:
        """Infer a model of one graph, first without the shapes that its outputs declare."""
        declared = onnx.GraphProto(output=proto.graph.output)
        # onnx believes a declared output shape, even a wrong one, so the first inference runs without them.
        forget_output_shapes(proto.graph)
        try:
            inferred = infer_shapes(proto)
        except InferenceError:
            return proto
        finally:
            del proto.graph.output[:]
            proto.graph.output.extend(declared.output)
        self.outputs = InferredOutputs.of(inferred.graph)
        unknown = {value.name for value in declared.output if not self.outputs.includes(value)}
        if unknown and not unknown.isdisjoint(chain.from_iterable(inputs_of_each(proto.graph.node))):
            return _infer_shapes(proto)  # nodes that read these outputs need the declared types
        for value, declaration in zip(inferred.graph.output, declared.output, strict=True):
            _believe(value, declaration)
        return inferred

    def _collect(self, function: FunctionKey | None, main: onnx.GraphProto) -> None:
        seen: dict[bytes, ValueType] = {}
        for position, graph in _graphs(main):
            graph_types: dict[str, ValueType] = {}
            for value in (*graph.input, *graph.output, *graph.value_info):
                key = value.type.SerializeToString()  # many values share a type, and parsing it costs more
                if key not in seen:
                    seen[key] = value_type_of(value.type)
                graph_types[value.name] = seen[key]
            for name, dtype, dims in initializer_types(graph):
                graph_types[name] = ValueType(dtype, dims)
            graph_types.pop("", None)  # onnxsim declares the outputs that a node leaves out
            table = self._tables.setdefault((function, position), {})
            for name, value_type in graph_types.items():
                table[name] = table[name].meet(value_type) if name in table else value_type

    def _calls(
        self, main: onnx.GraphProto
    ) -> Iterator[tuple[FunctionKey, list[onnx.TypeProto], list[AttributeProto]]]:
        if not self._functions:
            return
        visible: dict[BodyKey, ChainMap[str, onnx.TypeProto]] = {}
        for position, graph in _graphs(main):
            own = {value.name: value.type for value in (*graph.input, *graph.output, *graph.value_info)}
            for name, dtype, dims in initializer_types(graph):
                own[name] = onnx.helper.make_tensor_type_proto(dtype, dims)
            own.pop("", None)
            # A sub-graph sees the values of the bodies around it.
            outer = visible[position[:-3]] if position else ChainMap[str, onnx.TypeProto]()
            types = visible[position] = outer.new_child(own)
            for node in graph.node:
                key = called(node)
                if key in self._functions:
                    argument_types = [types.get(name, onnx.TypeProto()) for name in node.input]
                    yield key, argument_types, list(node.attribute)

    def _instance(
        self, key: FunctionKey, given: list[onnx.TypeProto], attributes: list[AttributeProto]
    ) -> onnx.ModelProto:
        """Return a model whose main graph is a function's body, with the types and attributes of one call."""
        function = self._functions[key]
        model = onnx.ModelProto(ir_version=self._ir_version)
        model.opset_import.extend(function.opset_import)
        model.functions.extend(self._callees(key))
        model.graph.name = function.name
        for name, type_ in zip(function.input, given, strict=False):
            model.graph.input.add(name=name).type.CopyFrom(type_)
        model.graph.node.extend(function.node)
        # Attributes of the call replace the defaults.
        bound = {attribute.name: attribute for attribute in (*function.attribute_proto, *attributes)}
        _bind(model.graph.node, bound)
        for name in function.output:
            model.graph.output.add(name=name)
        return model

    def _callees(self, key: FunctionKey) -> list[onnx.FunctionProto]:
        callees: dict[FunctionKey, onnx.FunctionProto] = {}
        queue = [key]
        while queue:
            for node in self._functions[queue.pop()].node:
                callee = called(node)
                if callee in self._functions and callee not in callees:
                    callees[callee] = self._functions[callee]
                    queue.append(callee)
        return list(callees.values())


def _believe(value: onnx.ValueInfoProto, declared: onnx.ValueInfoProto) -> None:
    """Complete the inferred dims of an output by those declared, as onnx does: it believes these where the two contradict."""
    own, inferred_dims = dims_of(declared), dims_of(value)
    if own is not None and (inferred_dims is None or contradict(own, inferred_dims)):
        value.CopyFrom(declared)
    elif own is not None and inferred_dims is not None:
        pairs = zip(own, inferred_dims, strict=True)
        set_dims(value, tuple(b if isinstance(b, int) or a is None else a for a, b in pairs))


def _infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    try:
        return infer_shapes(proto)
    except InferenceError:
        # All types are unknown then; an adapter that needs one raises CannotMigrate for its node.
        return proto


def _graphs(main: onnx.GraphProto) -> Iterator[tuple[BodyKey, onnx.GraphProto]]:
    """Yield a graph and its sub-graphs with their keys."""
    for position, body in nested_bodies(main):
        if isinstance(body, onnx.GraphProto):
            yield position, body


def value_type_of(type_: onnx.TypeProto) -> ValueType:
    """Return the known facts about a value's type: none for a sparse tensor, and no shape of more than MOST_AXES axes."""
    if type_.WhichOneof("value") != "tensor_type":
        return ValueType(container=_text(type_))
    tensor = type_.tensor_type
    shape = None
    if tensor.HasField("shape"):
        if len(tensor.shape.dim) > MOST_AXES:
            return ValueType(tensor.elem_type or None)
        shape = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim)
    return ValueType(
        tensor.elem_type or None, shape, symbols=_named(dim.dim_param for dim in tensor.shape.dim)
    )


def _named(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of dims; an empty result if no dim has one."""
    dim_names = tuple(names)
    return dim_names if any(dim_names) else ()


def _text(type_: onnx.TypeProto) -> str:
    """Return a type as schemas write it, "" for one that is not known in full or is sparse."""
    kind = type_.WhichOneof("value")
    if kind == "map_type":
        key, value = type_.map_type.key_type, _text(type_.map_type.value_type)
        named = (
            onnx.TensorProto.DataType.Name(key).lower() if key in onnx.TensorProto.DataType.values() else ""
        )
        return f"map({named},{value})" if named and value else ""
    if kind == "tensor_type":
        dtype = type_.tensor_type.elem_type
        return type_text(dtype) if dtype and dtype in onnx.TensorProto.DataType.values() else ""
    if kind in ("sequence_type", "optional_type"):
        inner = _text(getattr(type_, kind).elem_type)
        name = "seq" if kind == "sequence_type" else "optional"
        return f"{name}({inner})" if inner else ""
    return ""


def _bind(nodes: Sequence[onnx.NodeProto], bound: dict[str, AttributeProto]) -> None:
    """Replace references to a function's attributes by their values, in place, in sub-graphs too; remove unbound ones."""
    for node in nested_nodes(nodes):
        # From the end, because the loop removes entries.
        for index in range(len(node.attribute) - 1, -1, -1):
            attribute = node.attribute[index]
            if attribute.ref_attr_name:
                name, value = attribute.name, bound.get(attribute.ref_attr_name)
                if value is None:
                    # An attribute without a value has its default.
                    del node.attribute[index]
                else:
                    attribute.CopyFrom(value)
                    attribute.name = name
