"""A line-by-line diff of two models as text, with one line per node."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.interface import Port
from onnx_migrate.rewrite.change_log import attribute_text

__all__ = ["diff"]

_VALUES = 8
"""Largest number of elements of a tensor whose values are shown."""


@dataclass(frozen=True)
class _Line:
    """A line of a model's text: the graph or function it belongs to, a key that is unique there, and the text."""

    body: str
    key: str
    text: str


def diff(before: onnx.ModelProto, after: onnx.ModelProto, *, names: tuple[str, str]) -> Iterator[str]:
    """Yield the lines of a diff from one model to another; none when the texts are equal.

    Nodes are matched by the name of their first output, so the cost is linear in the number of nodes. Weights in
    external files are shown by type and shape only, shapes of inner values only if `before` declares them.
    """
    old, new = list(_model(before)), list(_model(after))
    declared = {(line.body, line.key) for line in old}
    new = [line for line in new if not line.key.startswith("shape ") or (line.body, line.key) in declared]
    body = None
    for line, sign in _merged(old, new):
        if body is None:
            yield from (f"--- {names[0]}", f"+++ {names[1]}")
        if line.body != body:
            body = line.body
            yield f"@@ {body} @@"
        yield f"{sign}{line.text}"


def _merged(old: list[_Line], new: list[_Line]) -> Iterator[tuple[_Line, str]]:
    """Yield the lines that differ with "-" or "+", removed lines before the lines that replace them."""
    left = {(line.body, line.key) for line in old}
    right = {(line.body, line.key) for line in new}
    i = j = 0
    while i < len(old) or j < len(new):
        a = old[i] if i < len(old) else None
        b = new[j] if j < len(new) else None
        if a is not None and b is not None and (a.body, a.key) == (b.body, b.key):
            if a.text != b.text:
                yield a, "-"
                yield b, "+"
            i, j = i + 1, j + 1
        elif a is not None and (b is None or (a.body, a.key) not in right):
            yield a, "-"
            i += 1
        elif b is not None and (a is None or (b.body, b.key) not in left):
            yield b, "+"
            j += 1
        elif (
            a is not None
        ):  # both models have both lines, in another order: shown at the old and at the new position
            yield a, "-"
            left.discard((a.body, a.key))
            i += 1


def _model(proto: onnx.ModelProto) -> Iterator[_Line]:
    yield _Line("model", "ir_version", f"IR version {proto.ir_version}")
    for item in proto.opset_import:
        yield _Line("model", f"opset {item.domain}", f"opset {item.domain or 'ai.onnx'} {item.version}")
    for located in bodies(proto):
        if isinstance(located.body, onnx.GraphProto):
            yield from _declarations(located.body, located.path)
        else:
            for item in located.body.opset_import:
                text = f"opset {item.domain or 'ai.onnx'} {item.version}"
                yield _Line(located.path, f"opset {item.domain}", text)
        for node in located.body.node:
            key = next((name for name in node.output if name), node.name)
            yield _Line(located.path, f"node {key}", _node(node))


def _declarations(graph: onnx.GraphProto, body: str) -> Iterator[_Line]:
    """Yield a line for each input, output, declared shape and weight."""
    sides = (("input", graph.input), ("output", graph.output), ("shape", graph.value_info))
    for kind, values in sides:
        for value in values:
            yield _Line(body, f"{kind} {value.name}", f"{kind} {Port.of(value)}")
    for tensor in graph.initializer:
        yield _Line(body, f"weight {tensor.name}", f"weight {tensor.name}: {_tensor(tensor)}")
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        kind = f"{_type(sparse.values.data_type, sparse.dims)} sparse"
        text = f"weight {name}: {kind}, values {_tensor(sparse.values)}, indices {_tensor(sparse.indices)}"
        yield _Line(body, f"weight {name}", text)


def _node(node: onnx.NodeProto) -> str:
    operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
    attributes = ", ".join(
        f"{item.name} = {_tensor(item.t) if item.type == AttributeProto.TENSOR else attribute_text(item)}"
        for item in sorted(node.attribute, key=lambda item: item.name)
    )
    inputs = ", ".join(name or '""' for name in node.input)
    outputs = ", ".join(name or '""' for name in node.output)
    return f"{outputs} = {operator}{f' <{attributes}>' if attributes else ''} ({inputs})"


def _type(dtype: int, dims: Iterable[int]) -> str:
    return f"{TensorProto.DataType.Name(dtype).lower()}{list(dims)}"


def _tensor(tensor: TensorProto) -> str:
    kind = _type(tensor.data_type, tensor.dims)
    if tensor.data_location == TensorProto.EXTERNAL:
        return kind
    elements = 1
    for dim in tensor.dims:
        elements *= dim
    if elements <= _VALUES and tensor.data_type != TensorProto.STRING:
        return f"{kind} {numpy_helper.to_array(tensor).tolist()}"
    nameless = TensorProto()
    nameless.CopyFrom(tensor)
    nameless.ClearField("name")
    digest = hashlib.blake2b(nameless.SerializeToString(deterministic=True), digest_size=4).hexdigest()
    return f"{kind} #{digest}"
