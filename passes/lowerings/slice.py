"""Slice, whose axes count from the front below opset 11 and whose bounds are attributes below 10, and Gather."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_ASSUMED = "runtimes are assumed to take a negative axis below opset 11"


@lowering("Slice", leaves=11)
def slice_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axes` are counted from the front.

    What changes: negative ones among constant axes are replaced by the same ones counted from the front.

    Why equal: version 11 adds negative axes, and forbids steps of 0.

    Limits: where the rank is unknown or the axes are computed at run time, they stay, and the report says so; ONNX Runtime
    takes negative ones at opset 10.
    """
    import numpy as np

    if not rw.input(3):
        return
    axes = rw.known(rw.input(3))
    if axes is not None and (axes >= 0).all():
        return
    rank = rw.rank(rw.input(0))
    if axes is None or rank is None:
        rw.note(
            f"{_ASSUMED}, since the {'axes are' if axes is None else 'rank is'} unknown", Exactness.ASSUMED
        )
        return
    rw.set_input(3, rw.constant(np.where(axes < 0, axes + rank, axes).astype(axes.dtype), "axes"))


@lowering("Gather", leaves=11)
def gather_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Indices and `axis` are counted from the front.

    What changes: a negative axis, and negative ones among constant indices, are replaced by the same ones counted from
    the front.

    Why equal: version 11 adds negative indices, and nothing else.

    Limits: what is not known, a length, a rank or indices that are computed at run time, stays, and the report says so;
    ONNX Runtime takes negative indices and axes at opset 10 and below.
    """
    import numpy as np

    source, axis = rw.input(0), int(rw.get("axis", 0))
    shape = rw.shape(source)
    indices = rw.known(rw.input(1))
    if axis < 0 and shape is not None:
        axis += len(shape)
        rw.set("axis", axis)
    elif axis < 0:
        rw.note(f"{_ASSUMED}, since the rank is unknown", Exactness.ASSUMED)
    if indices is not None and (indices >= 0).all():
        return
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if indices is None or length is None:
        what = "the indices, computed at run time," if indices is None else "the negative indices"
        rw.note(f"runtimes are assumed to count {what} from the end below opset 11", Exactness.ASSUMED)
        return
    positive = np.where(indices < 0, indices + length, indices).astype(indices.dtype)
    rw.set_input(1, rw.constant(positive, "indices"))
