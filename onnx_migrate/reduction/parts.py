"""Models of some nodes of a larger one: recorded values enter where the other nodes are missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import (
    fed_inputs,
    function_key,
    initializer_names,
    names_read,
    uncalled_functions,
)
from onnx_migrate.model.interface import list_initializers
from onnx_migrate.model.weights import Weights
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.ports import Ports
from onnx_migrate.verify.model_traits import dependents

__all__ = ["Parts", "constant_tensor", "drop_unread", "replace_all"]

_SHAPE_SIZE = 64
"""Most elements of integers that count as sizes of a shape: with fixed inputs, they are constants."""


def replace_all(field: Any, items: Iterable[Any]) -> None:
    """Give a repeated field these messages; some of them may be its own."""
    entries = list(items)
    del field[:]
    field.extend(entries)


def drop_unread(graph: onnx.GraphProto) -> None:
    """Drop the inputs and initializers that nothing reads, in place."""
    read = {name for node in graph.node for name in names_read(node)} | {value.name for value in graph.output}
    replace_all(graph.input, [value for value in graph.input if value.name in read])
    replace_all(graph.initializer, [tensor for tensor in graph.initializer if tensor.name in read])
    sparse_tensors = [tensor for tensor in graph.sparse_initializer if tensor.values.name in read]
    replace_all(graph.sparse_initializer, sparse_tensors)


def constant_tensor(name: str, value: np.ndarray[Any, Any], weights: Weights) -> onnx.TensorProto:
    """Return an initializer of these numbers; `weights` keeps large ones."""
    # NumPy's `ascontiguousarray` gives a scalar an axis, which the reshape removes.
    array = np.ascontiguousarray(value).reshape(value.shape)
    tensor: onnx.TensorProto = onnx.numpy_helper.from_array(np.asarray(array), name)
    if tensor.raw_data:
        weights.put(tensor, tensor.raw_data)
    return tensor


@dataclass(frozen=True)
class _Cut:
    """The names that a set of nodes computes, reads from outside, and hands on."""

    nodes: Sequence[onnx.NodeProto]
    computed: frozenset[str]
    read: tuple[str, ...]


class Parts:
    """The parts of one model. Nodes are numbered in the order of the main graph, which is topological."""

    def __init__(self, candidate: Candidate) -> None:
        self.whole = candidate
        self.nodes = list(candidate.proto.graph.node)
        self.steps = [index for index, node in enumerate(self.nodes) if node.op_type != "Constant"]
        """The nodes that compute something: Constants come along with their readers."""
        self._ports = Ports(candidate)
        self._constants = {
            name: index
            for index, node in enumerate(self.nodes)
            if node.op_type == "Constant"
            for name in node.output
        }

    @cached_property
    def reads(self) -> list[list[str]]:
        """The names that each node reads."""
        return [names_read(node) for node in self.nodes]

    @cached_property
    def makers(self) -> dict[str, int]:
        """The node that computes each value."""
        return {name: index for index, node in enumerate(self.nodes) for name in node.output if name}

    @cached_property
    def _used(self) -> frozenset[str]:
        """The values that a node reads, or that are outputs."""
        outputs = (value.name for value in self.whole.proto.graph.output)
        return frozenset({name for names in self.reads for name in names}.union(outputs))

    @cached_property
    def _varying(self) -> frozenset[str]:
        fed = {value.name for value in fed_inputs(self.whole.proto.graph)}
        return frozenset(dependents(self.whole.proto, fed))

    def ancestors(self, steps: Sequence[int], ends: Sequence[int]) -> list[int]:
        """Return those of these nodes that the ends are computed from, with the ends."""
        inside, needed, waiting = set(steps), set(ends), list(ends)
        while waiting:
            for name in self.reads[waiting.pop()]:
                index = self.makers.get(name, -1)
                if index in inside and index not in needed:
                    needed.add(index)
                    waiting.append(index)
        return sorted(needed)

    def part(self, steps: Iterable[int], outputs: Sequence[str] = ()) -> Candidate | None:
        """Return the model of these nodes; None if there are none, or the type of a value at a cut is not known.

        The outputs are the values that no node reads, or `outputs` alone.
        """
        indices = sorted({*steps})
        if not indices:
            return None
        cut = self._cut(indices)
        proto = _frame_of(self.whole.proto)
        model = replace(self.whole.model, proto=proto, weights=self.whole.model.weights.copy(), as_given=None)
        feed = self._enter(cut, proto, model.weights)
        if feed is None or not self._leave(proto, outputs or self._free(cut)):
            return None
        proto.graph.node.extend(cut.nodes)
        self._keep_declarations(cut, proto)
        _keep_functions(proto, self.whole.proto)
        # Before IR version 4, each initializer must be listed as an input too.
        if proto.ir_version < 4:
            list_initializers(proto.graph)
        return Candidate(model, feed, self.whole.values, self.whole.is_static)

    def _cut(self, places: Sequence[int]) -> _Cut:
        wanted = {*places}
        wanted.update(
            self._constants[name] for index in places for name in self.reads[index] if name in self._constants
        )
        ordered = sorted(wanted)
        computed = frozenset(name for index in ordered for name in self.nodes[index].output if name)
        read = (name for index in ordered for name in self.reads[index] if name not in computed)
        return _Cut([self.nodes[index] for index in ordered], computed, tuple(dict.fromkeys(read)))

    def _enter(self, cut: _Cut, proto: onnx.ModelProto, weights: Weights) -> dict[str, Any] | None:
        """Add inputs and initializers for the values that the nodes read; return the values of the inputs."""
        graph = self.whole.proto.graph
        fed = {value.name for value in fed_inputs(graph)}
        stored = initializer_names(graph) - fed
        read = frozenset(cut.read)
        proto.graph.initializer.extend(
            tensor for tensor in graph.initializer if tensor.name in read and tensor.name not in fed
        )
        proto.graph.sparse_initializer.extend(
            tensor for tensor in graph.sparse_initializer if tensor.values.name in read
        )
        feed: dict[str, Any] = {}
        for name in cut.read:
            if name in stored:
                continue
            value = self.whole.feed.get(name) if name in fed else self.whole.values.get(name)
            if name not in fed and value is not None and self._is_constant(name, value):
                proto.graph.initializer.append(constant_tensor(name, value, weights))
                continue
            port = self._ports.declared(name)
            if port is None:
                return None
            proto.graph.input.append(port)
            stand_in = _ones(port) if value is None else value
            if stand_in is not None:
                feed[name] = stand_in
        return feed

    def _is_constant(self, name: str, value: Any) -> bool:
        """Return whether a value is one constant for all inputs, or the sizes of a shape."""
        if not isinstance(value, np.ndarray) or value.dtype.hasobject or value.dtype.kind not in "biuf":
            return False
        if name not in self._varying:
            return True
        return (
            self.whole.is_static and value.dtype.kind == "i" and value.ndim <= 1 and value.size <= _SHAPE_SIZE
        )

    def _leave(self, proto: onnx.ModelProto, names: Sequence[str]) -> bool:
        """Add the outputs. Return whether there is one, and all types are known."""
        ports = [self._ports.declared(name) for name in names]
        proto.graph.output.extend(port for port in ports if port is not None)
        return bool(ports) and None not in ports

    def _free(self, cut: _Cut) -> list[str]:
        """Return the values that no node of the part reads, and outputs of the whole model."""
        inner = {name for node in cut.nodes for name in names_read(node)}
        own = {value.name for value in self.whole.proto.graph.output}
        free_names: list[str] = []
        for node in cut.nodes:
            free = [name for name in node.output if name and (name not in inner or name in own)]
            wanted = [name for name in free if name in self._used]
            # A node whose results nobody reads still needs an output, or it would not run.
            if not wanted and not inner.intersection(node.output) and node.op_type != "Constant":
                wanted = free[:1]
            free_names += wanted
        return free_names

    def _keep_declarations(self, cut: _Cut, proto: onnx.ModelProto) -> None:
        """Keep the declared types of inner values."""
        ends = {value.name for value in proto.graph.output}
        inner = cut.computed - ends
        graph = self.whole.proto.graph
        proto.graph.value_info.extend(value for value in graph.value_info if value.name in inner)
        about = inner | ends | {*cut.read}
        notes = (note for note in graph.quantization_annotation if note.tensor_name in about)
        proto.graph.quantization_annotation.extend(notes)


def _ones(port: onnx.ValueInfoProto) -> np.ndarray[Any, Any] | None:
    """Return a tensor for an input whose value was not recorded; None for another type."""
    if not port.type.tensor_type.elem_type:
        return None
    shape = [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim]
    return np.ones(shape, onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type))


def _frame_of(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model without nodes and values."""
    frame = onnx.ModelProto(
        ir_version=proto.ir_version, opset_import=proto.opset_import, metadata_props=proto.metadata_props
    )
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        if proto.HasField(name):
            setattr(frame, name, getattr(proto, name))
    frame.graph.name = proto.graph.name
    return frame


def _keep_functions(proto: onnx.ModelProto, whole: onnx.ModelProto) -> None:
    """Keep the functions that a node calls."""
    if whole.functions:
        proto.functions.extend(whole.functions)
        uncalled = uncalled_functions(proto)
        replace_all(
            proto.functions,
            (function for function in proto.functions if function_key(function) not in uncalled),
        )
