"""Split: its lengths became an attribute (opset 2) and an input (13); num_outputs was added (18)."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.formula import Op, Value
from onnx_migrate.plugins import (
    Exactness,
    LostTypes,
    LoweringRewriter,
    Rewriter,
    adapter,
    compatible,
    lowering,
)

compatible("Split", 11, reason="a negative axis is allowed")


@adapter("Split", to=2)
def split_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The lengths, which could be an input, become the attribute `split`, and `axis` is set if it was omitted.

    What changes: lengths that are known only at run time become the input of Split-13.

    Limits: version 1 does not specify the default of axis; 0, the default of version 2, is assumed.
    """
    if rw.attribute("axis") is None:
        rw.set("axis", 0)
        rw.note("axis was omitted; 0 is assumed, the default from opset 2 on", Exactness.ASSUMED)
    lengths = rw.input(1)
    if not lengths:
        return
    fixed = rw.constant_value(lengths)
    if fixed is not None:
        rw.set("split", [int(length) for length in fixed])
        rw.set_input(1, "")
    elif rw.target >= 13:
        rw.version = 13
        rw.drop("split")
        rw.set_input(1, rw.before("Cast", [lengths], hint="split", to=TensorProto.INT64))
    else:
        rw.refuse(
            "its lengths are known only at run time, and Split-2 takes constant ones",
            code="needs-value",
            hint=Advice("target opset 13 or newer, where they are an input", options={"opset": 13}),
        )


@adapter("Split", to=13)
def split_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`split` moves from an attribute to an input."""
    rw.attribute_to_input("split", 1)


@adapter("Split", to=18)
def split_18(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`num_outputs` is set if no lengths are given.

    Why equal: before, the parts had to have equal lengths, and then num_outputs yields the same parts.
    """
    if not rw.input(1):
        rw.set_input(1, "")
        rw.set("num_outputs", len(node.output))


@lowering("Split", leaves=18)
def split_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`num_outputs` is dropped, or an input with the lengths of the parts replaces it.

    What changes: if the length of the axis is known and all parts have the same one, `num_outputs` is dropped. Else the lengths
    become an input. For a length n and k parts, all parts but the last are ceil(n / k) long, and the last part has the rest. If
    n is not known, they are computed from the input's shape. If n is known and too small, the last parts are empty; ONNX
    Runtime fails on such a node of version 18.

    Why equal: the text of Split-18; below, parts without lengths are equal.
    """
    if rw.pop("num_outputs") is None or rw.input(1):
        return
    parts = len(node.output)
    source, axis = rw.input(0), int(rw.get("axis", 0))
    shape = rw.shape(source)
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if parts == 1 or (length is not None and length % parts == 0):
        return
    if length is not None:
        each = -(-length // parts)
        lengths = [min(each, max(0, length - each * index)) for index in range(parts)]
        rw.set_input(1, rw.constant(np.array(lengths), "lengths"))
        return
    op = Op(rw)
    total = op.Gather(op.Shape(op.input(0)), [axis], axis=0)
    part = (total + np.array([parts - 1])) / np.array([parts])
    last = total - part * np.array([parts - 1])
    rw.set_input(1, op.Concat(*[part] * (parts - 1), last, axis=0).name)


@lowering("Split", leaves=13, types=LostTypes.EXACT)
def split_13_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The lengths of the parts move from an input to an attribute.

    What changes: constant lengths become the attribute `split`. Lengths that are computed at run time become a Slice for
    each part, whose bounds are their sums.

    Why equal: the changelog of version 13 moves the attribute and changes nothing else.

    Limits: lengths at run time that do not add up to the length of the axis are no error any more.
    """
    lengths = rw.known(rw.input(1)) if rw.input(1) else None
    if rw.input(1) and lengths is None:
        _slices(rw)
        return
    rw.set_input(1, "")
    if lengths is not None:
        rw.set("split", [int(length) for length in np.reshape(lengths, -1)])


def _slices(rw: LoweringRewriter) -> None:
    op, axis = Op(rw), int(rw.get("axis", 0))
    x, lengths, start = op.input(0), Value(op, rw.use_at_run_time(1, "lengths")), op.constant([0])
    parts: list[Value | None] = []
    for index, name in enumerate(rw.node.output):
        length = op.Gather(lengths, [index], axis=0)
        end = start + length if index else length
        parts.append(op.write("Slice", x, start, end, [axis]) if name else None)
        start = end
    op.note("lengths at run time: each part is a Slice")
    op.end(parts)
