"""Pad: the mode wrap began with opset 19 and axes with 18, and below 11 pads and value are attributes of floats."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, integers
from .pad_forms import gather_padded, join_blocks


@lowering("Pad", leaves=19)
def pad_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The mode wrap goes away: the elements of each padded axis are gathered.

    What changes: a node in mode wrap becomes a Gather for each padded axis, whose indices are the places of the axis
    modulo its length. They are constants where pads and length are, and computed otherwise. Negative pads cut the axis
    before it is wrapped, as in ONNX Runtime.

    Why equal: the text of Pad-19; bit for bit, since elements are moved only.

    Limits: axes must be constants, and where there are none, the rank must be known.
    """
    if rw.get("mode", "constant") != "wrap":
        return
    axes = rw.need_constant(3, "axes").reshape(-1).tolist() if rw.input(3) else None
    if rw.known(rw.input(1)) is None:
        rw.use_at_run_time(1, "pads")
    gather_padded(rw, "wrap", axes)


@lowering("Pad", leaves=18)
def pad_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axes` go away: the pads are those of all axes, 0 for each that was not named.

    What changes: constant pads are spread over all axes. Where pads, axes or the rank are not known, they are spread at
    run time.

    Why equal: the changelog of version 18 adds the input, which names the axes that the pads are of.
    """
    import numpy as np

    if not rw.input(3):
        return
    given, pads, rank = rw.known(rw.input(3)), rw.known(rw.input(1)), rw.rank(rw.input(0))
    for place, value, what in ((1, pads, "pads"), (3, given, "axes")):
        if value is None:
            rw.use_at_run_time(place, what)
    if given is None or rank is None:
        _scatter_pads(rw)
    else:
        axes = [int(axis) + (rank if axis < 0 else 0) for axis in given.reshape(-1)]
        places = [*axes, *(axis + rank for axis in axes)]
        if pads is not None:
            full = np.zeros(2 * rank, np.int64)
            full[places] = pads.reshape(-1)
            rw.set_input(1, rw.constant(full, "pads"))
        else:
            order = np.full(2 * rank, len(places))
            order[places] = range(len(places))
            longer = rw.before("Concat", [rw.input(1), integers(rw, 0)], hint="pads_and_zero", axis=0)
            rw.set_input(1, rw.before("Gather", [longer, rw.constant(order, "places")], hint="pads", axis=0))
    rw.set_input(3, "")


def _scatter_pads(rw: LoweringRewriter) -> None:
    """Write the pads of all axes where the rank or the axes are known at run time only."""
    rank = rw.before("Shape", [rw.before("Shape", [rw.input(0)], hint="shape")], hint="rank")
    zero = onnx.helper.make_tensor("", TensorProto.INT64, [1], [0])
    both = rw.before("Add", [rank, rank], hint="twice")
    zeros = rw.before("ConstantOfShape", [both], hint="zeros", value=zero)
    axes = rw.before("Cast", [rw.input(3)], hint="axes", to=TensorProto.INT64)
    negative = rw.before("Cast", [rw.before("Less", [axes, integers(rw, 0)])], to=TensorProto.INT64)
    begins = rw.before("Add", [axes, rw.before("Mul", [negative, rank])], hint="begins")
    ends = rw.before("Add", [begins, rank], hint="ends")
    places = rw.before("Concat", [begins, ends], hint="places", axis=0)
    rw.set_input(1, rw.before("ScatterElements", [zeros, places, rw.input(1)], hint="pads"))


@lowering("Pad", leaves=11, types=LostTypes.OWN)
def pad_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`pads` and `value` move from inputs to attributes, of floats alone.

    What changes: constant pads and a value that float32 holds become attributes. Otherwise, and for integers, the padding
    is written out: in mode constant as a Concat with blocks of the value for each axis, else as a Gather for each axis.
    Negative pads cut the axis first, as in ONNX Runtime.

    Why equal: the changelog of version 11 moves pads and value and adds types. What is written out moves elements only.

    Limits: the element type must be known; what is written out needs the rank, and opset 8 where lengths are not fixed.
    """
    import numpy as np

    mode = rw.get("mode", "constant")
    dtype = rw.need_dtype(rw.input(0))
    pads = rw.known(rw.input(1))
    value = rw.known(rw.input(2)) if rw.input(2) else np.zeros(())
    with np.errstate(over="ignore"):
        fits = mode != "constant" or (
            value is not None and bool((value.astype(np.float32) == value).all() or np.isnan(value).all())
        )
    if pads is None:
        rw.use_at_run_time(1, "pads")
    if pads is None or dtype not in FLOATS or not fits:
        if mode == "constant":
            join_blocks(rw)
        else:
            gather_padded(rw, mode, None)
        return
    del node.input[1:]
    if not pads.size:  # of a scalar, as no attribute is an empty list
        rw.rename("Identity")
        rw.drop("mode")
        return
    rw.set("pads", [int(pad) for pad in pads.reshape(-1)])
    if mode == "constant" and value is not None and value.size and value.item() != 0:
        rw.set("value", float(value.item()))
