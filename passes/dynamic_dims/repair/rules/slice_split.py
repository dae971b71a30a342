"""Slice and Split with frozen lengths."""

from __future__ import annotations

import numpy as np

from ..domain import Dim
from ..node_context import Place, text

__all__ = ["slice_", "split"]

_END = np.iinfo(np.int64).max


def slice_(place: Place) -> None:
    """Let a Slice that took a whole moving axis take the whole of it, and other ends follow what contradicts them."""
    x = place.input(0)
    attributes = place.attributes
    if "starts" in attributes:
        _by_attributes(place)
        return
    starts, ends = place.numbers(1), place.numbers(2)
    if x is None or x.dims is None or starts is None or ends is None:
        return
    axes, steps = place.numbers(3), place.numbers(4)
    if (place.rw.input(3) and axes is None) or (place.rw.input(4) and steps is None):
        return
    entries: list[int | Dim] = []
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        axis = int(axes[index]) if axes is not None else index
        step = int(steps[index]) if steps is not None else 1
        entries.append(_end(place, x.dims[axis], start, end, step, index))
    if entries != ends.tolist():
        shown = ", ".join(
            "the end" if entry == _END else str(entry) if isinstance(entry, int) else place.name_of(entry)
            for entry in entries
        )
        wide = [int(entry) if isinstance(entry, int) else entry for entry in entries]
        if ends.dtype != np.int64:
            _narrow(place, wide)
            return
        place.write_shape(2, wide, f"ends {text(ends)} → [{shown}]")


def _end(place: Place, dim: Dim | None, start: int, end: int, step: int, index: int) -> int | Dim:
    if dim is None or step < 0 or end < 0:
        return end
    if end >= dim.frozen and dim.varies:
        return end if end >= max(dim.sizes) else _END
    options: list[int | Dim] = [end]
    if start >= 0 and end > 1:
        options += place.body.moving(end)[:3]
    if dim.varies and 0 < dim.frozen - end <= 2:
        options.append(end - dim.frozen)
    pattern = ("Slice", dim.sizes, start, end)
    return (
        options[place.choices.ask(f"{place.label}[{index}]", pattern, len(options))]
        if len(options) > 1
        else end
    )


def _narrow(place: Place, entries: list[int | Dim]) -> None:
    if any(isinstance(entry, Dim) for entry in entries):
        place.block("its ends are 32 bits wide, and lengths are 64", 2)
    top = np.iinfo(np.int32).max
    name = place.rw.constant(
        np.array([min(entry, top) for entry in entries if isinstance(entry, int)], np.int32), "ends"
    )
    place.set_input(2, name, f"ends → {[entry for entry in entries if isinstance(entry, int)]}")
    place.given[2] = None


def _by_attributes(place: Place) -> None:
    """The form up to opset 9, which only knows numbers."""
    x = place.input(0)
    attributes = place.attributes
    ends = list(attributes["ends"])
    axes = attributes.get("axes") or list(range(len(ends)))
    if x is None or x.dims is None:
        return
    mended = [
        _END if dim is not None and dim.varies and dim.frozen <= end < max(dim.sizes) else end
        for end, dim in ((end, x.dims[axis]) for end, axis in zip(ends, axes, strict=True))
    ]
    if mended != ends:
        place.snapshot()
        place.rw.set("ends", mended)
        place.reasons.append(f"ends {ends} → {mended}")


def split(place: Place) -> None:
    """Let equal parts of a moving axis stay equal; others cannot be told."""
    x = place.input(0)
    attributes = place.attributes
    axis = attributes.get("axis", 0)
    dim = x.dims[axis] if x is not None and x.dims is not None else None
    if dim is None or not dim.varies:
        return
    sizes = place.numbers(1)
    given = sizes.tolist() if sizes is not None else attributes.get("split")
    if given is None:
        return
    if len(set(given)) > 1 or any(size % len(given) for size in dim.sizes):
        place.block(
            f"it splits an axis that follows {place.name_of(dim)} into {given}",
            1 if sizes is not None else None,
        )
    reason = f"split {given} → {len(given)} equal parts"
    if sizes is not None:
        place.set_input(1, "", reason)
        if place.rw.version >= 18:
            place.rw.set("num_outputs", len(given))
    else:
        place.snapshot()
        place.rw.drop("split")
        place.reasons.append(reason)
