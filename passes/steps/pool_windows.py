"""The windows of a pooling operator with fixed spatial lengths, and how to write them without ceil_mode and dilations.

Sources: the standard's text of version 22, and ONNX Runtime's core/providers/cpu/nn/pool_attributes.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Value
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.shape_arithmetic import same_pads
from onnx_migrate.plugins import LoweringRewriter

_LARGEST = 2**24
"""The most places of windows along an axis that become a constant."""

__all__ = [
    "Windows",
    "dilates",
    "gathered",
    "given_pads",
    "has_fixed_lengths",
    "is_odd_mode",
    "largest",
    "padded",
    "pads_without_ceil",
    "windows",
]


@dataclass(frozen=True)
class Windows:
    """The lengths of each spatial axis: of the input, the kernel, strides, dilations, padding at both ends and output."""

    lengths: list[int]
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    heads: list[int]
    tails: list[int]
    sizes: list[int]

    @property
    def pads(self) -> list[int]:
        """The padding as the attribute `pads` has it."""
        return [*self.heads, *self.tails]

    @property
    def counts_too_many(self) -> bool:
        """Whether rounding up alone counts a window more, along an axis, than there are."""
        for axis, size in enumerate(self.sizes):
            extent = (self.kernel[axis] - 1) * self.dilations[axis] + 1
            free = self.lengths[axis] + self.heads[axis] + self.tails[axis] - extent
            if -(-free // self.strides[axis]) + 1 != size:
                return self.pads_for_floor() == self.pads
        return False

    def pads_for_floor(self) -> list[int]:
        """Return `pads` that give the same number of windows without ceil_mode."""
        tails = []
        for axis, tail in enumerate(self.tails):
            have = self.lengths[axis] + self.heads[axis] + tail
            tails.append(tail + max(0, self._reach(axis) - have))
        return [*self.heads, *tails]

    def _reach(self, axis: int) -> int:
        """Return the end of the last window, counted from the start of the padding."""
        extent = (self.kernel[axis] - 1) * self.dilations[axis] + 1
        return (self.sizes[axis] - 1) * self.strides[axis] + extent if self.sizes[axis] else 0

    def places(self, axis: int) -> npt.NDArray[np.int64]:
        """Return the indices of the elements of each window, counted from the start of the padding."""
        count = self.sizes[axis] * self.kernel[axis]
        if count > _LARGEST:
            raise CannotMigrate(f"its windows have {count:,} places along an axis", code="no-equal")
        starts = np.arange(self.sizes[axis], dtype=np.int64) * self.strides[axis]
        steps = np.arange(self.kernel[axis], dtype=np.int64) * self.dilations[axis]
        return np.asarray(starts[:, None] + steps)

    def counts(self, *, include: bool) -> npt.NDArray[np.float64]:
        """Return how many elements of each window count, those in the given padding if `include`."""
        total = np.ones((), np.float64)
        for axis, length in enumerate(self.lengths):
            first = 0 if include else self.heads[axis]
            end = self.heads[axis] + length + (self.tails[axis] if include else 0)
            positions = self.places(axis)
            count = ((positions >= first) & (positions < end)).sum(axis=1)
            total = total[..., None] * count
        return np.maximum(total, 1)


def dilates(rw: LoweringRewriter) -> bool:
    """Return whether a dilation is above 1."""
    return any(dilation != 1 for dilation in rw.get("dilations", []))


def is_odd_mode(rw: LoweringRewriter) -> bool:
    """Return whether ceil_mode may count other windows than older versions do; with auto_pad SAME_* it does not."""
    return bool(rw.get("ceil_mode", 0)) and not str(rw.get("auto_pad", "NOTSET")).startswith("SAME")


def windows(rw: LoweringRewriter) -> Windows:
    """Return the windows of a node; refuses spatial lengths that are not fixed with `needs-shape`."""
    kernel = list(rw.get("kernel_shape"))
    count = len(kernel)
    source = rw.input(0)
    lengths = _spatial_lengths(rw, source, count)
    strides = list(rw.get("strides", [1] * count))
    dilations = list(rw.get("dilations", [1] * count))
    pads = list(rw.get("pads", [0] * 2 * count))
    auto = str(rw.get("auto_pad", "NOTSET"))
    heads, tails, sizes = [], [], []
    for axis, length in enumerate(lengths):
        extent = (kernel[axis] - 1) * dilations[axis] + 1
        head, tail = pads[axis], pads[count + axis]
        if auto.startswith("SAME") and dilations[axis] != 1:
            rw.refuse(
                f"auto_pad={auto} with dilations {dilations}: runtimes pad differently",
                code="no-equal",
                hint="write the padding out in the attribute pads",
            )
        if auto.startswith("SAME"):
            head, tail = same_pads(length, extent, strides[axis], auto)
        elif auto == "VALID":
            head = tail = 0
        free = length + head + tail - extent
        size = free // strides[axis] + 1
        if rw.get("ceil_mode", 0):
            size = -(-free // strides[axis]) + 1
            if (size - 1) * strides[axis] >= length + head:  # it would start in the padding at the end
                size -= 1
        heads.append(head)
        tails.append(tail)
        sizes.append(max(size, 0))
    return Windows(lengths, kernel, strides, dilations, heads, tails, sizes)


def given_pads(rw: LoweringRewriter) -> list[int]:
    """Return the padding of a node without auto_pad, or with auto_pad=VALID."""
    count = len(rw.get("kernel_shape"))
    valid = rw.get("auto_pad", "NOTSET") == "VALID"
    return [0] * 2 * count if valid else list(rw.get("pads", [0] * 2 * count))


def pads_without_ceil(rw: LoweringRewriter) -> list[int]:
    """Return `pads` that give the same number of windows without ceil_mode as the node has with it.

    If lengths are not fixed, stride - 1 more padding rounds up for every length. That is not enough if a window can start in
    the padding at the end. The function then refuses with `needs-shape`.
    """
    kernel, pads = rw.get("kernel_shape"), given_pads(rw)
    count = len(kernel)
    strides = rw.get("strides", [1] * count)
    ends = [pads[count + axis] + strides[axis] - 1 for axis in range(count)]
    if has_fixed_lengths(rw) or any(end >= size for end, size in zip(ends, kernel, strict=True)):
        return windows(rw).pads_for_floor()
    return [*pads[:count], *ends]


def has_fixed_lengths(rw: LoweringRewriter) -> bool:
    """Return whether the spatial lengths are known."""
    shape = rw.shape(rw.input(0))
    return shape is not None and len(shape) > 2 and None not in shape[2:]


def _spatial_lengths(rw: LoweringRewriter, source: str, count: int) -> list[int]:
    shape = rw.shape(source)
    spatial = [] if shape is None else [size for size in shape[2:] if size is not None]
    if len(spatial) != count:
        cause = "dilations above 1" if dilates(rw) else "ceil_mode=1"
        rw.refuse(
            f"{cause} does not exist below opset {rw.version + 1}, and to write it otherwise the lengths of {source!r} must"
            f" be fixed; they are {'unknown' if shape is None else list(shape)}",
            code="needs-shape",
            hint=FIX_DIMS,
        )
    return spatial


def padded(op: Op, value: Value, pads: list[int], filler: float) -> Value:
    """Write a Pad of the spatial axes, by as many as the attribute `pads` of a pool says, with a number."""
    if not any(pads):
        return value
    half = len(pads) // 2
    pads = [0, 0, *pads[:half], 0, 0, *pads[half:]]
    if op.version < 11:
        return op.write("Pad", value, pads=pads, value=filler)
    return op.write("Pad", value, pads, filler)


def gathered(op: Op, x: Value, given: Windows) -> Value:
    """Return the elements of the windows side by side, for a pool whose strides are its kernel."""
    if 0 in given.sizes:
        op.refuse("no window fits into its input, and ONNX Runtime pools no empty tensor", code="no-equal")
    x = padded(op, x, given.pads_for_floor(), 0.0)
    for axis in range(len(given.kernel)):
        x = op.Gather(x, given.places(axis).reshape(-1), axis=axis + 2)
    op.note("the elements of its windows are gathered side by side, for these lengths alone")
    return x


def largest(op: Op, given: Windows) -> Value:
    """Return the Max of the elements at each place of the windows, one axis after the other."""
    x = op.input(0)
    assert x is not None
    x = padded(op, x, given.pads_for_floor(), -np.inf)
    for axis in range(len(given.kernel)):
        columns = [op.Gather(x, column, axis=axis + 2) for column in given.places(axis).T]
        x = op.Max(*columns) if len(columns) > 1 else columns[0]
    op.note("Max nodes compute the largest element of each window, for these lengths only", EQUIVALENT)
    return x
