"""CenterCropPad: below opset 18 it is a Pad and a Slice."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers


@lowering("CenterCropPad", leaves=18)
def center_crop_pad_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """CenterCropPad becomes a Pad of the axes that are too short and a Slice of those that are too long.

    What changes: half of what is missing is put in front, the rest behind; half of what is too much is cut off in front.
    Where lengths are known only at run time, they are computed there.

    Why equal: this is the function body of the standard (onnx/defs/tensor/defs.cc). Values are moved.

    Limits: the rank must be known where `axes` are given or counted from the end.
    """
    source, shape = rw.input(0), rw.shape(rw.input(0))
    axes = rw.get("axes")
    if axes is not None:
        rank = rw.need_rank(source)
        if not all(-rank <= axis < rank for axis in axes):
            rw.refuse(f"has axes {axes}, and its input {rank} of them", code="invalid-node")
        axes = [axis % rank for axis in axes]
    target = rw.known(rw.input(1))
    lengths = None if shape is None else [shape[axis] for axis in axes or range(len(shape))]
    if target is not None and lengths is not None and target.shape != (len(lengths),):
        rw.refuse(
            f"has a shape of {list(target.shape)} for {len(lengths)} axes, and needs one number for each",
            code="invalid-node",
        )
    if target is not None and shape is not None and lengths is not None and None not in lengths:
        pairs = [(axis, length or 0) for axis, length in zip(axes or range(len(shape)), lengths, strict=True)]
        value = _fixed(rw, source, len(shape), pairs, [int(item) for item in target.reshape(-1)])
    else:
        value = _at_run_time(rw, source, axes)
    if value == source:
        rw.rename("Identity")
        rw.drop("axes")
        rw.set_input(1, "")
        return
    rw.preceding[-1].output[0] = rw.output(0)
    rw.remove()


def _fixed(
    rw: LoweringRewriter, value: str, rank: int, lengths: list[tuple[int, int]], target: list[int]
) -> str:
    pads = [0] * 2 * rank
    cuts: list[tuple[int, int, int]] = []
    for (axis, length), wanted in zip(lengths, target, strict=True):
        if wanted > length:
            pads[axis] = (wanted - length) // 2
            pads[rank + axis] = wanted - length - pads[axis]
        elif wanted < length:
            start = (length - wanted) // 2
            cuts.append((axis, start, start + wanted))
    if any(pads):
        value = rw.before("Pad", [value, integers(rw, *pads), _filler(rw)], hint="padded")
    if cuts:
        places, starts, ends = ([cut[part] for cut in cuts] for part in range(3))
        bounds = [integers(rw, *starts), integers(rw, *ends), integers(rw, *places)]
        value = rw.before("Slice", [value, *bounds], hint="cropped")
    return value


def _filler(rw: LoweringRewriter) -> str:
    return rw.constant(np.zeros((), rw.numpy_type(rw.input(0))), "zero")


def _at_run_time(rw: LoweringRewriter, value: str, axes: list[int] | None) -> str:
    target = cast(rw, rw.input(1), TensorProto.INT64)
    half = integers(rw, 2)
    lengths = rw.before("Shape", [value], hint="lengths")
    if axes is not None:
        lengths = rw.before("Gather", [lengths, integers(rw, *axes)], hint="lengths", axis=0)
    longer = rw.before("Max", [lengths, target], hint="longer")
    missing = rw.before("Sub", [longer, lengths], hint="missing")
    front = rw.before("Div", [missing, half], hint="front")
    behind = rw.before("Sub", [missing, front], hint="behind")
    parts = [front, behind]
    if axes is not None:
        rank = rw.need_rank(value)
        order = [1 + axes.index(axis) if axis in axes else 0 for axis in range(rank)]
        parts = [
            rw.before(
                "Gather",
                [
                    rw.before("Concat", [integers(rw, 0), part], hint="every", axis=0),
                    integers(rw, *order),
                ],
                hint="every",
                axis=0,
            )
            for part in parts
        ]
    pads = rw.before("Concat", parts, hint="pads", axis=0)
    value = rw.before("Pad", [value, pads, _filler(rw)], hint="padded")
    start = rw.before("Div", [rw.before("Sub", [longer, target], hint="excess"), half], hint="start")
    end = rw.before("Add", [start, target], hint="end")
    places = [] if axes is None else [integers(rw, *axes)]
    return rw.before("Slice", [value, start, end, *places], hint="cropped")
