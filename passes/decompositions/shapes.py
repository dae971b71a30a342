"""Operators that move or reinterpret elements, written with Reshape, Transpose and Slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx

from onnx_migrate.engine.steps.decomposition_registry import decomposition
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from ..lowerings.building import integers, reduce, slice_axes
from ..lowerings.building import squeeze as drop_axes
from .forms import become, number


@decomposition("Flatten")
def flatten(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is a Reshape to two axes.

    What changes: Reshape, with the length of one axis written and the other one left to it.

    Why equal: the text. Bit for bit.

    Limits: the lengths before `axis` or those from it on must be fixed, unless `axis` is 0 or 1.
    """
    x, axis = rw.input(0), int(rw.get("axis", 1))
    if axis < 0:
        axis += rw.need_rank(x)
    if axis in (0, 1):
        become(rw, "Reshape", x, integers(rw, 0 if axis else 1, -1))
        return
    shape = rw.shape(x) or (None,) * (axis + 1)
    for part, build in ((shape[:axis], (True, False)), (shape[axis:], (False, True))):
        sizes = [size for size in part if size is not None]
        if len(sizes) == len(part) and 0 not in sizes:
            length = math.prod(sizes)
            become(rw, "Reshape", x, integers(rw, *(length if own else -1 for own in build)))
            return
    rw.refuse(f"the lengths of {x!r} before axis {axis}, or those behind, must be fixed", code="needs-shape")


