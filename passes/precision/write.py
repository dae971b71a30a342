"""Writes a model in the types of a plan: nodes with other types, constants converted, Casts where two types meet."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Protocol

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.model.graphs import initializer_names
from onnx_migrate.model.names import Names
from onnx_migrate.model.weights import Weights
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.retyping import TYPE_BY_ATTRIBUTE
from onnx_migrate.standard.schema import CONTROL_FLOW

from .plan import Plan

__all__ = ["Stored", "Written", "write"]

_TWICE = 1024
"""Bytes up to which a constant that is read in two types is stored in both, instead of cast."""


class Stored(Protocol):
    """What converts constants."""

    def convert(self, tensor: TensorProto, weights: Weights) -> None:
        """Give a tensor the new type, in place; `weights` gets the reference to its data if that is large."""


@dataclass
class Written:
    """How many Casts were added, and constants converted."""

    casts: int = 0
    constants: int = 0


def write(
    frames: list[Frame],
    plan: Plan,
    names: Names,
    stored: Stored,
    weights: Weights,
    *,
    interface: bool,
    staying: Container[str] = (),
) -> Written:
    """Write the bodies in place, with the types of the plan; with `interface` inputs and outputs get the new type too.

    Outputs that are `staying` keep theirs. `weights` gets the references to converted data.
    """
    writer = _Writer(plan, names, stored, weights, interface, staying)
    writer.main(frames[0])
    return writer.written


@dataclass
class _Writer:
    plan: Plan
    names: Names
    stored: Stored
    weights: Weights
    interface: bool
    staying: Container[str]
    written: Written = field(default_factory=Written)
    out: dict[Frame, list[onnx.NodeProto]] = field(default_factory=dict)
    large: dict[tuple[bytes, frozenset[int | None], bool], Value] = field(default_factory=dict)
    """The large Constants of the main graph that are written, by their data and the types in which they are read."""
    outputs: dict[str, int] = field(default_factory=dict)
    """The types that outputs of the main graph shall have, by name."""

    def main(self, frame: Frame) -> None:
        """Write the main graph, whose inputs and outputs keep their names."""
        plan = self.plan
        for declared in frame.body.output:
            kind = declared.type.tensor_type.elem_type
            value = frame.find(declared.name)
            kind = kind or (value.dtype or 0 if value is not None else 0)
            changes = self.interface and kind in plan.sources and declared.name not in self.staying
            self.outputs[declared.name] = plan.target if changes else kind
        self._inputs(frame, changing=self.interface, staying=initializer_names(frame.body))
        self._body(frame)
        for declared in frame.body.output:
            self._declare(declared, self.outputs[declared.name])

    def _inputs(self, frame: Frame, *, changing: bool, staying: Container[str] = ()) -> None:
        """Name and declare the inputs of a body. If `changing`, inputs that are not in `staying` get the new type."""
        for declared in frame.body.input:
            value = frame.values[declared.name]
            if value.tensor is None and value.dtype is not None:
                changes = changing and value.dtype in self.plan.sources and value.name not in staying
                kind = self.plan.target if changes else value.dtype
                value.names = {kind: declared.name}
                self._declare(declared, kind)

    def _body(self, frame: Frame) -> None:
        """Write the nodes of a body; its inputs are written already, its outputs are not."""
        self.out[frame] = []
        self._initializers(frame)
        for step in frame.steps:
            self._step(step)
        self._declare_inner(frame)
        del frame.body.node[:]
        frame.body.node.extend(self.out[frame])

    def _step(self, step: Step) -> None:
        node = step.node
        if step.is_a("Constant"):
            self._constant(step)
            return
        # Casts of outer values that a body reads must come before the node around it.
        for _, inner in step.inner:
            self._inputs(inner, changing=step in self.plan.changes)
            self._body(inner)
        for index, value in enumerate(step.inputs):
            if value is not None:
                wanted = self.plan.wanted(step, index)
                node.input[index] = self._named(value, wanted)
        kinds = [value.dtype if value is not None else None for value in step.outputs]
        change = self.plan.changes.get(step)
        if change is not None:
            kinds = [
                self.plan.target if changes else kind
                for kind, changes in zip(kinds, change.outputs, strict=True)
            ]
        if step.inner and step.is_a(*CONTROL_FLOW):
            self._leave(step, kinds)
        if change is not None:
            self._retype_attributes(step, kinds[0])
        if step.is_a("Cast") and self._is_needless(step, kinds[0]):
            return
        self.out[step.frame].append(node)
        for index, (value, kind) in enumerate(zip(step.outputs, kinds, strict=True)):
            if value is not None and kind is not None:
                self._made(value, kind, node, index)

    def _made(self, value: Value, kind: int, node: onnx.NodeProto, place: int) -> None:
        """Name a value that a node makes; an output of the model that shall have another type is cast to it."""
        name = value.name
        declared = None if value.frame.key else self.outputs.get(name)
        if not declared or declared == kind or kind not in (*self.plan.sources, self.plan.target):
            value.names = {kind: name}
            return
        node.output[place] = self.names.fresh(f"{name}_{type_name(kind)}")
        value.names = {kind: node.output[place]}
        self._cast(value, declared, name)

    def _named(self, value: Value, wanted: int | None) -> str:
        """Return the name of a value in a type, and write the Cast to it if there is none yet."""
        if wanted is None or not value.names:
            return next(iter(value.names.values()), value.name)
        if wanted not in value.names:
            self._cast(value, wanted, self.names.fresh(f"{value.name}_{type_name(wanted)}"))
        return value.names[wanted]

    def _cast(self, value: Value, kind: int, name: str, label: str = "") -> None:
        source = next(iter(value.names.values()))
        label = label or self.names.fresh(f"{name}_cast")
        self.out[value.frame].append(onnx.helper.make_node("Cast", [source], [name], label, to=kind))
        value.names[kind] = name
        self.written.casts += 1

    def _is_needless(self, step: Step, kind: int | None) -> bool:
        """Return whether a Cast is dropped, since its input has the type by now; an output of the model is cast from there."""
        source, result = step.inputs[0], step.outputs[0]
        if source is None or result is None or kind is None:
            return False
        declared = None if result.frame.key else self.outputs.get(result.name)
        if kind not in source.names or (result.is_output and not declared):
            return False
        if declared == kind:
            step.node.op_type = "Identity"
            del step.node.attribute[:]
            return False
        result.names = {kind: source.names[kind]}
        if declared:
            self._cast(result, declared, result.name, step.node.name)
        return True

    def _retype_attributes(self, step: Step, kind: int | None) -> None:
        """Set the new type of output 0 in the attribute that holds it."""
        name = TYPE_BY_ATTRIBUTE.get(step.node.op_type) if not step.domain else None
        if name is None or kind is None or kind not in (*self.plan.sources, self.plan.target):
            return
        attributes = {attribute.name: attribute for attribute in step.node.attribute}
        if step.is_a("ConstantOfShape"):
            if name not in attributes:
                zero = onnx.helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0])
                attributes[name] = step.node.attribute.add(name=name, type=AttributeProto.TENSOR, t=zero)
            self._convert(attributes[name].t)
        elif name in attributes:
            attributes[name].i = kind
        elif not step.is_a("DequantizeLinear"):
            step.node.attribute.add(name=name, type=AttributeProto.INT, i=kind)

    # Sub-graphs

    def _leave(self, step: Step, kinds: list[int | None]) -> None:
        """Give the outputs of the sub-graphs of one node types that agree, and the node's outputs these."""
        carried = len(step.node.output)
        if step.is_a("Loop"):
            carried = len(step.inner[0][1].body.input) - 2
        elif step.is_a("Scan"):
            scanned = next(a.i for a in step.node.attribute if a.name == "num_scan_inputs")
            carried = len(step.inner[0][1].body.input) - int(scanned)
        # The first output of a Loop's body is its condition, which the node does not return.
        first = 1 if step.is_a("Loop") else 0
        for index in range(len(kinds)):
            kind = kinds[index]
            if kind not in (*self.plan.sources, self.plan.target):
                continue
            values = [inner.find(inner.body.output[index + first].name) for _, inner in step.inner]
            if index >= carried and values[0] is not None and values[0].names:
                kind = kinds[index] = next(iter(values[0].names))
            for (_, inner), value in zip(step.inner, values, strict=True):
                if value is not None and kind is not None:
                    declared = inner.body.output[index + first]
                    declared.name = self._in_body(inner, value, kind)
                    self._declare(declared, kind)

    def _in_body(self, inner: Frame, value: Value, kind: int) -> str:
        """Return the name of a sub-graph's output in a type; the Cast that it needs goes to the end of the sub-graph."""
        if kind in value.names or not value.names:
            return value.names.get(kind, value.name)
        nodes = inner.body.node if value.frame is inner else None
        name = self._named(value, kind)
        if nodes is not None:
            # The nodes of this body are written already, so nobody reads its list again.
            nodes.append(self.out[inner].pop())
        return name

    # Constants and declarations

    def _initializers(self, frame: Frame) -> None:
        listed = {declared.name: declared for declared in frame.body.input}
        tensors = [*frame.body.initializer, *(sparse.values for sparse in frame.body.sparse_initializer)]
        for tensor in tensors:
            value = frame.values.get(tensor.name)
            if value is None or value.tensor is None:
                continue
            twin = self._typed(value, tensor)
            if tensor.name in listed:
                self._declare(listed[tensor.name], tensor.data_type)
            if twin is not None:
                frame.body.initializer.append(twin)

    def _typed(self, value: Value, tensor: TensorProto) -> TensorProto | None:
        """Convert a constant whose readers all need the new type. For a small one with both kinds, return a second one."""
        if value in self.plan.stored_narrow:
            self._store_narrow(value, tensor)
            return None
        wanted = {self.plan.wanted(reader, index) for reader, index in value.readers} - {None}
        if value.is_output:
            wanted.add(value.dtype)
        # In float32, the constant already has the type of such a Cast, which then disappears.
        if self.plan.target == TensorProto.FLOAT and any(map(_widens, value.readers)):
            wanted.add(TensorProto.FLOAT)
        value.names = {tensor.data_type: value.name}
        if value.dtype not in self.plan.sources or self.plan.target not in wanted:
            return None
        if wanted == {self.plan.target}:
            self._convert(tensor)
            value.names = {self.plan.target: value.name}
            return None
        if (
            tensor.data_location == TensorProto.EXTERNAL
            or tensor.ByteSize() > _TWICE
            or value.maker is not None
        ):
            return None
        twin = TensorProto()
        twin.CopyFrom(tensor)
        self._convert(twin)
        twin.name = value.names[self.plan.target] = self.names.fresh(
            f"{value.name}_{type_name(self.plan.target)}"
        )
        return twin

    def _store_narrow(self, value: Value, tensor: TensorProto) -> None:
        """Convert a constant that nodes read in its old type too, by a Cast; an output of the model is such a Cast."""
        self._convert(tensor)
        value.names = {self.plan.target: value.name}
        if not value.frame.key and value.name in self.outputs:
            name, kind = value.name, self.outputs[value.name]
            value.names = {self.plan.target: self.names.fresh(f"{name}_{type_name(self.plan.target)}")}
            self._rename(value, tensor, value.names[self.plan.target])
            self._cast(value, kind, name)

    def _rename(self, value: Value, tensor: TensorProto, name: str) -> None:
        """Give a constant another name, since an output of the model needs its name."""
        if value.maker is not None:
            value.maker.node.output[0] = name
        else:
            tensor.name = name

    def _convert(self, tensor: TensorProto) -> None:
        self.stored.convert(tensor, self.weights)
        self.written.constants += 1

    def _constant(self, step: Step) -> None:
        value = step.outputs[0]
        if value is not None and self._is_copy(value):
            return
        self.out[step.frame].append(step.node)
        if value is None:
            return
        if value.dtype is not None:
            value.names = {value.dtype: value.name}
        if value.tensor is None or value.dtype not in self.plan.sources:
            return
        self._typed(value, value.tensor)
        if value.tensor.data_type == self.plan.target:
            node = step.node
            if node.attribute[0].name != "value":
                del node.attribute[:]
                node.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(value.tensor)

    def _is_copy(self, value: Value) -> bool:
        """Return whether a constant is one before it again, which takes its place: a function leaves one with each call."""
        tensor = value.tensor
        if tensor is None or value.is_output or value.frame.key or value.dtype not in self.plan.sources:
            return False
        if tensor.ByteSize() <= _TWICE and tensor.data_location != TensorProto.EXTERNAL:
            return False
        types = frozenset(self.plan.wanted(*reader) for reader in value.readers)
        key = tensor.SerializeToString(), types, value in self.plan.stored_narrow
        first = self.large.setdefault(key, value)
        value.names, value.tensor = first.names, first.tensor
        if first is not value:
            self.plan.stored_narrow.discard(value)
        return first is not value

    def _declare_inner(self, frame: Frame) -> None:
        """Correct the declared types of inner values; one whose value is gone is removed."""
        declarations = []
        for declared in frame.body.value_info:
            value = frame.values.get(declared.name)
            if value is not None and value.names:
                kind = next((kind for kind, name in value.names.items() if name == declared.name), None)
                if kind is None:
                    continue
                self._declare(declared, kind)
            declarations.append(declared)
        if len(declarations) < len(frame.body.value_info):
            del frame.body.value_info[:]
            frame.body.value_info.extend(declarations)

    def _declare(self, declared: onnx.ValueInfoProto, kind: int) -> None:
        dtype = (
            declared.type.tensor_type.elem_type if declared.type.WhichOneof("value") == "tensor_type" else 0
        )
        if kind and dtype in (*self.plan.sources, self.plan.target):
            declared.type.tensor_type.elem_type = kind


def _widens(reader: tuple[Step, int]) -> bool:
    """Return whether a node reads a constant only to cast it to float32."""
    output = reader[0].outputs[0] if reader[0].is_a("Cast") else None
    return output is not None and output.dtype == TensorProto.FLOAT
