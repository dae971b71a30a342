"""Reshape, for which a 0 in the shape always keeps a length below opset 14, and Flatten, of floats alone below 9."""

from __future__ import annotations

import math

import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Reshape", leaves=14, types=LostTypes.EXACT)
def reshape_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`allowzero` goes away: a 0 in the shape keeps the input's length.

    What changes: allowzero=0, the default, is dropped, and so is 1 where no 0 can be in the shape: where all of it is
    known, where it has a -1, beside which a 0 is invalid, and where the input is known not to be empty. A known shape with
    a 0 gives an empty tensor, which is written as a constant. An input that is known to be empty gives one too, of the
    shape that is computed at run time. Where one length alone is computed at run time, it is replaced by -1, which is the
    same length, 0 included. Where each such length is a symbolic dim of the input at the same place, a 0 keeps it. In all
    other shapes, a 0 is replaced by -1 at run time.

    Why equal: the text of Reshape-14: allowzero says what a 0 means and nothing else.

    Limits: in these other shapes, one length at most is assumed to be 0, and the report says so.
    """
    import numpy as np

    if not rw.pop("allowzero", 0):
        return
    source = rw.input(0)
    lengths = rw.partly_known(rw.input(1))
    if lengths is not None and None not in lengths and 0 in lengths:
        if -1 in lengths:
            rw.refuse(f"its shape {lengths} has a 0 and a -1, which allowzero=1 forbids", code="invalid-node")
        empty = np.zeros([length or 0 for length in lengths], rw.numpy_type(source))
        rw.rename("Identity")
        del node.input[1:]
        node.input[0] = rw.constant(empty, "empty")
        rw.note("the shape has a 0, so the result is an empty constant")
        return
    shape = rw.shape(source)
    full = shape is not None and all(shape)
    if shape is not None and 0 in shape and rw.numpy_type(source).kind in "fiub":
        rw.rename("ConstantOfShape")
        node.input[:] = [rw.input(1)]
        rw.set("value", helper.make_tensor("", rw.need_dtype(source), [1], [0]))
        rw.note("the tensor is empty, so the result is as well")
        return
    if full or (lengths is not None and (None not in lengths or -1 in lengths)):
        return
    if lengths is not None and lengths.count(None) == 1 and 0 not in lengths:
        filled = [-1 if length is None else length for length in lengths]
        rw.set_input(1, rw.constant(np.array(filled), "shape"))
        rw.note("the length that is computed at run time is written as -1")
        return
    if lengths is not None and _zeros_are_kept(rw, lengths):
        return
    zero = rw.constant(np.zeros(1, np.int64), "zero")
    zeros = rw.before("Cast", [rw.before("Equal", [rw.input(1), zero])], hint="zeros", to=TensorProto.INT64)
    rw.set_input(1, rw.before("Sub", [rw.input(1), zeros], hint="shape"))
    rw.note(
        "a length of 0 that is computed at run time is written as -1, if there is one alone",
        Exactness.ASSUMED,
    )


def _zeros_are_kept(rw: LoweringRewriter, lengths: list[int | None]) -> bool:
    """Return whether each length that is computed at run time is that of the input at the same place, by its name."""
    old, new = rw.scope.value_type(rw.input(0)).symbols, rw.scope.value_type(rw.output(0)).symbols
    return all(
        place < min(len(old), len(new)) and old[place] != "" and old[place] == new[place]
        for place, length in enumerate(lengths)
        if length is None
    )


@lowering("Flatten", leaves=9, types=LostTypes.OWN)
def flatten_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Other types than floats are reshaped.

    What changes: a Flatten of another type than float16, float and double becomes a Reshape to the two lengths, which are
    computed from the shape where they are not fixed.

    Why equal: both keep the elements in their order.

    Limits: the element type must be known, and where lengths are not fixed, the tensor is assumed not to be empty.
    """
    import numpy as np

    source, axis = rw.input(0), int(rw.get("axis", 1))
    if rw.need_dtype(source) in (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE):
        return
    shape = rw.shape(source)
    rw.drop("axis")
    if shape is not None and None not in shape:
        sizes = [math.prod(size or 0 for size in part) for part in (shape[:axis], shape[axis:])]
        if 0 in sizes:
            node.input[0] = rw.constant(np.zeros(sizes, rw.numpy_type(source)), "empty")
            rw.rename("Identity")
            return
        new = rw.constant(np.array(sizes), "shape")
    else:
        if axis <= 1:
            new = rw.constant(np.array([0 if axis else 1, -1]), "shape")
        else:
            lengths = rw.before("Shape", [source], hint="lengths")
            first = rw.before("Gather", [lengths, rw.constant(np.array([0]), "at")], hint="first")
            for place in range(1, axis):
                at = rw.constant(np.array([place]), "at")
                first = rw.before("Mul", [first, rw.before("Gather", [lengths, at], hint="length")])
            rest = rw.constant(np.array([-1]), "rest")
            new = rw.before("Concat", [first, rest], hint="shape", axis=0)
        rw.note("a Reshape to two lengths, if the tensor is not empty", Exactness.ASSUMED)
    rw.rename("Reshape")
    rw.set_input(1, new)
