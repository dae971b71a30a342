"""BatchNormalization: three element types in one node since opset 15 and 14, and training mode as an attribute since 14."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_DATA, _SCALE, _STATISTICS = ((0,), (0,)), ((1, 2), ()), ((3, 4), (1, 2))
"""Inputs and outputs that share an element type in version 15."""


@lowering("BatchNormalization", leaves=15)
def batch_normalization_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Scale and bias have the data's type.

    What changes: where they have another one, the narrower of the two types is cast to the wider, and a result that was
    computed in a wider type is cast back.

    Why equal: every value of the narrower type is one of the wider. The rounding of a result that is computed in a wider
    type may differ from that of a kernel of two types.

    Limits: where a type is unknown, both are assumed to be the same.
    """
    _one_type(rw, _DATA, _SCALE)


@lowering("BatchNormalization", leaves=14, types=LostTypes.ROUNDED)
def batch_normalization_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`training_mode` goes away: a node in training mode has five outputs, and all values have one type.

    What changes: in training mode the outputs saved_mean and saved_var are added, which nothing reads, as
    BatchNormalization-9 says training with them. Statistics of another type than the data are cast as in the step from 15.

    Why equal: the texts give the same formulas. ONNX Runtime computes both versions with one kernel: Y, the mean and the
    variance are bit for bit the same in training mode too.

    Limits: where a type is unknown, all are assumed to be the same.
    """
    if rw.pop("training_mode", 0):
        for index, hint in enumerate(("running_mean", "running_var", "saved_mean", "saved_var"), start=1):
            if len(node.output) <= index:
                node.output.append("")
            if not node.output[index]:
                node.output[index] = rw.fresh(hint)
    else:
        del node.output[1:]
    _one_type(rw, _DATA, _SCALE, _STATISTICS)


def _one_type(rw: LoweringRewriter, *groups: tuple[Sequence[int], Sequence[int]]) -> None:
    """Cast each group of inputs and outputs to the widest of their types."""
    found = [rw.dtype(rw.input(inputs[0])) for inputs, _ in groups]
    known = {dtype for dtype in found if dtype is not None}
    if None in found:
        rw.note("its inputs are assumed to have one element type", Exactness.ASSUMED)
    if len(known) < 2:
        return
    wide = TensorProto.DOUBLE if TensorProto.DOUBLE in known else TensorProto.FLOAT
    for (inputs, outputs), dtype in zip(groups, found, strict=True):
        if dtype is not None and dtype != wide:
            rw.cast_around(inputs, [index for index in outputs if rw.output(index)], wide, dtype)
            if outputs:
                rw.exactness = rw.exactness or Exactness.EQUIVALENT
    rw.note("values of several element types are computed in the widest of them")
