"""A model as a graph of typed values: bodies, the nodes in them, and of each value its type, its maker and its readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.cached import cached_property
from onnx_migrate.errors import Where
from onnx_migrate.facts.value_types import TypeTable, value_type_of
from onnx_migrate.model.graphs import BodyKey, node_label, subgraphs
from onnx_migrate.standard.element_types import CONSTANT_TYPES
from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.retyping import TYPE_BY_ATTRIBUTE, derived_types
from onnx_migrate.standard.schema import is_onnx, signature_at

__all__ = ["Frame", "Step", "Value", "frames_of"]


@dataclass(eq=False)
class Value:
    """A value of one body. `dtype` is its element type; None if that is not known or it is no tensor.

    `tensor` holds its numbers if it is an initializer that nobody can override, or the output of a Constant. `maker` is the
    node that computes it. `names` are its names by element type, as far as it has been written.
    """

    name: str
    frame: Frame = field(repr=False)
    dtype: int | None = None
    container: bool = False
    tensor: TensorProto | None = None
    maker: Step | None = field(default=None, repr=False)  # repr would follow every path of the graph
    readers: list[tuple[Step, int]] = field(default_factory=list, repr=False)
    is_output: bool = False
    names: dict[int, str] = field(default_factory=dict)


@dataclass(eq=False)
class Step:
    """A node in its body, with its sub-graphs and the values that it reads and makes; None stands for an omitted value."""

    node: onnx.NodeProto
    frame: Frame = field(repr=False)
    index: int
    version: int
    inputs: list[Value | None] = field(default_factory=list, repr=False)
    outputs: list[Value | None] = field(default_factory=list, repr=False)
    inner: list[tuple[str, Frame]] = field(default_factory=list)

    @cached_property
    def domain(self) -> str:
        """The domain of the node; "" means ai.onnx."""
        return "" if is_onnx(self.node.domain) else self.node.domain

    @property
    def read(self) -> list[Value]:
        """The values that the node reads."""
        return [value for value in self.inputs if value is not None]

    @property
    def made(self) -> list[Value]:
        """The values that the node makes."""
        return [value for value in self.outputs if value is not None]

    @property
    def where(self) -> Where:
        """The node, as refusals name it."""
        return Where(node=node_label(self.node), operator=self.node.op_type, from_version=self.version)

    def is_a(self, *operators: str) -> bool:
        """Return whether the node is of one of these operators of ai.onnx."""
        return not self.domain and self.node.op_type in operators


@dataclass(eq=False)
class Frame:
    """A body: the main graph (of the key ()), or a sub-graph of a node, in the body `parent`."""

    body: onnx.GraphProto
    key: BodyKey
    parent: Frame | None = None
    steps: list[Step] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    declared: dict[str, onnx.TypeProto] = field(default_factory=dict, repr=False)
    """The types that the body declares."""

    def find(self, name: str) -> Value | None:
        """Return the value that a name refers to here; None if no body defines the name."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            frame = frame.parent
        return None


def frames_of(proto: onnx.ModelProto, types: TypeTable) -> list[Frame]:
    """Return the bodies of a model without local functions, each before those inside it, with their values and nodes.

    Types come from declarations, or from the signatures of operators. Only the rest comes from `types`, so that most
    models need no inference.
    """
    return list(_Reader(proto, types).frame(proto.graph, (), None))


