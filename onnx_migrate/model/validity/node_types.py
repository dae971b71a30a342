"""Checks that the known types of values agree with the operators that read and produce them.

Element types follow the nodes from declared inputs and initializers by the schemas alone. So the check needs neither
shapes nor onnx's inference, and its cost is linear with a small factor. It judges nodes with the same operator and the
same types once. A type that is not known contradicts nothing.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache
from operator import attrgetter

import onnx
from onnx import AttributeProto, NodeProto, TensorProto

from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import Body, function_path, operator_of, output_names, subgraph_path, subgraphs
from onnx_migrate.model.validity.fault import Fault, where_of
from onnx_migrate.standard.element_types import CONSTANT_TYPES, TYPE_ATTRIBUTES
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import CONTROL_FLOW, is_onnx, signature_at
from onnx_migrate.standard.type_constraints import judge

__all__ = ["constant_faults", "constant_type", "stated_type", "type_faults", "type_text"]

_DEFAULT_TYPE = {
    "BlackmanWindow": TensorProto.FLOAT,
    "ConstantOfShape": TensorProto.FLOAT,
    "HammingWindow": TensorProto.FLOAT,
    "HannWindow": TensorProto.FLOAT,
    "MelWeightMatrix": TensorProto.FLOAT,
    "Multinomial": TensorProto.INT32,
    "RandomNormal": TensorProto.FLOAT,
    "RandomUniform": TensorProto.FLOAT,
}
_LIKE_INPUT = frozenset(("Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"))
_WITH_BODIES = frozenset((*CONTROL_FLOW, "SequenceMap"))
_TYPED = frozenset((*_DEFAULT_TYPE, *_LIKE_INPUT, "BitCast", "Cast", "Constant"))
"""Operators of ai.onnx with an attribute that sets the type of the output."""

Types = MutableMapping[str, str | None]

_name = attrgetter("name")


def type_faults(proto: onnx.ModelProto) -> Iterator[Fault]:
    """Yield a fault, code `type-mismatch`, for each node with types that its operator does not support."""
    yield from _Typing(proto.opset_import, proto.ir_version).run(proto.graph, "graph")
    for function in proto.functions:
        yield from _Typing(function.opset_import, proto.ir_version).run(function, function_path(function))


@cache
def _tensor(dtype: int) -> str | None:
    is_defined = dtype in TensorProto.DataType.values() and dtype
    return f"tensor({TensorProto.DataType.Name(dtype).lower()})" if is_defined else None


def type_text(type_: onnx.TypeProto) -> str | None:
    """Return a type as onnx.defs writes it; None if it is not known completely."""
    kind = type_.WhichOneof("value")
    if kind == "tensor_type":
        return _tensor(type_.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        inner = _tensor(type_.sparse_tensor_type.elem_type)
        return f"sparse_{inner}" if inner else None
    if kind == "map_type":
        key, value = _tensor(type_.map_type.key_type), type_text(type_.map_type.value_type)
        if not key or not value:
            return None
        # onnx.defs writes map(int64, float), with no "tensor" for the values.
        return f"map({key[7:-1]}, {value[7:-1] if value.startswith('tensor(') else value})"
    if kind in ("sequence_type", "optional_type"):
        inner = type_text(getattr(type_, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})" if inner else None
    return None


def constant_type(node: NodeProto) -> str | None:
    """Return the type of the value of a Constant; None if that is not known."""
    return stated_type(node, ())


def constant_faults(graph: onnx.GraphProto, path: str) -> Iterator[Fault]:
    """Yield a fault for each value of a Constant that the graph declares as another type."""
    constants = [node for node in graph.node if node.op_type == "Constant" and node.output]
    producers = {node.output[0]: node for node in constants}
    # Both may declare the value of a Constant.
    for values in (graph.value_info, graph.output):
        for index, name in enumerate(map(_name, values)):
            if name in producers:
                own, declared = constant_type(producers[name]), type_text(values[index].type)
                if own and declared and own != declared:
                    yield _contradiction(producers[name], path, own, declared)


def _contradiction(node: NodeProto, path: str, own: str, declared: str) -> Fault:
    reason = f"it outputs {own}, and {node.output[0]!r} is declared as {declared}"
    return Fault(code="type-mismatch", reason=reason, where=where_of(path, node))


class _Typing:
    """The types of the values of one main graph or function, and of the sub-graphs in it."""

    def __init__(self, imports: Sequence[onnx.OperatorSetIdProto], ir_version: int) -> None:
        self._opsets = {entry.domain: entry.version for entry in imports if not is_onnx(entry.domain)}
        opset = onnx_opset(imports, ir_version=ir_version)
        if opset is not None:
            self._opsets[""] = self._opsets["ai.onnx"] = opset
        self._versions: dict[tuple[str, str], int | None] = {}
        self._of_type: dict[bytes, str | None] = {}
        self._faults: list[Fault] = []

    def run(self, body: Body, path: str) -> Iterator[Fault]:
        """Yield the faults of a body and of the sub-graphs in it."""
        self._body(body, path, {}, ())
        yield from self._faults

    def _body(self, body: Body, path: str, types: Types, given: Sequence[str | None]) -> list[str | None]:
        """Enter the types of a body's values in `types`, and return those of its outputs.

        `given` are the types of the values that a caller passes, for inputs without a declared type.
        """
        if isinstance(body, onnx.GraphProto):
            self._declared(body, path, types, given)
        versions, type_of = self._versions, types.get
        for node, key in zip(body.node, map(operator_of, body.node), strict=True):
            domain, operator = key
            if key not in versions:
                versions[key] = self._version(domain, operator)
            version = versions[key]
            # The operator has no known signature; its sub-graphs are checked all the same.
            if version is None:
                for attribute, graph_index, graph in subgraphs(node):
                    self._inner(graph, subgraph_path(path, node, attribute, graph_index), types, ())
                continue
            names = node.output[:]
            inputs, outputs = tuple(map(type_of, node.input[:])), tuple(map(type_of, names))
            if operator in _TYPED:
                outputs = self._typed(node, path, inputs, outputs)
            elif operator in _WITH_BODIES and node.attribute:
                outputs = self._control_flow(node, path, types, inputs, outputs)
            complaint, derived = judge(domain, operator, version, inputs, outputs)
            if complaint:
                self._faults.append(
                    Fault(code="type-mismatch", reason=f"it {complaint}", where=where_of(path, node))
                )
            for name, type_ in zip(names, derived, strict=True):
                # An omitted output has no type.
                if type_ and name:
                    types[name] = type_
        return [types.get(name) for name in output_names(body)]

    def _version(self, domain: str, operator: str) -> int | None:
        opset = self._opsets.get(domain)
        form = signature_at(domain, operator, opset) if opset is not None else None
        return form.since_version if form else None

    def _declared(self, graph: onnx.GraphProto, path: str, types: Types, given: Sequence[str | None]) -> None:
        for values in (graph.value_info, graph.output, graph.input):
            for value in values:
                key = value.type.SerializeToString()
                if key not in self._of_type:
                    self._of_type[key] = type_text(value.type)
                types[value.name] = self._of_type[key]
        for value, passed_type in zip(graph.input, given, strict=False):
            types[value.name] = types[value.name] or passed_type
        listed = {value.name for value in graph.input}
        constants = [(tensor.name, tensor.data_type) for tensor in graph.initializer]
        constants += [(sparse.values.name, sparse.values.data_type) for sparse in graph.sparse_initializer]
        for name, dtype in constants:
            own = _tensor(dtype)
            declared = types.get(name) if name in listed else None
            if own and declared and own != declared:
                self._faults.append(
                    Fault(
                        code="type-mismatch",
                        reason=f"the input is declared as {declared}, and its initializer is {own}",
                        where=Where(path, name),
                    )
                )
            types[name] = own
        types[""] = None  # omitted inputs have no type, even if the model declares one for the empty name

    def _inner(
        self, graph: onnx.GraphProto, path: str, types: Types, given: Sequence[str | None]
    ) -> list[str | None]:
        maps = types.maps if isinstance(types, ChainMap) else [types]
        return self._body(graph, path, ChainMap({}, *maps), given)

    def _control_flow(
        self,
        node: NodeProto,
        path: str,
        types: Types,
        inputs: tuple[str | None, ...],
        outputs: tuple[str | None, ...],
    ) -> tuple[str | None, ...]:
        """Return the types of the outputs of a node with sub-graphs; undeclared types come from the sub-graphs."""
        passed_types: Sequence[str | None] = ()
        branches: list[str | None] = []
        if node.op_type == "Loop":
            passed_types = ("tensor(int64)", "tensor(bool)", *inputs[2:])
        elif node.op_type == "Scan":
            # Scan-8 has the lengths of its sequences as a first input, which its body does not get.
            passed_types = inputs if self._opsets.get("", 0) >= 9 else inputs[1:]
        for attribute, graph_index, graph in subgraphs(node):
            body_types = self._inner(
                graph, subgraph_path(path, node, attribute, graph_index), types, passed_types
            )
            if node.op_type == "Loop":
                # The first output of a Loop's body is the condition, which is no output of the node.
                body_types = body_types[1:]
            if node.op_type == "If":
                self._judge_branch(node, path, body_types, branches)
                branches = branches or body_types
            if node.op_type != "SequenceMap" and len(body_types) == len(outputs):
                outputs = tuple(
                    declared_type or new for declared_type, new in zip(outputs, body_types, strict=True)
                )
        return outputs

    def _judge_branch(
        self, node: NodeProto, path: str, own: Sequence[str | None], other: Sequence[str | None]
    ) -> None:
        """Enter a fault if a branch of an If gives out a tensor of another type than the branch before."""
        for branch_type, two in zip(own, other, strict=False):
            if (
                branch_type
                and two
                and branch_type != two
                and branch_type.startswith("tensor")
                and two.startswith("tensor")
            ):
                reason = f"its branches output {two} and {branch_type}"
                self._faults.append(Fault(code="type-mismatch", reason=reason, where=where_of(path, node)))

    def _typed(
        self, node: NodeProto, path: str, inputs: tuple[str | None, ...], outputs: tuple[str | None, ...]
    ) -> tuple[str | None, ...]:
        """Return the types of the outputs of a node with an attribute that sets the type of the first."""
        own = stated_type(node, inputs)
        if not outputs or own is None:
            return outputs
        if outputs[0] not in (None, own):
            self._faults.append(_contradiction(node, path, own, outputs[0] or ""))
        return (own, *outputs[1:])


def stated_type(node: NodeProto, inputs: tuple[str | None, ...]) -> str | None:
    """Return the type of the first output that attributes of a node, or their defaults, say; None if they say none."""
    for attribute in node.attribute:
        # The type is known only at the call.
        if attribute.ref_attr_name:
            return None
        if attribute.name in TYPE_ATTRIBUTES and attribute.type == AttributeProto.INT:
            return _tensor(attribute.i)
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            return _tensor(attribute.t.data_type)
        if attribute.name == "sparse_value":
            return _tensor(attribute.sparse_tensor.values.data_type)
        if node.op_type == "Constant" and attribute.name in CONSTANT_TYPES:
            return _tensor(CONSTANT_TYPES[attribute.name])
    if node.op_type in _LIKE_INPUT:
        return inputs[0] if inputs else None
    default = _DEFAULT_TYPE.get(node.op_type)
    return None if default is None else _tensor(default)
