"""If and Loop below opset 11: equal shapes in branches, and a carried value. Also finds the readers of a body's value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.scope import Scope
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import nested_bodies, output_names, subgraphs
from onnx_migrate.plugins import LostTypes, LoweringRewriter, compatible, lowering

__all__ = ["readers", "rename_reads"]


def readers(scope: Scope, value: str) -> Iterator[tuple[str, int]]:
    """Yield the operator and the input's index of each node that reads a value. An output of a body gives ("", 0)."""
    for _, body in nested_bodies(scope.body):
        if value in output_names(body):
            yield "", 0
        for node in body.node:
            for index, name in enumerate(node.input):
                if name == value:
                    yield node.op_type, index


def rename_reads(body: onnx.GraphProto | onnx.FunctionProto, old: str, new: str) -> None:
    """Rename a value wherever a body reads it: in nodes, in sub-graphs, and in the outputs of a graph."""
    if isinstance(body, onnx.GraphProto):
        for value in body.output:
            if value.name == old:
                value.name = new
    for node in body.node:
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new
        for _, _, inner in subgraphs(node):
            if all(value.name != old for value in inner.input):
                rename_reads(inner, old, new)


compatible("If", 11, reason="the branches may output different shapes")

compatible(
    "Loop", 11, reason="trip count and condition may both be omitted, and no loop-carried value is required"
)


@lowering("Loop", leaves=11, types=LostTypes.OWN)
def loop_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A Loop carries at least one value from round to round.

    What changes: a Loop without carried values gets an idle one. Its body passes the value on, and no node reads it.

    Why equal: the changelog of version 11 allows a Loop without carried values and changes nothing else.
    """
    if len(node.input) > 2:
        return
    body = rw.get("body")
    if len(body.input) != 2:
        rw.refuse(
            f"its body has {count_of(len(body.input), 'input')}, and the node carries no values",
            code="invalid-node",
        )
    idle_input, handed_on = rw.fresh("idle_in"), rw.fresh("idle_out")
    inner = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    inner.input.append(helper.make_tensor_value_info(idle_input, TensorProto.FLOAT, [1]))
    inner.node.append(helper.make_node("Identity", [idle_input], [handed_on], name=rw.fresh("idle")))
    outputs = list(inner.output)
    del inner.output[:]
    inner.output.extend(
        [outputs[0], helper.make_tensor_value_info(handed_on, TensorProto.FLOAT, [1]), *outputs[1:]]
    )
    node.input.append(rw.constant(np.zeros(1, np.float32), "idle"))
    node.output.insert(0, rw.fresh("idle_result"))


@lowering("If", leaves=11, types=LostTypes.OWN)
def if_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Both branches of an If return values of the same shape.

    What changes: if two branches may give a value different shapes, each branch reshapes it to its own shape. The shape is
    then known only at run time. A zero computed from the condition is added to that shape, so that no optimiser computes it
    when it loads the model.

    Why equal: a Reshape to its own shape does not change a tensor. Version 11 allows different shapes, and runtimes gave them
    before. However, ONNX Runtime fails to load an older If if it infers different shapes for its branches.
    """
    branches = [attribute.g for name in _BRANCHES for attribute in node.attribute if attribute.name == name]
    index = next(
        (number for number, other in enumerate(rw.scope.body.node) if other is node or other == node), None
    )
    if len(branches) < 2 or index is None:
        return
    scopes = [
        rw.scope.inner(node, index, name, 0, graph) for name, graph in zip(_BRANCHES, branches, strict=True)
    ]
    for number in range(len(node.output)):
        shapes = [
            scope.value_type(graph.output[number].name).shape
            for scope, graph in zip(scopes, branches, strict=True)
        ]
        if shapes[0] == shapes[1]:
            continue
        for graph in branches:
            _hide_shape(graph, number, rw)
        rw.note(
            "a value whose shape may differ between the branches is reshaped there to the shape that it has"
        )


_BRANCHES = ("then_branch", "else_branch")


def _hide_shape(graph: onnx.GraphProto, place: int, rw: LoweringRewriter) -> None:
    """Reshape an output of a branch to its own shape, and declare it without a shape."""
    output, condition = graph.output[place], rw.input(0)

    def write(operator: str, *inputs: str, **attributes: Any) -> str:
        name = rw.fresh(operator.lower())
        graph.node.append(
            helper.make_node(operator, list(inputs), [name], name=f"{name}_{operator}", **attributes)
        )
        return name

    false = write("And", condition, write("Not", condition))
    shape = write("Add", write("Shape", output.name), write("Cast", false, to=TensorProto.INT64))
    output.name = write("Reshape", output.name, shape)
    if output.type.HasField("tensor_type"):
        output.type.tensor_type.ClearField("shape")
