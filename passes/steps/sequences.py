"""Sequences: below opset 11 their tensors replace them; SequenceMap below 17 becomes a Loop."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import Array, LostTypes, Op, Value
from onnx_migrate.plugins import LoweringRewriter, lowering

from ..split_parts import drops_axis, part_lengths
from .control_flow import readers, rename_reads

_DISSOLVED = frozenset(
    {
        "ConcatFromSequence", "Identity", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
        "SequenceErase", "SequenceInsert", "SequenceLength",
    }
)  # fmt: skip
"""The operators that can read a dissolved sequence, as their first input."""

_HINT = "let the model pass on tensors, or make positions and the number of elements constants"


@lowering("SequenceConstruct", leaves=11, types=LostTypes.OWN)
def sequence_construct_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: the nodes that read this one read its tensors.

    Why equal: a sequence is the list of the tensors put into it, which is known in the body that builds it.

    Limits: onnx-migrate refuses a sequence that is an output, or that If, Loop or a function reads.
    """
    _dissolve(rw, list(node.input))


@lowering("SequenceEmpty", leaves=11, types=LostTypes.OWN)
def sequence_empty_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: the nodes that read this one get no tensors.

    Limits: onnx-migrate refuses a sequence that is an output, or that If, Loop or a function reads.
    """
    _dissolve(rw, [])


@lowering("SequenceInsert", leaves=11, types=LostTypes.OWN)
def sequence_insert_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: the nodes that read this one read its tensors.

    Limits: the sequence must be built in the same body, the position a constant.
    """
    elements = _elements(rw)
    position = _position(rw, 2, len(elements), len(elements) + 1)
    _dissolve(rw, [*elements[:position], rw.input(1), *elements[position:]])


@lowering("SequenceErase", leaves=11, types=LostTypes.OWN)
def sequence_erase_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: the nodes that read this one read its tensors.

    Limits: the sequence must be built in the same body, the position a constant.
    """
    elements = _elements(rw)
    position = _position(rw, 1, len(elements) - 1, len(elements))
    _dissolve(rw, [*elements[:position], *elements[position + 1 :]])


@lowering("SequenceAt", leaves=11, types=LostTypes.OWN)
def sequence_at_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: the node's readers get the tensor at the position.

    Limits: the sequence must be built in the same body, the position a constant.
    """
    elements = _elements(rw)
    position = _position(rw, 1, 0, len(elements))
    rw.rename("Identity")
    del node.input[:]
    node.input.append(elements[position])


@lowering("SequenceLength", leaves=11, types=LostTypes.OWN)
def sequence_length_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: the number of tensors is a constant.

    Limits: the sequence must be built in the same body.
    """
    length = rw.constant(np.array(len(_elements(rw)), np.int64), "length")
    rw.rename("Identity")
    node.input[0] = length


@lowering("SplitToSequence", leaves=11, types=LostTypes.OWN)
def split_to_sequence_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: Split writes the parts, and the nodes that read the sequence read them.

    Limits: the lengths must be constants. If they are omitted or one number, the size of the axis must be known.
    """
    source, axis = rw.input(0), int(rw.get("axis", 0))
    if axis < 0:
        axis += rw.need_rank(source)
    sizes = rw.need_constant(1, "split") if rw.input(1) else np.array(1)
    lengths = _lengths(rw, sizes, source, axis)
    drops = drops_axis(int(rw.get("keepdims", 1)), sizes, lengths)
    names = [rw.fresh("part") for _ in lengths]
    if len(names) == 1:
        names = [source]
    elif names:
        rw.before("Split", [source], hint="part", outputs=len(names), axis=axis, split=lengths)
        names = list(rw.preceding[-1].output)
    op = Op(rw)
    _dissolve(rw, [op.Squeeze(Value(op, name), [axis]).name for name in names] if drops else names)