@decomposition("Squeeze", "Unsqueeze")
def squeeze(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is a Reshape to the shape that results.

    What changes: Reshape; at most one length is left to it, others are written.

    Why equal: the text. Bit for bit.

    Limits: at most one length of the result may be open, unless it stands where it stood before.
    """
    output = rw.output(0)
    shape, given = rw.shape(output), rw.shape(rw.input(0))
    if shape is None or given is None:
        rw.refuse(f"the shape of {output!r} must be known", code="needs-shape")
    axes = rw.get("axes")
    if axes is None and rw.input(1):
        known = rw.known(rw.input(1))
        axes = None if known is None else [int(axis) for axis in known.reshape(-1)]
    elif axes is None:  # of a Squeeze: all that are 1
        axes = [0]
    rank = max(len(given), len(shape))
    same = 0 if axes is None else min((axis % rank for axis in axes), default=rank)
    numbers = _reshape_to(same, shape)
    if numbers is None:
        rw.refuse(
            f"more than one length of {output!r} is open",
            code="needs-shape",
            hint="fix the dims of the model's inputs with --fix",
        )
    become(rw, "Reshape", rw.input(0), integers(rw, *numbers))


@decomposition("Size")
def size(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the product of the lengths.

    What changes: Shape and ReduceProd.

    Why equal: the text. Bit for bit.
    """
    become(rw, "Identity", reduce(rw, "ReduceProd", rw.before("Shape", [rw.input(0)]), [0], keepdims=False))


@decomposition("Shape")
def shape(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is a constant where all lengths are fixed.

    What changes: a Constant.

    Why equal: the text. Bit for bit.

    Limits: the shape must be fixed; below opset 9 a Constant holds floats only.
    """
    known = rw.known(rw.output(0)) if rw.output(0) else None
    if known is None or rw.version < 9:
        rw.refuse(
            f"the shape of {rw.input(0)!r} is not fixed",
            code="needs-shape",
            hint="fix the dims of the model's inputs with --fix",
        )
    become(rw, "Constant")
    rw.set("value", onnx.numpy_helper.from_array(known))


@decomposition("Dropout")
def dropout(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It does nothing in inference.

    What changes: Identity.

    Why equal: the text, where training_mode is false. Bit for bit.

    Limits: a mask that is read, and training, are refused.
    """
    mask = rw.output(1)
    if mask and rw.is_read(mask):
        rw.refuse(f"its mask {mask!r} is read", code="no-equal")
    training = rw.known(rw.input(2)) if rw.input(2) else np.array(False)
    if training is None or bool(training):
        rw.refuse("it trains, or may", code="no-equal")
    become(rw, "Identity", rw.input(0))
    del node.output[1:]


@decomposition("Gemm", exactness=Exactness.EQUIVALENT)
def gemm(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is alpha * A @ B + beta * C.

    What changes: Transpose where asked for, MatMul, Mul where alpha or beta are not 1, and Add.

    Why equal: the text. Runtimes may add in another order. 1e-6 of the largest number seen.

    Limits: the element type must be known where alpha or beta are not 1.
    """
    sides = [
        rw.before("Transpose", [rw.input(index)], perm=[1, 0]) if rw.get(name, 0) else rw.input(index)
        for index, name in ((0, "transA"), (1, "transB"))
    ]
    alpha, beta, bias = rw.get("alpha", 1.0), rw.get("beta", 1.0), rw.input(2)
    if not bias and alpha == 1:
        become(rw, "MatMul", *sides)
        return
    product = rw.before("MatMul", sides, hint="product")
    if alpha != 1:
        product = rw.before("Mul", [product, number(rw, alpha, rw.input(0))], hint="product")
    if not bias:
        become(rw, "Identity", product)
        return
    if beta != 1:
        bias = rw.before("Mul", [bias, number(rw, beta, bias)], hint="bias")
    become(rw, "Add", product, bias)


@decomposition("Split")
def split(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Each output is a Slice.

    What changes: a Slice for each output.

    Why equal: the text. Bit for bit.

    Limits: the lengths must be constants, or the length of the axis fixed.
    """
    x, axis = rw.input(0), int(rw.get("axis", 0))
    lengths = _split_lengths(rw, axis)
    if axis < 0 and rw.version < 10:
        axis += rw.need_rank(x)
    end = 0
    for name, length in zip(list(node.output), lengths, strict=True):
        start, end = end, end + length
        if name:
            slice_axes(rw, x, [start], [end], [axis])
            rw.preceding[-1].output[0] = name
    rw.remove()


@decomposition("Gather")
def gather(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """One index, or a few, are Slices.

    What changes: a Slice for each run of indices that follow each other, Concat of these, and Squeeze for a single index.

    Why equal: the text. Bit for bit.

    Limits: the indices must be constants of at most one axis, and not more than 16 runs.
    """
    x, axis = rw.input(0), int(rw.get("axis", 0))
    given = rw.known(rw.input(1))
    if given is None:
        rw.refuse(f"its indices ({rw.input(1)!r}) are computed at run time", code="needs-constant")
    if axis < 0:
        axis += rw.need_rank(x)
    runs = _runs([int(index) for index in given.reshape(-1)])
    if given.ndim > 1 or not 0 < len(runs) <= _MOST_RUNS:
        rw.refuse(
            f"its indices, of shape {list(given.shape)}, are more than {_MOST_RUNS} slices", code="no-equal"
        )
    end_of_all = int(np.iinfo(np.int64).max)
    parts = [slice_axes(rw, x, [start], [end or end_of_all], [axis]) for start, end in runs]
    whole = parts[0] if len(parts) == 1 else rw.before("Concat", parts, axis=axis)
    become(rw, "Identity", whole if given.ndim else drop_axes(rw, whole, [axis]))


_MOST_RUNS = 16


def _runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Return the bounds of slices that have elements at these places, one behind the other."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index != 0:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs


@decomposition("DepthToSpace", "SpaceToDepth")
def depth_and_space(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is a Reshape, a Transpose and a Reshape.

    What changes: these three.

    Why equal: the text gives it so. Bit for bit.

    Limits: channels, height and width must be fixed.
    """
    x, block = rw.input(0), int(rw.get("blocksize"))
    shape = rw.shape(x)
    if shape is None or len(shape) != 4 or any(size is None for size in shape[1:]):
        rw.refuse(f"channels, height and width of {x!r} must be fixed", code="needs-shape")
    channels, height, width = (size or 0 for size in shape[1:])
    if node.op_type == "SpaceToDepth":
        inner = [0, channels, height // block, block, width // block, block]
        order, outer = [0, 3, 5, 1, 2, 4], [0, channels * block**2, height // block, width // block]
    else:
        depth = channels // block**2
        dcr = rw.get("mode", "DCR") == "DCR"
        inner = [0, block, block, depth, height, width] if dcr else [0, depth, block, block, height, width]
        order = [0, 3, 4, 1, 5, 2] if dcr else [0, 1, 4, 2, 5, 3]
        outer = [0, depth, height * block, width * block]
    parts = rw.before("Reshape", [x, integers(rw, *inner)], hint="parts")
    moved = rw.before("Transpose", [parts], hint="moved", perm=order)
    become(rw, "Reshape", moved, integers(rw, *outer))


def _split_lengths(rw: LoweringRewriter, axis: int) -> list[int]:
    given = rw.get("split")
    if given is not None:
        return [int(length) for length in given]
    if rw.version >= 13 and rw.input(1):
        known = rw.known(rw.input(1))
        if known is None:
            rw.refuse(f"its lengths ({rw.input(1)!r}) are computed at run time", code="needs-constant")
        return [int(length) for length in known.reshape(-1)]
    shape = rw.shape(rw.input(0))
    length = None if shape is None else shape[axis]
    if length is None:
        rw.refuse(f"the length of axis {axis} of {rw.input(0)!r} must be fixed", code="needs-shape")
    count = len(rw.node.output)
    each = -(-length // count)
    return [max(min(each, length - each * number), 0) for number in range(count)]


def _reshape_to(same: int, wanted: Sequence[int | None]) -> list[int] | None:
    """Return the numbers by which Reshape makes a shape whose first `same` axes stay: 0 for these, -1 for one open one."""
    if 0 in wanted:  # which Reshape takes for a length that stays
        return None
    numbers = [0 if size is None and index < same else size for index, size in enumerate(wanted)]
    if sum(size is None for size in numbers) > 1:
        return None
    return [-1 if size is None else size for size in numbers]
