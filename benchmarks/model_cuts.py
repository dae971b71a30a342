"""The nodes of whole models as models of their own, on the values that they have there.

A cut has a node and what computes its shapes; what it reads besides is fed. Of each form of a node (`facts.node_form`) a few are
cut. What ends at a node after several others is cut too, to find out where a model that fails as a whole goes wrong.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

from onnx_migrate.facts.node_form import node_forms
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.files import load
from onnx_migrate.model.graphs import may_hold_graphs
from onnx_migrate.standard.targets import SELDOM, NodeForm
from tests.campaigns.runtimes.sample import write_io

__all__ = ["Cut", "Whole", "cuts", "forms_of", "read_whole", "write_cut"]

Array = np.ndarray[Any, Any]

_EACH = 2
"""How many cuts of each form are run."""

_LARGEST = 6 << 20
"""The most bytes of the constants and the data of a cut of one node."""


@dataclass(frozen=True)
class Cut:
    """A part of a model, what it is fed and what it must compute."""

    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    expected: list[Array]

    @property
    def size(self) -> int:
        """The bytes of its constants and of what it is fed."""
        weights = sum(tensor.ByteSize() for tensor in self.model.graph.initializer)
        return weights + sum(value.nbytes for value in self.feeds.values())


@dataclass(frozen=True)
class Whole:
    """A model, and the values of all outputs of the nodes of its main graph and of what it is fed."""

    proto: onnx.ModelProto
    values: Mapping[str, Array]

    def cut(self, end: int, depth: int = 0) -> Cut | None:
        """Return the model of a node, given by its place, what computes its shapes, and as many nodes before it as `depth` says.

        None where nothing is fed, where a value is not known, and for nodes with bodies.
        """
        graph = self.proto.graph
        kept, fed, weights = {end: depth}, dict[str, Array](), dict[str, onnx.TensorProto]()
        pending = [(name, depth) for name in graph.node[end].input if name]
        while pending:
            name, left = pending.pop()
            at, tensor = self._makers.get(name), self._weights.get(name)
            if tensor is not None:
                weights[name] = tensor
            elif at is not None and (left > 0 or name in self.shapes):
                if kept.get(at, -1) < max(left, 0):
                    kept[at] = max(left, 0)
                    pending += [(inner, left - 1) for inner in graph.node[at].input if inner]
            elif name in self.values:
                fed[name] = self.values[name]
            else:
                return None
        nodes = [graph.node[at] for at in sorted(kept)]
        made = {name for node in nodes for name in node.output}
        ends = [name for name in graph.node[end].output if name]
        fed = {name: value for name, value in fed.items() if name not in made}
        known = all(name in self.values and self.values[name].dtype.kind in "fiub" for name in [*ends, *fed])
        if not fed or not known or any(may_hold_graphs(node.domain, node.op_type) for node in nodes):
            return None
        inputs = [self._info(name) for name in fed]
        body = helper.make_graph(
            nodes, "cut", inputs, [self._info(name) for name in ends], list(weights.values())
        )
        model = helper.make_model(
            body, opset_imports=self.proto.opset_import, ir_version=max(self.proto.ir_version, 4)
        )
        return Cut(model, fed, [self.values[name] for name in ends])

    @cached_property
    def shapes(self) -> frozenset[str]:
        """The values that follow from shapes and constants."""
        found = set(self._weights)
        for node in self.proto.graph.node:
            known = all(not name or name in found for name in node.input)
            if node.op_type in ("Shape", "Size") or (
                known and not may_hold_graphs(node.domain, node.op_type)
            ):
                found.update(node.output)
        return frozenset(found)

    @cached_property
    def data(self) -> tuple[int, ...]:
        """The places of the nodes that compute with what is fed."""
        nodes = enumerate(self.proto.graph.node)
        return tuple(at for at, node in nodes if not self.shapes.issuperset(filter(None, node.output)))

    @cached_property
    def _makers(self) -> Mapping[str, int]:
        return {name: at for at, node in enumerate(self.proto.graph.node) for name in node.output if name}

    @cached_property
    def _weights(self) -> Mapping[str, onnx.TensorProto]:
        return {tensor.name: tensor for tensor in self.proto.graph.initializer}

    @cached_property
    def _types(self) -> TypeTable:
        return TypeTable(self.proto)

    def _info(self, name: str) -> onnx.ValueInfoProto:
        value = self.values[name]
        known, dims = self._types.lookup(None, (), name).shape, list[Any](value.shape)
        if known is not None and len(known) == len(dims):
            dims = [f"{name}_{at}" if own is None else own for at, own in enumerate(known)]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), dims)


def read_whole(path: Path, data: Path) -> Whole | None:
    """Return a model and what it is fed; None where ONNX Runtime does not compute all of its values, or it has functions."""
    proto = onnx.load(path)
    if proto.functions:
        return None
    with np.load(data) as file:
        feeds = {key[2:]: file[key] for key in file.files if key.startswith("i:")}
    outer = onnx.ModelProto()
    outer.CopyFrom(proto)
    ends = {value.name for value in proto.graph.output}
    names = [one for node in proto.graph.node for one in node.output if one]
    outer.graph.output.extend(helper.make_empty_tensor_value_info(one) for one in names if one not in ends)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(outer.SerializeToString(), options, providers=["CPUExecutionProvider"])
        wanted = [value.name for value in session.get_outputs()]
        found = dict(zip(wanted, session.run(wanted, feeds), strict=True))
    except Exception as error:  # ONNX Runtime raises classes of its own
        print(f"{path.stem} is not cut: {' '.join(str(error).split())[:120]}")
        return None
    values = {one: value for one, value in (feeds | found).items() if isinstance(value, np.ndarray)}
    return Whole(proto, values)


def forms_of(path: Path) -> list[NodeForm]:
    """Return the forms of the nodes of a model."""
    return list(node_forms(load(path)))


def cuts(path: Path, data: Path, counts: Counter[str]) -> Iterator[tuple[str, Cut]]:
    """Yield the cuts of a model of which not enough are counted yet, with their names, and count them."""
    whole = read_whole(path, data)
    if whole is None:
        return
    nodes = whole.proto.graph.node
    places = [at for at, node in enumerate(nodes) if node.op_type != "Constant"]
    bodies = any(may_hold_graphs(node.domain, node.op_type) for node in nodes)
    forms = dict(zip(places, forms_of(path), strict=not bodies))
    for at in () if bodies else whole.data:
        form = forms[at]
        facts = {name: own for name, own in form.facts.items() if name not in SELDOM}
        key = hashlib.sha256(json.dumps([form.operator, facts]).encode()).hexdigest()[:16]
        if counts[key] < _EACH:
            found = whole.cut(at)
            if found is not None and found.size <= _LARGEST:
                counts[key] += 1
                yield f"{form.operator}-{key}-{counts[key]}", found


def write_cut(folder: Path, name: str, cut: Cut) -> str:
    """Write a cut and its data, and return what tells its file apart."""
    content = cut.model.SerializeToString(deterministic=True)
    (folder / f"{name}.onnx").write_bytes(content)
    stem = name.rpartition("/")[2]
    write_io(folder, stem, cut.feeds, cut.expected, [value.name for value in cut.model.graph.output])
    return hashlib.sha256(content).hexdigest()[:16]
