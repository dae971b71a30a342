"""LayerNormalization, RMSNormalization, GroupNormalization and MeanVarianceNormalization: written out in arithmetic."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering, unchanged
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, reduce

unchanged(
    "SimplifiedLayerNormalization",
    23,
    reason="the operator is ONNX Runtime's own at every opset, and one kernel computes it",
    types=LostTypes.OWN,
)


@lowering("LayerNormalization", leaves=17, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def layer_normalization_17_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The mean is subtracted, the rest divided by its standard deviation, scaled and shifted.

    What changes: the node becomes ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul and Add, the form that ONNX Runtime and
    others make one node of again. Behind a Cast from integers that node would not load, and Mul squares in place of Pow. The
    variance is the mean of the squared deviations. Half floats compute in the type of `stash_type` between Casts, doubles in
    double.

    Why equal: the equations of the standard's text. Its function body computes the variance as the difference of two means,
    which cancels: on data around 10,000 it is negative. Measured against ONNX Runtime's kernel: 2e-7 of the largest
    number.

    Limits: the element type must be known, and the rank where `axis` is counted from the front.
    """
    source, dtype, wide = _source(rw)
    axes = _axes_from(rw, rw.pop("axis", -1))
    mean = _mean(rw, source, axes)
    deviation = rw.before("Sub", [source, mean], hint="deviation")
    square = _square(rw, deviation, wide, as_product=_is_cast(rw, source))
    std = _root(rw, _mean(rw, square, axes), wide)
    outputs = [rw.output(index) for index in range(3)]
    inverse = ""
    if outputs[2] and rw.is_read(outputs[2]):
        inverse = rw.before("Reciprocal", [std], hint="inverse")
        normalized = rw.before("Mul", [deviation, inverse], hint="normalized")
    else:
        normalized = rw.before("Div", [deviation, std], hint="normalized")
    tail = [("Mul", cast(rw, rw.input(1), wide, hint="scale"))]
    if rw.input(2):
        tail.append(("Add", cast(rw, rw.input(2), wide, hint="bias")))
    _finish(rw, normalized, tail, outputs[0], wide, dtype)
    stash = rw.get("stash_type", int(TensorProto.FLOAT))
    for value, output in ((mean, outputs[1]), (inverse, outputs[2])):
        if output and rw.is_read(output):
            rw.after(*(("Identity", [value], [output]) if stash == wide else ("Cast", [value], [output])),
                     **({} if stash == wide else {"to": stash}))  # fmt: skip
    rw.remove()


