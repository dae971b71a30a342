"""Writes Upsample and Resize-10 as Resize-11 or 13, which compute asymmetric coordinates only if the node says so."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.resize import may_keep_all_lengths

__all__ = ["prevent_copy", "split_at_run_time", "split_by_constants", "write_asymmetric"]

Floats = npt.NDArray[np.float32]


def write_asymmetric(rw: Rewriter, scales: str, nearest_mode: str) -> None:
    """Write `rw.node` as one Resize-11 or, if the target allows it, a Resize-13 without roi.

    `scales` is the name of the scales; `nearest_mode` is used in mode nearest only.
    """
    rw.set("coordinate_transformation_mode", "asymmetric")
    if rw.get("mode", "nearest") == "nearest":
        rw.set("nearest_mode", nearest_mode)
    roi = _unread_roi(rw)
    rw.set_input(2, scales)
    rw.set_input(1, roi)
    rw.note("asymmetric coordinates are written out, because the default is half_pixel from opset 11 on")


def split_by_constants(rw: Rewriter, scales: Floats) -> None:
    """Write a nearest Resize-10 as one node that shrinks (ceil) and one that grows (floor)."""
    one = np.float32(1)
    grow = np.maximum(scales, one)
    guarded = may_keep_all_lengths(grow)
    shrink = rw.constant(np.minimum(scales, one), "shrink")
    if guarded:
        grow = np.concatenate([np.array([2], np.float32), grow])
    _write_two(rw, shrink, rw.constant(grow, "grow"), guarded)
    rw.note(
        "one node shrinks (rounding up) and one grows (rounding down), because a node has one nearest_mode"
    )


def split_at_run_time(rw: Rewriter) -> None:
    """Write a nearest Resize-10 as two nodes whose scales are computed from its scales at run time.

    The axis in front doubles only if another axis shrinks: otherwise Resize-10 copied its input where the growing node
    does, and that must stay so.
    """
    _unread_roi(rw)
    scales = rw.input(1)
    one = rw.constant(np.ones(1, np.float32), "one")
    shrink = rw.before("Min", [scales, one], hint="shrink")
    grow = rw.before("Max", [scales, one], hint="grow")
    smallest = rw.before("ReduceMin", [scales], hint="smallest", keepdims=1)
    shrinks = rw.before("Less", [smallest, one], hint="shrinks")
    extra = rw.before("Cast", [shrinks], hint="extra", to=TensorProto.FLOAT)
    guard = rw.before("Add", [extra, one], hint="guard")
    _write_two(rw, shrink, rw.before("Concat", [guard, grow], hint="guarded", axis=0), True)
    rw.note(
        "its scales are computed at run time, so one node shrinks (rounding up) and one grows (rounding down)"
    )


def prevent_copy(rw: Rewriter) -> None:
    """Add an axis in front of the input, by which scales or sizes are already longer, and take its first slice.

    ONNX Runtime copies the input of a Resize that changes no length; the axis in front, of length 1, is doubled.
    """
    value = rw.node.input[0]
    if rw.version >= 13:
        axes = rw.constant(np.zeros(1, np.int64), "axes")
        rw.node.input[0] = rw.before("Unsqueeze", [value, axes], hint="guarded_input")
    else:
        rw.node.input[0] = rw.before("Unsqueeze", [value], hint="guarded_input", axes=[0])
    output = rw.node.output[0]
    doubled = rw.detach_output(0, "doubled")
    rw.after("Gather", [doubled, rw.constant(np.array(0, np.int64), "first")], [output], axis=0)


def _write_two(rw: Rewriter, shrink: str, grow: str, guarded: bool) -> None:
    """Write the node that grows behind a new one that shrinks, each with the name of its scales."""
    roi = _unread_roi(rw)
    small = rw.before(
        "Resize",
        [rw.node.input[0], roi, shrink],
        hint="small",
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="ceil",
    )
    rw.node.input[0] = small
    write_asymmetric(rw, grow, "floor")
    if guarded:
        prevent_copy(rw)


def _unread_roi(rw: Rewriter) -> str:
    """Return the value of a roi that no mode reads: an empty constant at 11, where it is required, "" from 13 on."""
    rw.version = 13 if rw.target >= 13 else 11
    return "" if rw.version == 13 else rw.constant(np.zeros(0, np.float32), "roi")
