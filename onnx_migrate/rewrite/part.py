"""The part of a model between named values, by reference: no weight is read, and none that the part does not read is kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import onnx
from google.protobuf.message import Message
from onnx import helper

from onnx_migrate.cached import cached_property
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.facts.typed_graph import frames_of
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.facts.value_types import TypeTable, ValueType
from onnx_migrate.messages import did_you_mean, listed
from onnx_migrate.model.graphs import (
    bodies,
    fed_inputs,
    function_key,
    initializer_names,
    names_read,
    node_label,
    output_names,
    producers,
    uncalled_functions,
)
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.standard.opsets import onnx_opset

__all__ = ["cut", "named_values", "rest_behind"]


def named_values(asked: str | Iterable[str], proto: onnx.ModelProto) -> tuple[str, ...]:
    """Return the names in texts such as "a,b"; a text that is the name of a value means only that value."""
    values = _Values(proto)
    texts = [asked] if isinstance(asked, str) else list(asked)
    return tuple(
        name
        for text in texts
        for name in ([text] if text in values else filter(None, map(str.strip, text.split(","))))
    )


def cut(model: Model, outputs: Sequence[str] = (), inputs: Sequence[str] = ()) -> Model:
    """Return the part of a model that computes `outputs`, starting at `inputs` if the computation passes through them.

    Both are values of the main graph. Without `outputs`, the part has the model's own outputs that depend on `inputs`. Other
    inputs of the model that the part needs stay. A value that becomes an input or output gets the inferred type. The model
    itself stays unchanged, and the part refers to the same weights.

    Raises UsageError, code `cannot-cut`, for a name that is no computed value, or an input that nothing in the part reads.
    Outputs without inputs are the same error. Raises CannotMigrate, code `untyped-value`, if an element type is unknown.
    """
    part = model.copy()
    graph = part.proto.graph
    # The cut walks the nodes from the end, so they must be in order.
    sort_model(part.proto)
    values = _Values(part.proto)
    ends = _Ends(values, tuple(outputs), tuple(inputs))
    part_nodes, read = _kept(graph, ends.outputs, ends.inputs)
    unread = [name for name in ends.inputs if name not in read]
    if unread:
        raise _refusal(f"no output of the part reads {listed(map(repr, unread))}", _outputs_hint(graph))
    _require_dependent(part_nodes, ends, values)
    # Types come from the whole model, because the part has lost the nodes that tell them.
    names, types = Names(part.proto), _Types(model)
    for node in part_nodes:
        for index, name in enumerate(node.output):
            # The name now belongs to an input of the part, so the node has to write another one.
            if name in ends.inputs:  # another output of the node is needed
                node.output[index] = names.fresh(f"{name}_computed")
    entering = [types.declared(name) for name in ends.inputs]
    entering += [value for value in graph.input if value.name in read and value.name not in ends.inputs]
    leaving = [types.declared(name) for name in ends.outputs]
    inner = {name for node in part_nodes for name in node.output if name} - set(ends.outputs)
    _replace(graph.node, part_nodes)
    _replace(graph.input, entering)
    _replace(graph.output, leaving)
    _replace(graph.initializer, [entry for entry in graph.initializer if entry.name in read])
    _replace(graph.sparse_initializer, [it for it in graph.sparse_initializer if it.values.name in read])
    # Declarations of values outside the part would name no value.
    _replace(graph.value_info, [value for value in graph.value_info if value.name in inner])
    about = inner | read
    _replace(
        graph.quantization_annotation, [it for it in graph.quantization_annotation if it.tensor_name in about]
    )
    # Training information describes the whole model.
    part.proto.ClearField("training_info")
    # The nodes that called them are not in the part.
    uncalled = uncalled_functions(part.proto)
    _replace(
        part.proto.functions, [entry for entry in part.proto.functions if function_key(entry) not in uncalled]
    )
    return part


def rest_behind(model: Model, outputs: Sequence[str]) -> Model:
    """Return the part that computes the model's other outputs from `outputs`, as far as it reads these.

    The part also has the other inputs that it reads: the model's inputs, and nodes that compute values without `outputs`.
    Raises the errors of `cut`, and UsageError if nothing is behind `outputs`.
    """
    sorted_ = model.copy()
    sort_model(sorted_.proto)
    graph = sorted_.proto.graph
    own = [name for name in output_names(graph) if name not in outputs]
    _, read = _kept(graph, own, outputs)
    behind = [name for name in outputs if name in read]
    if not behind:
        raise _refusal(f"nothing is behind {listed(map(repr, outputs))}", _outputs_hint(graph))
    return cut(model, own, behind)


@dataclass(frozen=True)
class _Values:
    """The values of a model's main graph, by where they come from."""

    proto: onnx.ModelProto

    @cached_property
    def fed(self) -> Set[str]:
        return {value.name for value in fed_inputs(self.proto.graph)}

    @cached_property
    def constants(self) -> Set[str]:
        return initializer_names(self.proto.graph)

    @cached_property
    def computed(self) -> Set[str]:
        return producers(self.proto.graph).keys()

    def __contains__(self, name: str) -> bool:
        return name in self.computed or name in self.fed or name in self.constants

    def unknown(self, name: str) -> UsageError:
        """Return the error for a name that is no value of the main graph."""
        for located in bodies(self.proto):
            if located.key and any(name in node.output for node in located.body.node):
                holder = self.proto.graph.node[int(located.key[0])] if located.owner is self.proto else None
                where = f"it is computed inside {located.path}"
                hint = f"name an output of {node_label(holder)!r}, as {holder.output[0]!r}" if holder else ""
                return _refusal(f"{name!r} is no value of the main graph: {where}", hint)
        by_node = {node.name: node.output[0] for node in self.proto.graph.node if node.name and node.output}
        if name in by_node:
            return _refusal(f"{name!r} is a node, and no value", f"its output is {by_node[name]!r}")
        near = did_you_mean(name, self.fed | self.computed)
        return _refusal(f"the model has no value {name!r}", near or _outputs_hint(self.proto.graph))