class _Reader:
    def __init__(self, proto: onnx.ModelProto, types: TypeTable) -> None:
        self._proto, self._types = proto, types
        self._opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version) or 1
        self._overridable = proto.ir_version >= 4

    def frame(self, body: onnx.GraphProto, key: BodyKey, parent: Frame | None) -> Iterator[Frame]:
        """Yield a body, after it was read with all that is inside it, and then the bodies inside it."""
        frame = Frame(body, key, parent)
        frame.declared.update(
            (value.name, value.type) for value in (*body.value_info, *body.output, *body.input)
        )
        inside: list[Frame] = []
        for declared in body.input:
            if declared.name:
                self._add(frame, declared.name)
        for tensor in body.initializer:
            # A listed initializer is an input that a caller may override.
            if tensor.name not in frame.values or not self._overridable:
                self._add(frame, tensor.name, tensor)
        for sparse in body.sparse_initializer:
            if sparse.values.name not in frame.values:
                self._add(frame, sparse.values.name, sparse.values)
        for index, node in enumerate(body.node):
            inside += self._step(frame, index, node)
        for declared in body.output:
            # An output may be a value of a body around it.
            value = frame.find(declared.name)
            if value is not None:
                value.is_output = True
        yield frame
        yield from inside

    def _step(self, frame: Frame, index: int, node: onnx.NodeProto) -> list[Frame]:
        step = Step(node, frame, index, self._version(node))
        inside: list[Frame] = []
        step.inputs = [frame.find(name) if name else None for name in node.input]
        for input_index, value in enumerate(step.inputs):
            # Readers are kept with the index of the input, because a node may read a value twice.
            if value is not None:
                value.readers.append((step, input_index))
        for attribute, input_index, graph in subgraphs(node):
            inner_frames = list(self.frame(graph, (*frame.key, index, attribute, input_index), frame))
            step.inner.append((attribute, inner_frames[0]))
            inside += inner_frames
        for name in node.output:
            step.outputs.append(self._add(frame, name, self._constant(node), step) if name else None)
        self._derive(step)
        frame.steps.append(step)
        return inside

    def _add(
        self, frame: Frame, name: str, tensor: TensorProto | None = None, maker: Step | None = None
    ) -> Value:
        value = frame.values[name] = Value(name, frame, tensor=tensor, maker=maker)
        if tensor is not None:
            value.dtype = tensor.data_type
        elif name in frame.declared:
            # A declaration counts before an inference.
            kind = frame.declared[name]
            value.dtype = kind.tensor_type.elem_type or None
            value.container = not value.dtype and bool(value_type_of(kind).container)
        # Types of computed values follow from their nodes.
        if maker is None:
            self._infer(value)
        return value

    def _derive(self, step: Step) -> None:
        """Give types to outputs without a declared one: from the operator's signature, or else from inference."""
        if all(map(_is_known, step.made)):
            return
        kinds = tuple(value.dtype or 0 if value is not None else 0 for value in step.inputs)
        # The signature gives the type without a run of onnx's inference, which takes longer.
        dtypes = derived_types(step.domain, step.node.op_type, step.version, kinds, len(step.outputs))
        stated = "" if step.domain else TYPE_BY_ATTRIBUTE.get(step.node.op_type)
        for attribute in step.node.attribute:
            # Some operators state the type of their output in an attribute, as Cast does in `to`.
            if attribute.name == stated:
                dtypes = (attribute.i or attribute.t.data_type,) * len(dtypes)
        for value, kind in zip(step.outputs, dtypes, strict=True):
            if value is not None and not _is_known(value):
                value.dtype = kind or None
                self._infer(value)

    def _infer(self, value: Value) -> None:
        if not _is_known(value):
            recorded_type = self._types.lookup(None, value.frame.key, value.name)
            value.dtype, value.container = recorded_type.dtype, bool(recorded_type.container)

    def _version(self, node: onnx.NodeProto) -> int:
        domain = "" if is_onnx(node.domain) else node.domain
        opset = imported(self._proto.opset_import, domain) if domain else self._opset
        form = signature_at(domain, node.op_type, opset or 1)
        return form.since_version if form is not None else 1

    def _constant(self, node: onnx.NodeProto) -> TensorProto | None:
        """Return the numbers of a Constant, which are a tensor, or are written as one."""
        if node.op_type != "Constant" or not is_onnx(node.domain):
            return None
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
                return attribute.t
            kind = CONSTANT_TYPES.get(attribute.name)
            # Other forms hold no numbers.
            if kind in (TensorProto.FLOAT, TensorProto.INT64):
                value = onnx.helper.get_attribute_value(attribute)
                listed = attribute.name.endswith("s")
                dims = [len(value)] if listed else []
                return onnx.helper.make_tensor("", kind, dims, list(value) if listed else [value])
        return None


def _is_known(value: Value) -> bool:
    return bool(value.dtype or value.container)