@lowering("RMSNormalization", leaves=23, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def rms_normalization_23_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The data is divided by the root of the mean of its squares, and scaled.

    What changes: the node becomes Pow, ReduceMean, Add, Sqrt, Div and Mul. Half floats compute in the type of `stash_type`
    between Casts, doubles in double.

    Why equal: the equations of the standard's text. Measured against ONNX Runtime's kernel: 4 units in the last place.

    Limits: the element type must be known, and the rank where `axis` is counted from the front.
    """
    source, dtype, wide = _source(rw)
    axes = _axes_from(rw, rw.pop("axis", -1))
    root = _root(rw, _mean(rw, _square(rw, source, wide), axes), wide)
    normalized = rw.before("Div", [source, root], hint="normalized")
    result = rw.dtype(rw.input(1)) or dtype
    _finish(rw, normalized, [("Mul", cast(rw, rw.input(1), wide, hint="scale"))], rw.output(0), wide, result)
    rw.remove()


@lowering("GroupNormalization", leaves=21, types=LostTypes.OWN)
def group_normalization_21_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Each group of channels is normalised as one row, and each channel is scaled and shifted.

    What changes: Reshape to [N, groups, all others], the equations of the standard, and Reshape back.

    Why equal: the standard's function body, with fewer Reshapes; runtimes without a kernel compute that. Bit for bit in ONNX
    Runtime.

    Limits: the element type must be known. A tensor without elements cannot be reshaped so, nor by the body.
    """
    dtype = rw.need_dtype(rw.input(0))
    stash = rw.pop("stash_type", int(TensorProto.FLOAT))
    rows = _rows(rw, cast(rw, rw.input(0), stash, hint="data"))
    normalized = _normalized_rows(rw, rows, stash)
    shape = rw.before("Shape", [rw.input(0)], hint="shape")
    whole = rw.before("Reshape", [normalized, shape], hint="normalized_shape")
    channels = rw.before("Reshape", [whole, rw.constant(np.array([0, 0, -1]), "rows")], hint="channels")
    if stash != dtype:
        channels = rw.before("Cast", [channels], hint="narrow", to=dtype)
    _scale_and_shift(rw, channels, shape)


@lowering("GroupNormalization", leaves=18, types=LostTypes.OWN)
def group_normalization_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Each group of channels is normalised, scaled and shifted as one row.

    What changes: Reshape to [N, groups, all others], the equations of the standard, and Reshape back.

    Why equal: the standard's function body, with fewer Reshapes; runtimes without a kernel compute that. Bit for bit in ONNX
    Runtime.

    Limits: the element type must be known. A tensor without elements cannot be reshaped so, nor by the body.
    """
    dtype = rw.need_dtype(rw.input(0))
    normalized = _normalized_rows(rw, _rows(rw, rw.input(0)), dtype)
    _scale_and_shift(rw, normalized, rw.before("Shape", [rw.input(0)], hint="shape"))


@lowering("MeanVarianceNormalization", leaves=9, exactness=Exactness.EQUIVALENT)
def mean_variance_normalization_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The mean is subtracted, and the rest divided by its standard deviation plus 1e-9.

    What changes: the node becomes ReduceMean, Sub, Pow, ReduceMean, Sqrt, Add and Div. The variance is the mean of the squared
    deviations, which does not cancel as the difference of two means does.

    Why equal: the equations of the standard's text. Measured against ONNX Runtime's kernel: 2e-7 of the largest number.

    Limits: the element type must be known.
    """
    dtype = rw.need_dtype(rw.input(0))
    axes = rw.pop("axes", [0, 2, 3])
    rank = rw.rank(rw.input(0))
    if rank is not None and not all(-rank <= axis < rank for axis in axes):
        rw.refuse(f"has the axes {axes}, and its input {rank} of them", code="invalid-node")
    deviation = rw.before("Sub", [rw.input(0), _mean(rw, rw.input(0), axes)], hint="deviation")
    root = rw.before("Sqrt", [_mean(rw, _square(rw, deviation, dtype), axes)], hint="deviation_root")
    # 1e-9 is 0 in half floats, as in the function body of the standard.
    std = rw.before("Add", [root, _scalar(rw, 1e-9, dtype)], hint="std")
    rw.after("Div", [deviation, std], [rw.output(0)])
    rw.remove()


def _source(rw: LoweringRewriter) -> tuple[str, int, int]:
    """Return the data in the type to compute in, its own type, and that one."""
    dtype = rw.need_dtype(rw.input(0))
    stash = rw.get("stash_type", int(TensorProto.FLOAT))
    wide = dtype if dtype == TensorProto.DOUBLE else stash
    return cast(rw, rw.input(0), wide, hint="data"), dtype, wide


def _axes_from(rw: LoweringRewriter, axis: int) -> list[int]:
    """Return the axes from `axis` to the last, counted from the front where the rank is known."""
    rank = rw.need_rank(rw.input(0)) if axis >= 0 else rw.rank(rw.input(0))
    if rank is None:
        return list(range(axis, 0))
    if not -rank <= axis < rank:
        rw.refuse(f"has axis={axis}, and its input {rank} axes", code="invalid-node")
    return list(range(axis % rank, rank))


def _mean(rw: LoweringRewriter, value: str, axes: list[int]) -> str:
    return reduce(rw, "ReduceMean", value, axes)


def _square(rw: LoweringRewriter, value: str, dtype: int, *, as_product: bool = False) -> str:
    """Square with Pow, the form by which runtimes know the whole as one normalisation, or with Mul."""
    two = rw.constant(np.array(2, helper.tensor_dtype_to_np_dtype(dtype)), "two") if not as_product else ""
    return rw.before("Pow" if two else "Mul", [value, two or value], hint="square")


def _is_cast(rw: LoweringRewriter, value: str) -> bool:
    """Return whether a value is cast from integers, double or bfloat16.

    ONNX Runtime takes such a Cast into the one node that it makes, has no kernel for that, and does not load the model.
    """
    producer = rw.producer(value)
    while producer is not None and producer.op_type == "Identity":
        producer = rw.producer(producer.input[0])
    if producer is None or producer.op_type != "Cast":
        return False
    return rw.dtype(producer.input[0]) not in (TensorProto.FLOAT16, TensorProto.FLOAT)


def _scalar(rw: LoweringRewriter, value: float, dtype: int) -> str:
    return rw.constant(np.array(value, helper.tensor_dtype_to_np_dtype(dtype)), "epsilon")


def _root(rw: LoweringRewriter, variance: str, dtype: int) -> str:
    epsilon = _scalar(rw, float(np.float32(rw.get("epsilon", 1e-5))), dtype)
    return rw.before("Sqrt", [rw.before("Add", [variance, epsilon], hint="shifted")], hint="std")


def _finish(
    rw: LoweringRewriter, value: str, tail: list[tuple[str, str]], output: str, wide: int, dtype: int
) -> None:
    """Write the binary operators `tail` behind `value`, and a Cast to `dtype`; the last node produces `output`."""
    for place, (operator, operand) in enumerate(tail):
        if place == len(tail) - 1 and wide == dtype:
            rw.after(operator, [value, operand], [output])
        else:
            value = rw.before(operator, [value, operand], hint="shifted" if place else "scaled")
    if wide != dtype:
        rw.after("Cast", [value], [output], to=dtype)


def _rows(rw: LoweringRewriter, value: str) -> str:
    """Reshape to one row per group: [N, groups, all others]."""
    shape = rw.constant(np.array([0, rw.get("num_groups"), -1]), "groups")
    return rw.before("Reshape", [value, shape], hint="rows")


def _normalized_rows(rw: LoweringRewriter, rows: str, dtype: int) -> str:
    """Normalise over axis 2, as the function body of the standard does."""
    mean = _mean(rw, rows, [2])
    mean_of_square = _mean(rw, rw.before("Mul", [rows, rows], hint="square"), [2])
    square_of_mean = rw.before("Mul", [mean, mean], hint="square_of_mean")
    variance = rw.before("Sub", [mean_of_square, square_of_mean], hint="variance")
    deviation = rw.before("Sub", [rows, mean], hint="deviation")
    return rw.before("Div", [deviation, _root(rw, variance, dtype)], hint="normalized")


def _scale_and_shift(rw: LoweringRewriter, value: str, shape: str) -> None:
    """Multiply and add one number per row of `value`, give it its shape back, and drop the node."""
    column = rw.constant(np.array([1, -1, 1]), "column")
    for index, operator, hint in ((1, "Mul", "scale"), (2, "Add", "bias")):
        operand = rw.before("Reshape", [rw.input(index), column], hint=f"{hint}_column")
        value = rw.before(operator, [operand, value], hint=f"{hint}d")
    rw.after("Reshape", [value, shape], [rw.output(0)])
    rw.remove()