@dataclass(frozen=True)
class _Ends:
    """The names at which a model is cut, checked. Raises UsageError when it is made."""

    values: _Values
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]

    def __post_init__(self) -> None:
        for names in (self.outputs, self.inputs):
            # Two inputs or outputs of one name are no valid model.
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise _refusal(f"the name {twice!r} occurs twice", "name each value once")
            for name in names:
                if name not in self.values:
                    raise self.values.unknown(name)
                # A constant has no computation that could be cut.
                if name in self.values.constants and name not in self.values.fed:
                    raise _refusal(
                        f"{name!r} is a constant of the model", "name values that nodes compute, or inputs"
                    )
        for name in self.outputs:
            if name in self.values.fed or name in self.inputs:
                role = "an input of the part" if name in self.inputs else "an input of the model"
                raise _refusal(f"the output {name!r} is {role}, so that nothing computes it")
        if not self.outputs:
            object.__setattr__(self, "outputs", self._own_outputs())

    def _own_outputs(self) -> tuple[str, ...]:
        """Return the model's outputs that depend on the given inputs."""
        graph = self.values.proto.graph
        # The nodes are sorted, so one walk finds everything behind the inputs.
        reached = set(self.inputs)
        for node in graph.node:
            if not reached.isdisjoint(names_read(node)):
                reached.update(filter(None, node.output))
        dependent_outputs = tuple(
            name for name in output_names(graph) if name in reached and name not in self.inputs
        )
        if not dependent_outputs:
            raise _refusal(f"no output of the model depends on {listed(map(repr, self.inputs))}")
        return dependent_outputs


