"""Write Upsample and Resize-10 as Resize-11 or 13: with asymmetric coordinates, and as two nodes if one rounding is not enough.

A fact in the log records the node that an adapter split in two. Later passes use it to find the two nodes and join them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from onnx_migrate.rewrite.resize.forms import leave_out
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.resize import may_keep_all_lengths

__all__ = [
    "ResizeOrigin",
    "join_pair",
    "prevent_copy",
    "split_at_run_time",
    "split_by_constants",
    "write_asymmetric",
]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ResizeOrigin:
    """A fact of a node that an adapter rewrote, in the log under the node's first output.

    Passes that undo a part of it record the fact anew.
    """

    version: int
    """The version of the operator (Upsample-9, Resize-10 or 11) that the adapter started from."""
    name: str
    """The node's name, "" if it has none."""
    split: tuple[str, ...] = ()
    """The outputs of all nodes that replace this node but the last, from the last to the first. It is empty if one node
    replaces it.

    Two nearest Resizes may replace it, one that shrinks and one that grows. An Unsqueeze and a Gather may be around these (see
    `prevent_copy`)."""
    split_scales: str | tuple[float, ...] = ""
    """The scales that it had then, or their name, if they are computed at run time."""
    written_by_converter: bool = False
    """Whether onnx's version converter had made it of an older Resize, and lost its coordinates."""
    unchecked: bool = False
    """Whether the adapter could not compare the number of its scales with the rank of its input."""

    @property
    def is_before_11(self) -> bool:
        """Whether it had no coordinate_transformation_mode, so that its coordinates were asymmetric."""
        return self.version < 11

    @property
    def scales(self) -> str | Floats:
        """The scales of a node that was split, or their name."""
        split_scales = self.split_scales
        return split_scales if isinstance(split_scales, str) else np.array(split_scales, np.float32)


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
    rw.note(
        "its coordinates stay asymmetric, now as an attribute, because the default from opset 11 on is half_pixel"
    )


def split_by_constants(rw: Rewriter, origin: ResizeOrigin, scales: Floats) -> None:
    """Write a nearest Resize-10 as one node that shrinks (ceil) and one that grows (floor)."""
    unit = np.float32(1)
    grow = np.maximum(scales, unit)
    guarded = may_keep_all_lengths(grow)
    shrink = rw.constant(np.minimum(scales, unit), "shrink")
    # A scale of 2 in front keeps ONNX Runtime from copying its input when all lengths stay.
    if guarded:
        grow = np.concatenate([np.array([2], np.float32), grow])
    split = _write_two(rw, shrink, rw.constant(grow, "grow"), guarded)
    rw.record_fact(replace(origin, split=split, split_scales=tuple(scales.tolist())))
    rw.note(
        "one node shrinks (rounding up) and one grows (rounding down), because a node has one nearest_mode"
    )


def split_at_run_time(rw: Rewriter, origin: ResizeOrigin) -> None:
    """Write a nearest Resize-10 as two nodes whose scales are computed from its scales at run time.

    The axis in front doubles only if another axis shrinks: otherwise Resize-10 copied its input where the growing node
    does, and that must stay so.
    """
    _unread_roi(rw)
    scales = rw.input(1)
    unit = rw.constant(np.ones(1, np.float32), "one")
    shrink = rw.before("Min", [scales, unit], hint="shrink")
    grow = rw.before("Max", [scales, unit], hint="grow")
    smallest = rw.before("ReduceMin", [scales], hint="smallest", keepdims=1)
    shrinks = rw.before("Less", [smallest, unit], hint="shrinks")
    extra = rw.before("Cast", [shrinks], hint="extra", to=TensorProto.FLOAT)
    guard = rw.before("Add", [extra, unit], hint="guard")
    split = _write_two(rw, shrink, rw.before("Concat", [guard, grow], hint="guarded", axis=0), True)
    rw.record_fact(replace(origin, split=split, split_scales=scales))
    rw.note(
        "its scales are computed at run time, so one node shrinks (rounding up) and one grows (rounding down)"
    )


def prevent_copy(rw: Rewriter) -> None:
    """Add an axis in front of the input, double it in the Resize, and select its first slice.

    ONNX Runtime copies the input of a Resize that changes no length; the axis in front, of length 1, is doubled. Scales or
    sizes must already have a number for that axis.
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


def _write_two(rw: Rewriter, shrink: str, grow: str, guarded: bool) -> tuple[str, ...]:
    """Write a new Resize that shrinks before the node, which then grows, each with the name of its scales.

    Returns the outputs of the new nodes except the last one, from the last to the first.
    """
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
    if not guarded:
        return (small,)
    prevent_copy(rw)
    return rw.node.output[0], rw.node.input[0], small


def _unread_roi(rw: Rewriter) -> str:
    """Return the value of a roi that no mode reads, in the newest form that the target allows."""
    rw.version = 13 if rw.target >= 13 else 11
    return leave_out(rw, "roi")


def join_pair(rw: Rewriter, small: onnx.NodeProto, origin: ResizeOrigin, nearest_mode: str) -> None:
    """Make the last node of a pair the one Resize that it came from, with this nearest_mode; drop the other nodes.

    `small` is the one that shrinks.
    """
    scales = origin.scales if isinstance(origin.scales, str) else rw.constant(origin.scales, "scales")
    rw.become(
        "Resize",
        [*small.input[:2], scales],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode=nearest_mode,
    )
    rw.node.name = origin.name
    rw.where = rw.where._replace(node=origin.name or rw.first_output)
    rw.record_fact(replace(origin, split=(), split_scales=""))
    # The Resize itself replaces the other nodes of the pair.
    rw.supersede(*origin.split)
