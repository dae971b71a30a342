"""Scan has no batch axis from opset 9 on, has negative axes from opset 11 on, and becomes a Loop below opset 8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, helper

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.formula import LostTypes, Op, Value
from onnx_migrate.plugins import (
    Exactness,
    LoweringRewriter,
    Rewriter,
    adapter,
    compatible,
    impossible,
    lowering,
)

from .control_flow import rename_reads

compatible("Scan", 11, reason="negative axes are allowed")


@adapter("Scan", to=9)
def scan_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The batch axis was removed: an outer Scan iterates over the batch, and an inner one over the sequence.

    What changes: the inner Scan has the old body and states, and `directions` as `scan_input_directions`. The outer one has no
    states; it scans axis 0 of all inputs and stacks the outputs of the inner one.

    Why equal: the pseudo-code of Scan-8 is a loop over the batch around a loop over the sequence.

    Limits: onnx-migrate refuses sequence_lens that may give sequences of one batch different lengths.
    """
    if rw.input(0) and not _full_length(rw):
        rw.refuse(
            "has sequence_lens, which are not known to equal the length of the sequence axis",
            code="sequence-lens",
            hint="use sequences of one length and omit sequence_lens",
        )
    scanned = int(rw.get("num_scan_inputs"))
    directions = rw.pop("directions")
    names = list(node.input[1:])
    inner = onnx.NodeProto(op_type="Scan", name=rw.fresh("sequence"))
    inner.attribute.add().CopyFrom(_attribute(rw, "body"))
    inner.attribute.append(helper.make_attribute("num_scan_inputs", scanned))
    if directions:
        inner.attribute.append(helper.make_attribute("scan_input_directions", directions))
    inner.input.extend(rw.fresh(f"{name}_of_batch") for name in names)
    inner.output.extend(rw.fresh(f"{name or 'unused'}_of_batch") for name in node.output)
    batch = onnx.GraphProto(name=rw.fresh("batch"), node=[inner])
    for name, outer in zip(inner.input, names, strict=True):
        batch.input.append(onnx.ValueInfoProto(name=name, type=_element_type(rw, outer)))
    for name, outer in zip(inner.output, node.output, strict=True):
        batch.output.append(onnx.ValueInfoProto(name=name, type=_element_type(rw, outer)))
    rw.set("body", batch)
    rw.set("num_scan_inputs", len(names))
    del node.input[0]


def _full_length(rw: Rewriter) -> bool:
    lengths, shape = rw.constant_value(rw.input(0)), rw.shape(rw.node.input[-1])
    return lengths is not None and shape is not None and len(shape) > 1 and bool((lengths == shape[1]).all())


def _attribute(rw: Rewriter, name: str) -> onnx.AttributeProto:
    attribute = rw.attribute(name)
    assert attribute is not None  # The schema of version 8 requires it.
    return attribute


def _element_type(rw: Rewriter, value: str) -> TypeProto:
    """Return a value's type without its shape; the element type is UNDEFINED if it is unknown."""
    type_ = TypeProto()
    type_.tensor_type.elem_type = (rw.dtype(value) if value else None) or TensorProto.UNDEFINED
    return type_


impossible(
    "Scan",
    8,
    why="no operator below opset 8 iterates over a batch of sequences and the steps of each",
    hint=Advice("migrate to opset 9: the Scan of that version has no batch axis", options={"opset": 9}),
)


