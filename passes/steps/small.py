"""Operators with one step of their own: Concat, Tile, Erf, Where, NonZero, Compress, and those with consumed_inputs."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.formula import Op, Value, formula
from onnx_migrate.messages import count_of
from onnx_migrate.plugins import Exactness, Rewriter, adapter, compatible


@adapter(
    "Abs Add BatchNormalization Ceil Clip Div Dropout Elu Exp Floor HardSigmoid InstanceNormalization LeakyRelu Log "
    "Max Mean Min Mul Neg PRelu Reciprocal Relu Sigmoid Sqrt Sub Sum Tanh",
    to=6,
)
def consumed_inputs_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`consumed_inputs`, a hint that memory may be reused, was removed; it does not change the result.

    Why equal: otherwise the schemas of versions 1 and 6 differ in their descriptions only. The defaults of Elu,
    HardSigmoid and LeakyRelu are the same, and an omitted bound of Clip is the limit of the type in both.
    """
    rw.drop("consumed_inputs")


@adapter("Selu", to=6)
def selu_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`alpha` and `gamma` are set to their old defaults if they were omitted, since the new defaults are more precise."""
    rw.drop("consumed_inputs")
    for name, default in (("alpha", 1.6732), ("gamma", 1.0507)):
        if rw.attribute(name) is None:
            rw.set(name, default)


compatible("Concat", 11, reason="a negative axis is allowed")


@adapter("Concat", to=4)
def concat_4(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` is set to 1 if it was omitted, since from opset 4 on it has no default."""
    if rw.attribute("axis") is None:
        rw.set("axis", 1)


@adapter("Tile", to=6)
def tile_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`tiles` and `axis`, scalars of the data's type, become `repeats`, one number per axis.

    What changes: if the rank, `tiles` or `axis` is known only at run time, OneHot (opset 9) computes `repeats`.
    """
    data, tiles, axis = node.input
    rank, count, axis_array = rw.rank(data), rw.constant_value(tiles), rw.constant_value(axis)
    if rank is not None and count is not None and axis_array is not None:
        if count.size != 1 or axis_array.size != 1 or not -rank <= axis_array.item() < rank:
            rw.refuse(
                f"its tiles are {count.tolist()} and its axis is {axis_array.tolist()}, for an input of {count_of(rank, 'axis')}",
                code="invalid-node",
                hint="each is one number",
            )
        repeats = np.ones(rank, np.int64)
        repeats[int(axis_array.item())] = int(count.item())
        rw.set_input(2, "")
        rw.set_input(1, rw.constant(repeats, "repeats"))
        return
    if rw.target < 9:
        rw.refuse(
            "the rank of its input, `tiles` or `axis` is known only at run time, and computing `repeats` takes opset 9",
            code="needs-rank",
            hint=Advice("target opset 9 or newer", options={"opset": 9}),
        )
    rw.version = 9
    flat = rw.constant(np.array([-1]), "flat")
    count_1d, place_1d = (
        rw.before("Reshape", [rw.before("Cast", [value], hint=hint, to=TensorProto.INT64), flat], hint=hint)
        for value, hint in ((tiles, "tiles"), (axis, "axis"))
    )
    values = rw.before("Concat", [rw.constant(np.array([1]), "one"), count_1d], hint="values", axis=0)
    depth = rw.before("Shape", [rw.before("Shape", [data], hint="shape")], hint="rank")
    hot = rw.before("OneHot", [place_1d, depth, values], hint="hot")
    rw.set_input(2, "")
    rw.set_input(1, rw.before("Reshape", [hot, flat], hint="repeats"))


_INTEGERS = frozenset(
    getattr(TensorProto, name)
    for name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
)


@adapter("Erf", to=13)
def erf_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Integer data is cast to float32 and the result back, since from opset 13 on Erf supports only floats.

    What changes: nothing for float16, float and double. The function of an integer is computed in float32 and truncated to an
    integer, so it is 1, 0 or -1.

    Why equal: onnx.reference computes Erf-9 in this way. ONNX Runtime never supported integers.

    Limits: onnx-migrate assumes that an unknown element type is a float. Another runtime may have computed the function of an
    integer in another precision and rounded it otherwise: equivalent, not exact.
    """
    dtype = rw.dtype(node.input[0])
    if dtype not in _INTEGERS:
        return
    name = node.output[0]
    node.input[0] = rw.before("Cast", [node.input[0]], hint="float", to=TensorProto.FLOAT)
    rw.after("Cast", [rw.detach_output(0)], [name], to=dtype)
    rw.note(
        "integers are cast to float32 and the result back, since Erf-13 takes floats only",
        Exactness.EQUIVALENT,
    )


@formula("Where", since=9)
def where(op: Op, condition: Value, then: Value, other: Value) -> Value:
    """The operator Where begins with opset 9.

    What changes: for bool, And and Or; for integers, condition * X + (1 - condition) * Y. For floats and strings, X and Y are
    broadcast and joined. A Gather then selects each element from the one that the condition chooses.

    Why equal: elements are moved, or multiplied by 1 and 0 as integers, which wrap around. A sum of products of floats would be
    wrong, since 0 times infinity is NaN. The result equals the standard's text bit for bit. For a -0 of X, ONNX Runtime's Where
    gives +0, and this gives -0.

    Limits: the shapes of strings must be known. A tensor of floats whose shape is only known at run time must not be empty.
    """
    return op.select_without_where(condition, then, other)


@formula("NonZero", since=9)
def non_zero(op: Op, x: Value) -> Value:
    """There is no NonZero: the places of a constant become a constant.

    Limits: no operator below opset 9 has an output whose size only the data say, so the input must be a constant.
    """
    array = x.need_constant("input")
    return op.constant(np.array(np.nonzero(array), np.int64).reshape(array.ndim, -1))


@formula("Compress", since=9)
def compress(op: Op, x: Value, condition: Value, *, axis: int | None) -> Value:
    """There is no Compress: Gather returns the elements that a constant condition selects.

    Why equal: elements are selected in their order, and those after the end of the condition are not.

    Limits: no operator below opset 9 has an output whose size only the data say, so the condition must be a constant.
    """
    selected = np.flatnonzero(condition.need_constant("condition")).astype(np.int64)
    return op.Gather(x.reshape(-1) if axis is None else x, selected, axis=axis or 0)
