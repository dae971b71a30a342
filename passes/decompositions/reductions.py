"""Reductions, global pools and norms, written with the reductions that they consist of."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.decomposition_registry import decomposition
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from ..lowerings.building import cast, reduce, squeeze
from .forms import axes_of_reduction, become, number, reduce_as, spatial_axes


@decomposition("ReduceL1", exactness=Exactness.EQUIVALENT)
def reduce_l1(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the sum of the absolute values.

    What changes: Abs and ReduceSum.

    Why equal: the text. Runtimes may add in another order.

    Limits: axes that are computed need opset 13; noop_with_empty_axes is refused unless axes are known.
    """
    _sum_of(rw, rw.before("Abs", [rw.input(0)]))


@decomposition("ReduceSumSquare", exactness=Exactness.EQUIVALENT)
def reduce_sum_square(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the sum of the squares.

    What changes: Mul and ReduceSum.

    Why equal: the text. Runtimes may add in another order.

    Limits: axes that are computed need opset 13; noop_with_empty_axes is refused unless axes are known.
    """
    _sum_of(rw, rw.before("Mul", [rw.input(0), rw.input(0)], hint="square"))


@decomposition("ReduceL2", exactness=Exactness.EQUIVALENT)
def reduce_l2(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the root of the sum of the squares.

    What changes: Mul, ReduceSum and Sqrt.

    Why equal: the text. Runtimes may add in another order.

    Limits: axes that are computed need opset 13; noop_with_empty_axes is refused unless axes are known.
    """
    square = rw.before("Mul", [rw.input(0), rw.input(0)], hint="square")
    become(rw, "Sqrt", _sum(rw, square))


@decomposition("ReduceLogSum", exactness=Exactness.EQUIVALENT)
def reduce_log_sum(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the logarithm of the sum.

    What changes: ReduceSum and Log.

    Why equal: the text. Runtimes may add in another order.

    Limits: axes that are computed need opset 13; noop_with_empty_axes is refused unless axes are known.
    """
    become(rw, "Log", _sum(rw, rw.input(0)))


@decomposition("ReduceLogSumExp", exactness=Exactness.EQUIVALENT)
def reduce_log_sum_exp(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the logarithm of the sum of the exponentials, with the maximum taken out, so that nothing overflows.

    What changes: ReduceMax, Sub, Exp, ReduceSum, Log and Add.

    Why equal: log(sum(exp(X))) = M + log(sum(exp(X - M))), as ONNX Runtime computes it: 2.4e-7 seen.

    Limits: the axes must be known, and the rank if all axes are reduced and dropped.
    """
    x = rw.input(0)
    axes = axes_of_reduction(rw)
    if isinstance(axes, str):
        rw.refuse(f"its axes ({axes!r}) must be a constant", code="needs-constant")
    keep = bool(rw.get("keepdims", 1))
    top = reduce_as(rw, "ReduceMax", x, axes, keepdims=True)
    total = reduce_as(rw, "ReduceSum", rw.before("Exp", [rw.before("Sub", [x, top])]), axes, keepdims=True)
    whole = rw.before("Add", [rw.before("Log", [total]), top], hint="whole")
    if not keep:
        rank = rw.need_rank(x) if axes is None or any(axis < 0 for axis in axes) else 0
        dropped = (
            list(range(rank)) if axes is None else sorted(axis % rank if axis < 0 else axis for axis in axes)
        )
        whole = squeeze(rw, whole, dropped)
    become(rw, "Identity", whole)


@decomposition("GlobalAveragePool", exactness=Exactness.EQUIVALENT)
def global_average_pool(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the mean over the axes behind the channels.

    What changes: ReduceMean.

    Why equal: the text. Runtimes may add in another order.

    Limits: the rank must be known.
    """
    become(rw, "Identity", reduce(rw, "ReduceMean", rw.input(0), spatial_axes(rw)))


@decomposition("GlobalMaxPool")
def global_max_pool(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the maximum over the axes behind the channels.

    What changes: ReduceMax.

    Why equal: the text.

    Limits: the rank must be known.
    """
    become(rw, "Identity", reduce(rw, "ReduceMax", rw.input(0), spatial_axes(rw)))


@decomposition("GlobalLpPool", exactness=Exactness.EQUIVALENT)
def global_lp_pool(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the p-norm over the axes behind the channels.

    What changes: ReduceL1 or ReduceL2; for other p Abs, Pow, ReduceSum and Pow.

    Why equal: the text. Runtimes may add in another order.

    Limits: the rank must be known, and for other p than 1 and 2 the element type.
    """
    axes, p = spatial_axes(rw), int(rw.get("p", 2))
    x = rw.input(0)
    if p in (1, 2):
        become(rw, "Identity", reduce(rw, f"ReduceL{p}", x, axes))
        return
    powers = rw.before("Pow", [rw.before("Abs", [x]), number(rw, p, x)])
    become(rw, "Pow", reduce(rw, "ReduceSum", powers, axes), number(rw, 1 / p, x))


@decomposition("LpNormalization", exactness=Exactness.EQUIVALENT)
def lp_normalization(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The data is divided by its norm along an axis; where that is 0, all of it is 0 and stays.

    What changes: ReduceL1 or ReduceL2, a 1 in place of a norm of 0 (Cast, Not, Cast and Add), and Div.

    Why equal: the text, and ONNX Runtime's kernel for the norm of 0. 1.2e-7 seen.

    Limits: the element type must be known, and below opset 11 the rank for a negative axis.
    """
    x, axis = rw.input(0), int(rw.get("axis", -1))
    if axis < 0 and (rw.version < 11 or rw.rank(x) is not None):
        axis += rw.need_rank(x)
    norm = reduce(rw, f"ReduceL{rw.get('p', 2)}", x, [axis])
    empty = rw.before("Not", [rw.before("Cast", [norm], to=onnx.TensorProto.BOOL)])
    become(rw, "Div", x, rw.before("Add", [norm, cast(rw, empty, rw.need_dtype(x))], hint="norm"))


@decomposition("ReduceMean", exactness=Exactness.EQUIVALENT)
def reduce_mean(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the sum, divided by the number of elements.

    What changes: ReduceSum and Div.

    Why equal: the text. Runtimes may add in another order.

    Limits: the axes and their sizes must be known; integers are refused, as runtimes differ in rounding them.
    """
    x = rw.input(0)
    axes = axes_of_reduction(rw)
    shape = rw.shape(x)
    if shape is None or isinstance(axes, str):
        rw.refuse(f"the sizes of the axes of {x!r} must be known", code="needs-shape")
    sizes = [shape[axis] for axis in (range(len(shape)) if axes is None else axes)]
    if any(size is None for size in sizes):
        rw.refuse(
            f"the sizes of the axes of {x!r} must be fixed",
            code="needs-shape",
            hint="fix the dims of the model's inputs with --fix",
        )
    if np.dtype(rw.numpy_type(x)).kind in "iu":
        rw.refuse("the mean of integers has no equal", code="no-equal")
    count = float(np.prod([size or 0 for size in sizes], dtype=np.float64))
    become(rw, "Div", _sum(rw, x), number(rw, count, x))


def _sum(rw: LoweringRewriter, value: str) -> str:
    return reduce_as(rw, "ReduceSum", value, axes_of_reduction(rw), keepdims=bool(rw.get("keepdims", 1)))


def _sum_of(rw: LoweringRewriter, value: str) -> None:
    become(rw, "Identity", _sum(rw, value))