@lowering("Scan", leaves=11)
def scan_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`scan_input_axes` and `scan_output_axes` are counted from the front.

    What changes: negative axes are replaced by the same ones counted from the front.

    Why equal: the changelog of version 11 adds negative axes and nothing else.

    Limits: if a rank is unknown, negative axes stay, and the report says so. ONNX Runtime supports them at opset 10.
    """
    scanned = int(rw.get("num_scan_inputs"))
    states = len(node.input) - scanned
    for name, values in (
        ("scan_input_axes", list(node.input)[states:]),
        ("scan_output_axes", list(node.output)[states:]),
    ):
        axes = rw.get(name)
        if axes is None or all(axis >= 0 for axis in axes):
            continue
        ranks = [rw.rank(value) for value in values]
        if any(rank is None and axis < 0 for axis, rank in zip(axes, ranks, strict=False)):
            rw.note(
                "runtimes are assumed to take a negative axis below opset 11, since the rank is unknown",
                Exactness.ASSUMED,
            )
        rw.set(
            name,
            [
                axis + rank if axis < 0 and rank is not None else axis
                for axis, rank in zip(axes, ranks, strict=False)
            ],
        )


@lowering("Scan", leaves=9, types=LostTypes.OWN)
def scan_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Version 8 has a batch axis: Scan iterates over a batch of one sequence, or for a target below 8 a Loop over the steps.

    What changes: every input gets a first axis of one element, which the outputs lose. Scanned axes move to the front before,
    and to their place after. Outputs that are stacked in reverse are reversed by a Gather. The Loop gathers the elements of each
    step.

    Why equal: the pseudo-code of Scan-8 is a loop over the batch around that of Scan-9. Values are moved, never computed
    with.

    Limits: the ranks of inputs and outputs that are scanned along another axis than the first must be known.
    """
    scanned = int(rw.get("num_scan_inputs"))
    states = len(node.input) - scanned
    input_axes = rw.pop("scan_input_axes", [0] * scanned)
    directions = rw.pop("scan_input_directions", None)
    stacked = len(node.output) - states
    output_axes = rw.pop("scan_output_axes", [0] * stacked)
    output_directions = rw.pop("scan_output_directions", [0] * stacked)
    op = Op(rw)
    steps = op.size_of(Value(op, node.input[states]), input_axes[0]).name
    names = list(node.input)
    for index, axis in enumerate(input_axes):
        if axis != 0:
            source = names[states + index]
            rank = rw.need_rank(source)
            perm = [axis, *(other for other in range(rank) if other != axis)]
            names[states + index] = rw.before("Transpose", [source], hint="steps_first", perm=perm)
    backwards = ""
    if any(output_directions):
        count = Value(op, steps)
        backwards = (count - np.array([1]) - op.iota(count)).name
    batched = rw.target >= 8
    outputs = list(node.output)
    if batched:
        names = [rw.before("Unsqueeze", [name], hint="batch", axes=[0]) for name in names]
        rw.set("directions", directions or [0] * scanned)
        del node.input[:]
        node.input.extend(["", *names])
    else:
        _write_loop(rw, names, states, steps, directions or [0] * scanned)
        if not states:
            node.output.insert(0, rw.fresh("idle"))
    for index, name in enumerate(outputs):
        if not name:
            continue
        number = index - states
        axis = output_axes[number] if number >= 0 else 0
        reverse = number >= 0 and bool(output_directions[number])
        work: list[tuple[str, list[str], dict[str, Any]]] = []
        if batched:
            work.append(("Squeeze", [], {"axes": [0]}))
        if reverse:
            work.append(("Gather", [backwards], {"axis": 0}))
        if axis != 0:
            rank = rw.need_rank(name)
            perm = [*range(1, axis + 1), 0, *range(axis + 1, rank)]
            work.append(("Transpose", [], {"perm": perm}))
        if not work:
            continue
        value = rw.detach_output(index if batched or states else index + 1, "stacked")
        for position, (operator, more, attributes) in enumerate(work):
            result = name if position == len(work) - 1 else rw.fresh(operator.lower())
            rw.after(operator, [value, *more], [result], **attributes)
            value = result


def _body(rw: LoweringRewriter) -> onnx.GraphProto:
    attribute = rw.attribute("body")
    assert attribute is not None  # The schema requires it.
    return attribute.g


def _write_loop(
    rw: LoweringRewriter, names: list[str], states: int, steps: str, directions: list[int]
) -> None:
    """Make the node a Loop whose body gathers the elements of its step from the scanned inputs."""
    node, inner = rw.node, onnx.GraphProto()
    inner.CopyFrom(_body(rw))
    counter, go, going = rw.fresh("step"), rw.fresh("go"), rw.fresh("going")
    scanned = list(inner.input)[states:]
    nodes = [helper.make_node("Identity", [go], [going], name=rw.fresh("copy"))]
    for index, (element, source) in enumerate(zip(scanned, names[states:], strict=True)):
        at = counter
        # An input of a body may have the name of a value around it, another value may not.
        own = rw.fresh("element")
        rename_reads(inner, element.name, own)
        if directions[index]:
            count = rw.before("Reshape", [steps, _scalar_shape(rw)], hint="steps")
            last = rw.before("Sub", [count, rw.constant(np.array(1, np.int64), "one")], hint="last")
            at = rw.fresh("place")
            nodes.append(helper.make_node("Sub", [last, counter], [at], name=rw.fresh("backwards")))
        nodes.append(helper.make_node("Gather", [source, at], [own], name=rw.fresh("gather"), axis=0))
    carried = list(inner.input)[:states]
    del inner.input[states:]
    del inner.input[:]
    inner.input.append(helper.make_tensor_value_info(counter, TensorProto.INT64, []))
    inner.input.append(helper.make_tensor_value_info(go, TensorProto.BOOL, []))
    outputs = list(inner.output)
    del inner.output[:]
    inner.output.append(helper.make_tensor_value_info(going, TensorProto.BOOL, []))
    start = names[:states]
    if states:
        inner.input.extend(carried)
    else:  # Loop-1 carries at least one value.
        idle, idled = rw.fresh("idle"), rw.fresh("idle")
        inner.input.append(helper.make_tensor_value_info(idle, TensorProto.INT64, []))
        inner.output.append(helper.make_tensor_value_info(idled, TensorProto.INT64, []))
        nodes.append(helper.make_node("Identity", [idle], [idled], name=rw.fresh("copy")))
        start = [rw.constant(np.array(0, np.int64), "zero")]
    inner.output.extend(outputs)
    body_nodes = list(inner.node)
    del inner.node[:]
    inner.node.extend([*nodes, *body_nodes])
    rw.rename("Loop")
    rw.drop("num_scan_inputs")
    rw.set("body", inner)
    count = rw.before("Reshape", [steps, _scalar_shape(rw)], hint="steps")
    true = rw.constant(np.array(True), "true")
    del node.input[:]
    node.input.extend([count, true, *start])


def _scalar_shape(rw: LoweringRewriter) -> str:
    return rw.constant(np.zeros(0, np.int64), "scalar")
