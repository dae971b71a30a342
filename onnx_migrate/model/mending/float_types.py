"""Repairs models in which a converter to float16 left two floating-point types at an operator that supports one.

    m = Mul(a: float, k: float16)        m = Mul(Cast<to = float16>(a), k)

No runtime loads such a model. The types of values follow from inputs, initializers and attributes along the nodes. This
module removes each `value_info` that contradicts them.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping, Sequence

import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.messages import count_and_verb, count_of
from onnx_migrate.model.graphs import initializer_types, nested_bodies, node_label, subgraphs
from onnx_migrate.model.mending.tensors import Mending
from onnx_migrate.model.names import Names
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.model.validity.node_types import stated_type, type_faults
from onnx_migrate.standard.element_types import type_text
from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.retyping import FLOATS, known_constraints
from onnx_migrate.standard.schema import is_onnx, signature_at

__all__ = ["mend_float_types"]

_SMALL = 256
"""The most bytes of an initializer that is stored in a second type instead of cast."""

_WIDE = type_text(TensorProto.FLOAT)

_KINDS: dict[str, int] = {type_text(kind): kind for kind in FLOATS}

_NARROW = tuple(text for text in _KINDS if text != _WIDE)

Types = MutableMapping[str, str | None]


def mend_float_types(proto: onnx.ModelProto) -> list[Mending]:
    """Add Casts where floating-point types contradict, in place, and remove wrong `value_info`; return the repairs.

    Sorts the nodes first, as types follow their order. Changes nothing if no types contradict.
    """
    sort_model(proto)
    if next(type_faults(proto), None) is None:
        return []
    mender = _Mender(proto)
    mender.main(proto.graph)
    return mender.done


class _Mender:
    def __init__(self, proto: onnx.ModelProto) -> None:
        self._proto, self._names = proto, Names(proto)
        self._opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version) or 1
        self._casts: dict[str, int] = {}
        self._removed = 0

    @property
    def done(self) -> list[Mending]:
        """The repairs, as sentences."""
        repairs = []
        if self._casts:
            first, count = next(iter(self._casts)), sum(self._casts.values())
            repairs.append(
                Mending(
                    first,
                    f"floating-point types contradict each other: {count_and_verb(count, 'value', 'were')} cast, the first"
                    f" of them for {first!r}",
                )
            )
        if self._removed:
            names = count_of(self._removed, "value")
            repairs.append(
                Mending(
                    "value_info",
                    f"the declared types of {names} are not those that nodes give out, or that are stored",
                )
            )
        return repairs

    def main(self, graph: onnx.GraphProto) -> None:
        """Repair the main graph; its inputs and outputs keep their types."""
        wanted = [self._declared_type(value) for value in graph.output]
        self._body(graph, {}, (), wanted)

    def _body(
        self, graph: onnx.GraphProto, outer: Types, given: Sequence[str | None], wanted: Sequence[str | None]
    ) -> list[str | None]:
        """Repair a body, and return the types of its outputs: those that are `wanted`; None means any."""
        types: Types = ChainMap({}, *(outer.maps if isinstance(outer, ChainMap) else [outer]))
        for value, kind in zip(graph.input, (*given, *[None] * len(graph.input)), strict=False):
            types[value.name] = self._declared_type(value)
            if kind in _KINDS and types[value.name] in _KINDS:
                types[value.name] = kind
                value.type.tensor_type.elem_type = _KINDS[kind]
        stored = {name: kind for name, kind, _ in initializer_types(graph)}
        types.update((name, type_text(kind)) for name, kind in stored.items())
        # A listed initializer and its input must have one type.
        for value in graph.input:
            if value.name in stored and self._declared_type(value) in _KINDS and stored[value.name] in FLOATS:
                self._redeclare(value, stored[value.name])
        constants = set(stored)
        nodes, cast_names = list(graph.node), dict[tuple[str, str], str]()
        # The nodes come back one by one, with Casts between them.
        del graph.node[:]
        declared = {value.name: self._declared_type(value) for value in graph.value_info}
        for node in nodes:
            if node.op_type == "Constant":
                constants.update(node.output)
            outputs = self._node(node, graph, types, constants, cast_names)
            types.update(
                (name, kind or declared.get(name)) for name, kind in zip(node.output, outputs, strict=True)
            )
        self._declare(graph, types)
        return [
            self._output(graph, value, types, kind) for value, kind in zip(graph.output, wanted, strict=True)
        ]

    def _node(
        self,
        node: onnx.NodeProto,
        graph: onnx.GraphProto,
        types: Types,
        constants: set[str],
        cast_names: dict[tuple[str, str], str],
    ) -> Sequence[str | None]:
        """Cast the inputs of a node as its operator wants them, and return the types of its outputs."""
        # An input without a known type limits nothing.
        kinds = [types.get(name) if name else None for name in node.input]
        outputs: Sequence[str | None] = [None] * len(node.output)
        # The outputs of these nodes follow from their sub-graphs.
        if any(subgraphs(node)):
            outputs = self._inside(node, types, kinds)
        else:
            for input_index, kind in self._fitting(node, kinds, constants).items():
                node.input[input_index] = self._cast(node, node.input[input_index], kind, graph, cast_names)
                kinds[input_index] = kind
            outputs = self._made(node, kinds)
        graph.node.append(node)
        return outputs

    def _cast(
        self,
        node: onnx.NodeProto,
        name: str,
        kind: str,
        graph: onnx.GraphProto,
        cast_names: dict[tuple[str, str], str],
    ) -> str:
        # One Cast of a value serves all nodes that need it.
        if (name, kind) not in cast_names:
            cast_name = cast_names[name, kind] = self._names.fresh(f"{name}_{kind[7:-1]}")
            # A constant is stored once more in the other type, so no Cast runs.
            twin = _twin(graph, name, cast_name, _KINDS[kind])
            if twin is not None:
                graph.initializer.append(twin)
                self._count(node_label(node))
                return cast_name
            label = self._names.fresh(f"{cast_name}_cast")
            graph.node.append(helper.make_node("Cast", [name], [cast_name], label, to=_KINDS[kind]))
            self._count(node_label(node))
        return cast_names[name, kind]

    def _count(self, label: str) -> None:
        self._casts[label] = self._casts.get(label, 0) + 1

    def _fitting(
        self, node: onnx.NodeProto, kinds: Sequence[str | None], constants: set[str]
    ) -> dict[int, str]:
        """Return the inputs that are to be of another floating-point type, with that."""
        operator_constraints = known_constraints(*self._operator(node))
        groups: dict[str, list[int]] = {}
        for index, kind in enumerate(kinds):
            formal = (
                operator_constraints.formal(index, output=False)
                if operator_constraints is not None and kind in _KINDS
                else None
            )
            if formal is not None:
                groups.setdefault(formal.variable if formal.alike else f"{index}", []).append(index)
        changes: dict[int, str] = {}
        for indices in groups.values():
            allowed = (
                [operator_constraints.formal(index, output=False) for index in indices]
                if operator_constraints
                else []
            )
            # One type variable has one type for all its inputs.
            common = frozenset(_KINDS).intersection(*(formal.allowed for formal in allowed if formal))
            constant_by_kind = {
                kinds[index]: node.input[index] in constants
                # Constants come last, because a computed value should keep its type.
                for index in sorted(indices, key=lambda at: node.input[at] in constants)
            }
            kind = _chosen(constant_by_kind, common)
            changes.update({index: kind for index in indices if kind and kinds[index] != kind})
        return changes

    def _made(self, node: onnx.NodeProto, kinds: Sequence[str | None]) -> list[str | None]:
        """Return the types of a node's outputs, None for one that does not follow from its inputs and attributes."""
        operator_constraints = known_constraints(*self._operator(node))
        bound: dict[str, str] = {}
        for index, kind in enumerate(kinds):
            formal = (
                operator_constraints.formal(index, output=False) if operator_constraints is not None else None
            )
            if formal is not None and kind and formal.alike:
                bound.setdefault(formal.variable, kind)
        outputs: list[str | None] = []
        for index in range(len(node.output)):
            formal = (
                operator_constraints.formal(index, output=True) if operator_constraints is not None else None
            )
            # An operator that gives one type alone needs no input to tell it.
            only = next(iter(formal.allowed)) if formal is not None and len(formal.allowed) == 1 else None
            outputs.append(bound.get(formal.variable, only) if formal is not None and formal.alike else None)
        stated = stated_type(node, tuple(kinds)) if is_onnx(node.domain) else None
        # An attribute such as Cast's `to` states the type of the first output only.
        return [stated, *outputs[1:]] if stated and outputs else outputs

    def _operator(self, node: onnx.NodeProto) -> tuple[str, str, int]:
        domain = "" if is_onnx(node.domain) else node.domain
        opset = imported(self._proto.opset_import, domain) if domain else self._opset
        form = signature_at(domain, node.op_type, opset or 1)
        return domain, node.op_type, form.since_version if form is not None else 1

    # Sub-graphs

    def _inside(self, node: onnx.NodeProto, types: Types, kinds: Sequence[str | None]) -> list[str | None]:
        """Repair the sub-graphs of a node, so that their outputs fit it; return the types of the node's outputs."""
        outputs: list[str | None] = [None] * len(node.output)
        for _, _, graph in subgraphs(node):
            count = len(graph.output)
            if node.op_type == "Loop":
                # A Loop's body reads the counter and the condition before its carried values, and returns the
                # condition first.
                carried = list(kinds[2:])
                wanted: list[str | None] = [None, *carried, *[None] * (count - 1 - len(carried))]
                passed_types: Sequence[str | None] = (None, None, *carried)
                outputs = self._body(graph, types, passed_types, wanted)[1:]
            elif node.op_type == "Scan" and self._opset >= 9:
                scanned = next(
                    (attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0
                )
                carried = list(kinds[: len(kinds) - scanned])
                wanted = [*carried, *[None] * (count - len(carried))]
                outputs = self._body(graph, types, kinds, wanted)
            else:
                # The second branch of an If must fit the first one.
                wanted = outputs if len(outputs) == count else [None] * count
                outputs = self._body(graph, types, (), wanted)
        return outputs if len(outputs) == len(node.output) else [None] * len(node.output)

    def _output(
        self, graph: onnx.GraphProto, value: onnx.ValueInfoProto, types: Types, wanted: str | None
    ) -> str | None:
        """Cast an output of a body to the type that is wanted, and declare it so; return the type."""
        kind = types.get(value.name) or self._declared_type(value)
        if kind not in _KINDS:
            return kind
        if wanted in _KINDS and wanted != kind:
            self._cast_output(graph, value, wanted)
            kind = wanted
        value.type.tensor_type.elem_type = _KINDS[kind]
        return kind

    def _cast_output(self, graph: onnx.GraphProto, value: onnx.ValueInfoProto, kind: str) -> None:
        own, cast_name = value.name, self._names.fresh(f"{value.name}_{kind[7:-1]}")
        # The label is that of the output, because no node asks for this Cast.
        self._count(own)
        # The graph's output keeps its name; the value inside gets the new one.
        if any(own in node.output for node in graph.node):
            for _, body in nested_bodies(graph):
                for node in body.node:
                    for names in (node.input, node.output):
                        names[:] = [cast_name if name == own else name for name in names]
            own, cast_name = cast_name, own
        graph.node.append(
            helper.make_node(
                "Cast", [own], [cast_name], self._names.fresh(f"{cast_name}_cast"), to=_KINDS[kind]
            )
        )
        value.name = cast_name

    def _redeclare(self, value: onnx.ValueInfoProto, kind: int) -> None:
        """Declare an input of the type of its initializer."""
        self._removed += value.type.tensor_type.elem_type != kind
        value.type.tensor_type.elem_type = kind

    def _declare(self, graph: onnx.GraphProto, types: Types) -> None:
        """Remove declarations of inner values that contradict their types."""
        wrong = [
            value
            for value in graph.value_info
            if types.get(value.name) not in (None, self._declared_type(value))
        ]
        self._removed += len(wrong)
        for value in wrong:
            graph.value_info.remove(value)

    @staticmethod
    def _declared_type(value: onnx.ValueInfoProto) -> str | None:
        kind = value.type.tensor_type.elem_type if value.type.WhichOneof("value") == "tensor_type" else 0
        return type_text(kind) if kind else None


def _twin(graph: onnx.GraphProto, name: str, made: str, kind: int) -> TensorProto | None:
    """Return a small initializer in another type, under another name: some operators, as Resize, want constants."""
    listed = {value.name for value in graph.input}
    for tensor in graph.initializer:
        inline = tensor.data_location != TensorProto.EXTERNAL and tensor.ByteSize() <= _SMALL
        if tensor.name == name and name not in listed and inline:
            numbers = numpy_helper.to_array(tensor)
            return numpy_helper.from_array(numbers.astype(helper.tensor_dtype_to_np_dtype(kind)), made)
    return None


def _chosen(given: dict[str | None, bool], allowed: frozenset[str]) -> str | None:
    """Return the type for all inputs of a node that have these types; None if no input needs a Cast.

    `given` says for each type whether a constant has it. The result is a narrow type, as the converter meant, with two
    exceptions. A float32 constant makes it float32 unless a constant is narrow too, as a narrow type may not hold its
    numbers. It is also float32 if no narrow type is allowed.
    """
    if len(given) == 1 and next(iter(given)) in allowed:
        return None
    narrow = next((kind for kind in _NARROW if kind in given and kind in allowed), None)
    if narrow is not None and not (given.get(_WIDE) and not given[narrow]):
        return narrow
    return next((kind for kind in (_WIDE, *_NARROW) if kind in allowed), None)