def _kept(
    graph: onnx.GraphProto, outputs: Iterable[str], inputs: Iterable[str]
) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes that compute the outputs from the inputs, and the names that they read, with those of the outputs."""
    part_nodes, read, stops = [], set(outputs), set(inputs)
    # Backwards, because a node is needed only if a later one reads it.
    for node in reversed(graph.node):
        if any(name in read and name not in stops for name in node.output):
            part_nodes.append(node)
            read.update(names_read(node))
    return part_nodes[::-1], read


def _require_dependent(kept: Iterable[onnx.NodeProto], ends: _Ends, values: _Values) -> None:
    """Raise UsageError for an output that depends on no input, unless the model has none."""
    reached = {*values.fed, *ends.inputs}
    # A model without inputs computes only constants, so the rule would refuse every output.
    if not reached:
        return
    for node in kept:
        if not reached.isdisjoint(names_read(node)):
            reached.update(filter(None, node.output))
    own = set(output_names(values.proto.graph))
    for name in ends.outputs:
        if name not in reached and name not in own:
            raise _refusal(f"the output {name!r} depends on no input: it is a constant")


@dataclass
class _Types:
    """The types of the values of a model, as inference finds them, and shapes that follow from constants and known dims."""

    model: Model

    def __post_init__(self) -> None:
        self.proto = self.model.proto
        graph = self.proto.graph
        self._own = {value.name: value for value in (*graph.input, *graph.output)}
        self._table = TypeTable(self.proto)

    @cached_property
    def _refined(self) -> Scope:
        """The main graph, with shapes that onnx does not infer, as of a Reshape to a computed shape."""
        version = self.proto.ir_version
        main = scopes(self.proto, self.model.weights, result_ir_version=version, types=self._table)[0]
        ValueFacts(main, Producers()).find_all(onnx_opset(self.proto.opset_import, ir_version=version))
        return main

    @cached_property
    def _derived(self) -> dict[str, int | None]:
        """Element types that follow from the signatures of operators that onnx does not infer."""
        main = next(frame for frame in frames_of(self.proto, self._table) if not frame.key)
        return {name: value.dtype for name, value in main.values.items()}

    def declared(self, name: str) -> onnx.ValueInfoProto:
        """Return the declaration of a value as an input or output. Raises CannotMigrate."""
        if name in self._own:
            return self._own[name]
        value_type = self._table.lookup(None, (), name)
        if (
            value_type.shape is None and not value_type.container
        ):  # onnx.checker refuses an output without a rank
            value_type = self._refined.value_type(name)
        type_ = _container(value_type.container) if value_type.container else None
        if type_ is not None:
            return helper.make_value_info(name, type_)
        dtype = value_type.dtype or self._derived.get(name)
        if dtype is None:
            node = producers(self.proto.graph)[name]
            raise CannotMigrate(
                f"{name!r} cannot be where the model is cut: its element type is not known, as onnx does not infer what"
                f" {node.op_type} {node_label(node)!r} computes",
                code="untyped-value",
                hint="cut before or behind it, or declare its type in the model's value_info",
            )
        return helper.make_tensor_value_info(name, dtype, _dims(value_type))


def _dims(known: ValueType) -> list[int | str | None] | None:
    """Return dims with the symbols that the model declares; onnx's own, of lengths that it does not know, say nothing."""
    if known.shape is None:
        return None
    symbols = known.symbols or ("",) * len(known.shape)
    named = (symbol if not symbol.startswith("unk__") else "" for symbol in symbols)
    return [
        size if size is not None else symbol or None for size, symbol in zip(known.shape, named, strict=True)
    ]


def _container(text: str) -> onnx.TypeProto | None:
    """Return the type of a text such as "seq(tensor(float))"; None for another text."""
    kind, _, inner = text.removesuffix(")").partition("(")
    if kind == "tensor":
        return helper.make_tensor_type_proto(onnx.TensorProto.DataType.Value(inner.upper()), None)
    make_type = {"seq": helper.make_sequence_type_proto, "optional": helper.make_optional_type_proto}.get(
        kind
    )
    element = _container(inner) if make_type else None
    return make_type(element) if make_type and element is not None else None


def _replace(found: Any, items: Iterable[Message]) -> None:
    """Give a repeated field these messages; some of them may be its own."""
    # The list comes first: the messages may be those that the next line deletes.
    messages = list(items)
    del found[:]
    found.extend(messages)


def _outputs_hint(graph: onnx.GraphProto) -> str:
    return f"the model's outputs are {listed(output_names(graph))}"


def _refusal(reason: str, hint: str = "") -> UsageError:
    return UsageError(reason, code="cannot-cut", hint=hint)
