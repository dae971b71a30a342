"""Padding written out, for pads that may be computed at run time: by indices, or by blocks that are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import integers, iota, size_of

__all__ = ["gather_padded", "join_blocks"]

Amount = int | str
"""A number: known, or the name of an int64 vector of one element (of several for indices)."""

_LARGEST = 2**20
"""The most indices that become a constant; more are counted at run time."""

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mod": lambda a, b: a % b,
}


def _compute(rw: LoweringRewriter, operator: str, a: Amount, b: Amount) -> Amount:
    if isinstance(a, int) and isinstance(b, int):
        return _FOLDED[operator](a, b)
    if b == 0 and operator != "Mod":
        return a
    return rw.before(operator, [_name(rw, a), _name(rw, b)])


def _name(rw: LoweringRewriter, amount: Amount) -> str:
    return integers(rw, amount) if isinstance(amount, int) else amount


def _absolute(rw: LoweringRewriter, amount: Amount) -> Amount:
    return abs(amount) if isinstance(amount, int) else rw.before("Abs", [amount])


def _positive(rw: LoweringRewriter, amount: Amount) -> Amount:
    """Return an amount, or 0 where it is negative: half of the sum with its absolute value, as old Max takes no integers."""
    if isinstance(amount, int):
        return max(amount, 0)
    return rw.before("Div", [rw.before("Add", [amount, rw.before("Abs", [amount])]), integers(rw, 2)])


class _Chain:
    """Nodes written one after another, each on the result of the one before; the last one replaces the node itself."""

    def __init__(self, rw: LoweringRewriter) -> None:
        self.rw = rw
        self._source = rw.input(0)
        self._last: tuple[str, list[str], dict[str, Any]] | None = None

    @property
    def source(self) -> str:
        """The value so far."""
        if self._last is not None:
            operator, inputs, attributes = self._last
            self._source, self._last = self.rw.before(operator, inputs, **attributes), None
        return self._source

    def write(self, operator: str, inputs: Sequence[str], **attributes: Any) -> None:
        """Add an operator, one of whose inputs is `source`."""
        self._last = (operator, list(inputs), attributes)

    def finish(self) -> None:
        """Make the node the last operator."""
        operator, inputs, attributes = self._last or ("Identity", [self._source], {})
        node = self.rw.node
        self.rw.rename(operator)
        node.input[:] = inputs
        self.rw.drop(*[attribute.name for attribute in node.attribute])
        for name, value in attributes.items():
            self.rw.set(name, value)


def _pads(rw: LoweringRewriter, axes: Sequence[int] | None) -> Iterator[tuple[int, Amount, Amount]]:
    """Yield each axis that may be padded with its pads at the beginning and the end."""
    known = rw.partly_known(rw.input(1))
    if axes is None:
        axes = range(len(known) // 2 if known is not None else rw.need_rank(rw.input(0)))
    for place, axis in enumerate(axes):
        ends: list[Amount] = []
        for at in (place, place + len(axes)):
            pad = known[at] if known is not None else None
            if pad is None:
                name = rw.before("Gather", [rw.input(1), integers(rw, at)], hint="pad", axis=0)
            ends.append(pad if pad is not None else name)
        if ends != [0, 0]:
            yield axis, ends[0], ends[1]


def _length(rw: LoweringRewriter, value: str, axis: int) -> Amount:
    shape = rw.shape(value)
    size = shape[axis] if shape is not None else None
    return size if size is not None else size_of(rw, value, axis)


def gather_padded(rw: LoweringRewriter, mode: str, axes: Sequence[int] | None) -> None:
    """Replace a Pad in mode wrap, edge or reflect by a Gather for each padded axis; `axes` of None are all."""
    chain = _Chain(rw)
    for axis, begin, end in list(_pads(rw, axes)):
        source = chain.source
        cut, cut_end = (_positive(rw, _compute(rw, "Sub", 0, pad)) for pad in (begin, end))
        kept = _compute(rw, "Sub", _compute(rw, "Sub", _length(rw, source, axis), cut), cut_end)
        before, after = _positive(rw, begin), _positive(rw, end)
        count = _compute(rw, "Add", _compute(rw, "Add", kept, before), after)
        numbers = [item for item in (count, kept, before) if isinstance(item, int)]
        if len(numbers) == 3 and numbers[1] > 0 and numbers[0] <= _LARGEST:
            places = [_place(rw, mode, index - numbers[2], kept) for index in range(numbers[0])]
            taken = [_compute(rw, "Add", place, cut) for place in places]
            indices = rw.constant(np.array(taken, np.int64), f"indices_{axis}".replace("-", "minus_"))
        else:
            index = _compute(rw, "Sub", iota(rw, _name(rw, count)), before)
            indices = _name(rw, _compute(rw, "Add", _place(rw, mode, index, kept), cut))
        chain.write("Gather", [source, indices], axis=axis)
    chain.finish()


def _place(rw: LoweringRewriter, mode: str, index: Amount, length: Amount) -> Amount:
    """Return the place in an axis of some length that an index, which may be before or behind it, stands for."""
    if mode == "wrap":
        return _compute(rw, "Mod", index, length)
    last = _compute(rw, "Sub", length, 1)
    # reflect: -1 is 1, and last + 1 is last - 1; edge: what is negative is 0, and what is behind the last is the last
    first = _absolute(rw, index) if mode == "reflect" else _positive(rw, index)
    rest = _compute(rw, "Sub", last, first)
    return _compute(rw, "Sub", last, _absolute(rw, rest) if mode == "reflect" else _positive(rw, rest))


def join_blocks(rw: LoweringRewriter) -> None:
    """Replace a Pad in mode constant by a Concat with blocks of the value for each padded axis."""
    value = rw.input(2) or rw.constant(np.zeros((), rw.numpy_type(rw.input(0))), "zero")
    rank = rw.need_rank(rw.input(0))
    chain = _Chain(rw)
    for axis, begin, end in list(_pads(rw, None)):
        source = chain.source
        cut, cut_end = (_positive(rw, _compute(rw, "Sub", 0, pad)) for pad in (begin, end))
        if (cut, cut_end) != (0, 0):
            stop = _compute(rw, "Sub", _length(rw, source, axis), cut_end)
            source = _slice(rw, source, cut, stop, axis)
        before, after = _positive(rw, begin), _positive(rw, end)
        parts = [_block(rw, value, source, rank, axis, pad) if pad != 0 else "" for pad in (before, after)]
        if any(parts):
            inputs = [part for part in (parts[0], source, parts[1]) if part]
            chain.write("Concat", inputs, axis=axis)
        else:
            chain.write("Identity", [source])
    chain.finish()


def _slice(rw: LoweringRewriter, source: str, start: Amount, stop: Amount, axis: int) -> str:
    return rw.before("Slice", [source, _name(rw, start), _name(rw, stop), integers(rw, axis)])


def _block(rw: LoweringRewriter, value: str, source: str, rank: int, axis: int, length: Amount) -> str:
    sizes = [length if place == axis else _length(rw, source, place) for place in range(rank)]
    fixed = [size for size in sizes if isinstance(size, int)]
    if len(fixed) == rank:
        shape = integers(rw, *fixed)
    else:
        shape = rw.before("Concat", [_name(rw, size) for size in sizes], hint="block_shape", axis=0)
    return rw.before("Expand", [value, shape], hint="block")
