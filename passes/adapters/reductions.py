"""The ten Reduce operators, whose `axes` became an input, ArgMax and ArgMin."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
for _name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"):
    compatible(f"Reduce{_name}", 13, reason="more types are allowed")
for _name in ("ReduceMax", "ReduceMin"):
    compatible(_name, 12, 20, reason="more types are allowed")
for _name in ("ArgMax", "ArgMin"):
    compatible(_name, 11, reason="negative axes are allowed")
    compatible(
        _name, 12, reason="select_last_index was added; by default the first index is returned, as before"
    )
    compatible(_name, 13, reason="more types are allowed")


@adapter(*(f"Reduce{_name}" for _name in _REDUCTIONS), to=11)
def reduce_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Negative axes are allowed. `axes` of a scalar, which has none, are left out.

    Why equal: ONNX Runtime reduces a scalar at opset 10 whatever its axes are, and refuses axes that it does not have from
    opset 11 on, where onnx infers its shape. Omitted axes mean all.
    """
    axes = rw.attribute("axes")
    if axes is not None and not axes.ref_attr_name and rw.rank(node.input[0]) == 0:
        rw.drop("axes")
        rw.note("its axes are left out, since its input is a scalar, which has none")


@adapter("ReduceSum", to=13)
@adapter(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSumSquare", to=18,
)  # fmt: skip
def reduce_axes(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axes` moves from an attribute to an input.

    Why equal: omitted or empty axes mean all axes before and after; the new attribute `noop_with_empty_axes` has that
    as its default.
    """
    rw.attribute_to_input("axes", 1)


@adapter("ReduceLogSum", "ReduceLogSumExp", to=28)
def reduce_log_28(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Integers are cast to double and the result back, since from opset 28 on they are not allowed.

    What changes: a node on integers gets a Cast before and after it; one on floats is unchanged.

    Limits: a sum that overflowed its integer type does not overflow in double: equivalent, not exact.
    """
    dtype = rw.need_dtype(node.input[0])
    if dtype not in (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64):
        return
    node.input[0] = rw.before("Cast", [node.input[0]], hint="double", to=TensorProto.DOUBLE)
    name = node.output[0]
    rw.after("Cast", [rw.detach_output(0)], [name], to=dtype)
    rw.note(
        "integers are cast to double and the result back, since integers are not allowed",
        Exactness.EQUIVALENT,
    )