@lowering("ConcatFromSequence", leaves=11, types=LostTypes.OWN)
def concat_from_sequence_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There are no sequences: Concat joins the tensors, with an axis inserted into each for new_axis.

    Limits: the sequence must be built in the same body. For a negative axis the rank of the tensors must be known.
    """
    elements = list(_elements(rw))
    axis, new = int(rw.get("axis")), bool(rw.pop("new_axis", 0))
    if not elements:
        rw.refuse("joins the tensors of an empty sequence", code="invalid-node")
    if axis < 0:
        axis += rw.need_rank(elements[0]) + new
    if new:
        op = Op(rw)
        elements = [op.Unsqueeze(Value(op, element), [axis]).name for element in elements]
    rw.rename("Concat")
    rw.set("axis", axis)
    del node.input[:]
    node.input.extend(elements)


@lowering("SequenceMap", leaves=17, types=LostTypes.OWN)
def sequence_map_17_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no SequenceMap: a Loop reads the elements, and inserts the results into sequences.

    Why equal: the standard defines SequenceMap by this Loop (onnx/defs/sequence/defs.cc).

    Limits: the element types of the results must be known, and whether each input is a sequence. Below opset 13 a Loop
    carries no sequences.
    """
    inner = onnx.GraphProto()
    inner.CopyFrom(next(attribute.g for attribute in node.attribute if attribute.name == "body"))
    if len(inner.input) != len(node.input) or len(inner.output) != len(node.output):
        rw.refuse("its body has another number of inputs or outputs", code="invalid-node")
    counter, go, going = rw.fresh("number"), rw.fresh("go"), rw.fresh("going")
    nodes = [helper.make_node("Identity", [go], [going], name=rw.fresh("copy"))]
    for index, (value, source) in enumerate(zip(list(inner.input), list(node.input), strict=True)):
        value_type = rw.scope.value_type(source)
        if not value_type.container and value_type.dtype is None and index:
            rw.refuse(f"whether {source!r} is a sequence is unknown", code="needs-type")
        element = source
        if value_type.container or not index:
            element = rw.fresh("element")
            nodes.append(helper.make_node("SequenceAt", [source, counter], [element], name=rw.fresh("at")))
        rename_reads(inner, value.name, element)
    results = list(inner.output)
    body_nodes = list(inner.node)
    del inner.input[:], inner.output[:], inner.node[:]
    inner.input.append(helper.make_tensor_value_info(counter, TensorProto.INT64, []))
    inner.input.append(helper.make_tensor_value_info(go, TensorProto.BOOL, []))
    inner.output.append(helper.make_tensor_value_info(going, TensorProto.BOOL, []))
    starts, inserts = [], []
    for result in results:
        dtype = result.type.tensor_type.elem_type or rw.dtype(result.name)
        if not dtype:
            rw.refuse(f"the element type of {result.name!r} in its body is unknown", code="needs-type")
        starts.append(rw.before("SequenceEmpty", [], hint="empty", dtype=dtype))
        before, after = rw.fresh("before"), rw.fresh("after")
        sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(dtype, None))
        inner.input.append(onnx.ValueInfoProto(name=before, type=sequence))
        inner.output.append(onnx.ValueInfoProto(name=after, type=sequence))
        inserts.append(
            helper.make_node("SequenceInsert", [before, result.name], [after], name=rw.fresh("insert"))
        )
    inner.node.extend([*nodes, *body_nodes, *inserts])
    count = rw.before("SequenceLength", [rw.input(0)], hint="count")
    rw.rename("Loop")
    rw.set("body", inner)
    del node.input[:]
    node.input.extend([count, rw.constant(np.array(True), "true"), *starts])


@lowering("Identity", leaves=14, types=LostTypes.OWN)
def identity_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Sequences are passed on without an Identity.

    What changes: all that reads a copy of a sequence reads the sequence itself.

    Limits: onnx-migrate refuses a copy of a sequence that is an output.
    """
    if rw.scope.value_type(rw.input(0)).container.startswith("seq"):
        pass_on(rw, "a sequence")


def pass_on(rw: LoweringRewriter, what: str) -> None:
    """Drop an Identity; all that reads its output reads its input."""
    old, new = rw.output(0), rw.input(0)
    if any(not operator for operator, _ in readers(rw.scope, old)):
        rw.refuse(
            f"outputs {what}, which Identity does not take below opset {rw.version + 1}",
            code="no-equal",
            hint="let the model output what the Identity reads",
        )
    rename_reads(rw.scope.body, old, new)
    rw.remove()


def _dissolve(rw: LoweringRewriter, elements: list[str]) -> None:
    for operator, index in readers(rw.scope, rw.output(0)):
        if operator not in _DISSOLVED or index:
            use = f"is read by {operator}" if operator else "is an output"
            rw.refuse(
                f"there are no sequences below opset 11, and {rw.output(0)!r} {use}",
                code="no-equal",
                hint=_HINT,
            )
    rw.dissolve(elements)


def _elements(rw: LoweringRewriter) -> tuple[str, ...]:
    elements = rw.elements(rw.input(0))
    if elements is None:
        _refuse(rw, f"of {rw.input(0)!r} it is not known which tensors it holds")
    return elements


def _position(rw: LoweringRewriter, index: int, default: int, end: int) -> int:
    if not rw.input(index):
        return default
    position = int(rw.need_number(index, "position"))
    if position < 0:  # counted from the end; an insertion may also be after the last element
        position += end - 1 if rw.node.op_type == "SequenceInsert" else end
    if not 0 <= position < end:
        rw.refuse(f"its position is not in the sequence, which has {end} places", code="invalid-node")
    return position


def _lengths(rw: LoweringRewriter, given: Array, source: str, axis: int) -> list[int]:
    size = None
    if not given.ndim:
        rw.need_rank(source)
        size = (rw.shape(source) or ())[axis]
        if size is None:
            rw.refuse(
                f"below opset 11 the size of axis {axis} of {source!r} must be known, because it determines the number of parts",
                code="needs-shape",
                hint=FIX_DIMS,
            )
    lengths = part_lengths(given, size)
    if lengths is None:
        _refuse(rw, f"an axis of {size} elements is not written as parts of {int(given)}")
    return lengths


def _refuse(rw: LoweringRewriter, reason: str) -> NoReturn:
    rw.refuse(f"there are no sequences below opset 11, and {reason}", code="no-equal", hint=_HINT)
