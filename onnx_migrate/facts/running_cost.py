"""Whether a run of a model can end at all: values that fit no memory, and loops that turn for hours, found without a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

import onnx
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes, skeleton
from onnx_migrate.model.graphs import nested_bodies, node_label, producers, subgraphs
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.standard.schema import is_onnx

__all__ = ["MOST_TURNS", "why_not_run"]

MOST_TURNS = 10**8
"""Turns of loops in loops, of which each takes ONNX Runtime a microsecond at least, and five with a node in it."""

_COPIES = 4
"""Runs of which a verification has the outputs at the same time: of two models, on two inputs."""

_MOST_NODES = 20_000
"""Nodes above which nothing is inferred for this question: it would take a second, and a run has limits all the same."""


def why_not_run(proto: onnx.ModelProto, memory: int | None) -> str:
    """Return why a run would not end within these bytes of memory, or within hours; "" where nothing says so.

    Only what is certain from the file counts: sizes that do not depend on inputs, and loops with a constant number of turns
    whose condition stays true. Reads no weights.
    """
    if sum(len(body.node) for _, body in nested_bodies(proto.graph)) > _MOST_NODES:
        return ""
    try:
        inferred = infer_shapes(skeleton(proto))
    except InferenceError:
        inferred = proto
    sizes: dict[str, tuple[int, ...]] = {}
    for _, body in nested_bodies(inferred.graph):
        assert isinstance(body, GraphProto)
        for value in (*body.value_info, *body.output, *body.input):
            tensor = value.type.tensor_type
            dims = tuple(dim.dim_value for dim in tensor.shape.dim)
            if not all(dim.HasField("dim_value") for dim in tensor.shape.dim) or min(dims, default=0) < 0:
                continue
            size = byte_size(dims, tensor.elem_type) or prod(dims)
            if memory is not None and size > memory:
                return f"value {value.name!r} takes {size:,} bytes, and the memory limit is {memory:,}"
            sizes[value.name] = dims
    kept = sum(
        byte_size(sizes[value.name], value.type.tensor_type.elem_type) or 0
        for value in inferred.graph.output
        if value.name in sizes
    )
    if memory is not None and _COPIES * kept > memory:
        return f"its outputs take {kept:,} bytes, {_COPIES} runs are compared, and the memory limit is {memory:,}"
    return next(_endless(proto.graph, _Known(sizes), 1), "")


@dataclass(frozen=True)
class _Known:
    """What is known in a body: shapes, and constants of its own and of the bodies around it."""

    shapes: dict[str, tuple[int, ...]]
    constants: dict[str, TensorProto] = field(default_factory=dict)

    def inside(self, body: GraphProto) -> _Known:
        found = dict(self.constants)
        for name in (*(value.name for value in body.input), *(n for node in body.node for n in node.output)):
            found.pop(name, None)
        found.update((tensor.name, tensor) for tensor in body.initializer)
        for node in body.node:
            if node.op_type == "Constant" and node.output:
                found.update((node.output[0], item.t) for item in node.attribute if item.name == "value")
        return _Known(self.shapes, found)

    def number(self, name: str) -> int | None:
        """Return a constant of one element."""
        tensor = self.constants.get(name)
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL or prod(tensor.dims) != 1:
            return None
        return int(numpy_helper.to_array(tensor).item())


def _endless(body: GraphProto, outer: _Known, turns: int) -> Iterator[str]:
    """Yield why a body does not end in time, each of whose nodes runs `turns` times."""
    known = outer.inside(body)
    for node in body.node:
        for _, _, inner in subgraphs(node):
            each: int | None = _turns(node, inner, known) if is_onnx(node.domain) else 1
            if each is None:
                yield f"the Loop {node_label(node)!r} has no end: its condition stays true"
            elif turns * each > MOST_TURNS:
                yield (
                    f"the {node.op_type} {node_label(node)!r} takes {turns * each:,} turns, and more than {MOST_TURNS:,} are"
                    " hours of work"
                )
            else:
                yield from _endless(inner, known, turns * max(1, each))


def _turns(node: NodeProto, body: GraphProto, known: _Known) -> int | None:
    """Return how often the sub-graph of a node runs: 1 where that is not known, None where it does not end."""
    if node.op_type == "Scan":
        rows = next((item.i for item in node.attribute if item.name == "num_scan_inputs"), 0)
        shapes = [known.shapes.get(name) for name in list(node.input)[-rows:]] if rows > 0 else []
        return max((shape[0] for shape in shapes if shape), default=1)
    if node.op_type != "Loop" or len(node.input) < 2 or not _stays_true(node, body, known):
        return 1
    if not node.input[0]:
        return None
    count = known.number(node.input[0])
    return 1 if count is None else count


def _stays_true(node: NodeProto, body: GraphProto, known: _Known) -> bool:
    """Return whether the condition of a Loop is true at the start and after each turn."""
    if node.input[1] and known.number(node.input[1]) != 1:
        return False
    if len(body.input) < 2 or not body.output:
        return False
    made, name = producers(body), body.output[0].name
    for _ in body.node:
        step = made.get(name)
        if step is None or step.op_type != "Identity":
            break
        name = step.input[0]
    return name == body.input[1].name or known.inside(body).number(name) == 1
