"""What is known of a Resize that is lowered, and the forms that it can take without sampling anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.spec.resize import (
    lengths_differ,
    resized_axes,
    run_length,
    scale_of_size,
    sizes_are_lengths,
)

from ...lowerings.folding import Array, Folding, Operand
from .sampling import Axis, Modes, antialiased, coordinates, cubic, linear, nearest
from .traced_sizes import trace

__all__ = ["Given", "modes_of", "read_given", "sampled_alike", "spread_axes", "write_scales"]

Floats = npt.NDArray[np.float32]
_OUTER = {2: 0, 3: 0, 4: 2, 5: 2}
"""Of each rank, the first axis that the kernels for linear and cubic resize."""


def modes_of(rw: LoweringRewriter) -> Modes:
    """Return the attributes that say how a Resize-11 or later samples, with their defaults."""
    return Modes(
        mode=str(rw.get("mode", "nearest")),
        coordinates=str(rw.get("coordinate_transformation_mode", "half_pixel")),
        rounding=str(rw.get("nearest_mode", "round_prefer_floor")),
        cubic_coeff_a=float(rw.get("cubic_coeff_a", -0.75)),
        exclude_outside=bool(rw.get("exclude_outside", 0)),
        extrapolation_value=float(rw.get("extrapolation_value", 0.0)),
        antialias=bool(rw.get("antialias", 0)),
    )


@dataclass
class Given:
    """The lengths, scales and sizes of a Resize, by axis of its input; None for what shows only at run time."""

    rw: LoweringRewriter
    modes: Modes
    shape: tuple[int | None, ...]
    by_sizes: bool
    places: list[int]
    """The axes that scales and sizes are of."""
    kept: list[bool]
    """Of each axis, whether it is known to be left as it is."""
    scales: list[np.float32 | None] = field(default_factory=list)
    sizes: list[int | None] = field(default_factory=list)

    @property
    def copies(self) -> bool:
        """Whether no length changes: ONNX Runtime copies the input then, whatever the scales are."""
        pairs = zip(self.kept, self.shape, self.sizes, strict=True)
        return all(kept or (length is not None and length == size) for kept, length, size in pairs)

    def axes(self, f: Folding) -> list[Axis]:
        """Return the axes to resample: those that change, and those that the kernel for the mode resamples with them."""
        changed = {axis for axis, kept in enumerate(self.kept) if not kept}
        rank = len(self.shape)
        if self.modes.mode != "nearest":
            channels_last = rank == 4 and 1 in changed and 3 not in changed
            kernel = {1, 2} if channels_last else set(range(_OUTER.get(rank, rank), rank))
            changed |= {axis for axis in kernel if self.shape[axis] is not None}
        return [self._axis(f, axis) for axis in sorted(changed)]

    def _axis(self, f: Folding, place: int) -> Axis:
        rw = self.rw
        known, size, scale = self.shape[place], self.sizes[place], self.scales[place]
        length = _vector(known) if known is not None else self._lengths([place])
        at = self.places.index(place) if place in self.places else 0
        size_is: Operand
        scale_is: Operand
        if self.by_sizes and not self.kept[place]:
            size_is = _vector(size) if size is not None else _element(rw, rw.input(3), at)
            scale_is = (
                np.array([scale], np.float32)
                if scale is not None
                else f("Div", f.cast(size_is, TensorProto.FLOAT), f.cast(length, TensorProto.FLOAT))
            )
        else:
            index = 2 if len(rw.node.input) > 2 else 1
            scale_is = (
                np.array([scale], np.float32) if scale is not None else _element(rw, rw.input(index), at)
            )
            size_is = (
                _vector(size)
                if size is not None
                else f.cast(
                    f("Floor", f("Mul", f.cast(length, TensorProto.FLOAT), scale_is)), TensorProto.INT64
                )
            )
        return Axis(place, length, size_is, scale_is, self._roi(place, at))

    def _lengths(self, axes: list[int]) -> str:
        shape = self.rw.before("Shape", [self.rw.input(0)], hint="lengths")
        return self.rw.before("Gather", [shape, self.rw.constant(np.array(axes, np.int64), "axes")], axis=0)

    def _roi(self, place: int, at: int) -> tuple[Operand, Operand]:
        """Return the start and end of the region along an axis, as float32."""
        rw, whole = self.rw, (np.zeros(1, np.float32), np.ones(1, np.float32))
        crops = self.modes.coordinates == "tf_crop_and_resize" and bool(rw.input(1))
        if not crops or place not in self.places:
            return whole
        roi = rw.known(rw.input(1))
        if roi is not None:
            if not roi.size:
                return whole
            real = roi.astype(np.float32).reshape(-1)
            return real[at : at + 1], real[len(self.places) + at :][:1]
        value = rw.input(1)
        if rw.need_dtype(value) != TensorProto.FLOAT:
            value = rw.before("Cast", [value], hint="roi", to=TensorProto.FLOAT)
        return _element(rw, value, at), _element(rw, value, len(self.places) + at)


def _count(rw: LoweringRewriter, index: int) -> int | None:
    """Return the number of elements of an input, 0 for one that is left out, None where it is unknown."""
    value = rw.input(index)
    known, shape = (rw.known(value), rw.shape(value)) if value else (None, (0,))
    if known is not None:
        return known.size
    return shape[0] if shape is not None and len(shape) == 1 else None


def _vector(value: int) -> Array:
    return np.array([value], np.int64)


def _element(rw: LoweringRewriter, vector: str, at: int) -> str:
    return rw.before("Gather", [vector, rw.constant(np.array([at], np.int64), "axis")], axis=0)


def read_given(rw: LoweringRewriter, modes: Modes) -> Given:
    """Return what is known of a Resize of any version; refuses with `needs-rank` where the rank is unknown.

    Refuses a keep_aspect_ratio_policy whose sizes or lengths are not known.
    """
    source = rw.input(0)
    rank = rw.need_rank(source)
    shape = rw.shape(source) or ()
    places = resized_axes(rw.get("axes", []), rank)
    first = 1 if rw.version < 10 else 2
    vector = rw.known(rw.input(first))
    # Scales that are fed may be the empty tensor of version 11, which stands for none; sizes are, or scales, not both.
    by_sizes = first == 2 and _count(rw, 3) != 0 and not _count(rw, 2)
    kept = [axis not in places for axis in range(rank)]
    scales: list[np.float32 | None] = [np.float32(1)] * rank
    sizes: list[int | None] = list(shape)
    if by_sizes:
        elements = rw.partly_known(rw.input(3)) or [None] * len(places)
        origins = trace(rw, rw.input(3)) or [None] * len(places)
        for place, size, origin in zip(places, elements, origins, strict=True):
            length = shape[place]
            kept[place] = origin == (source, place) or (size is not None and size == length)
            if not kept[place]:
                sizes[place] = size
                scales[place] = (
                    None if size is None or length is None else np.float32(scale_of_size(length, size))
                )
        if not sizes_are_lengths(str(rw.get("keep_aspect_ratio_policy", "stretch"))):
            _apply_policy(rw, places, shape, elements, kept, scales, sizes)
    else:
        elements_of = [None] * len(places) if vector is None else list(vector.reshape(-1).astype(np.float32))
        for place, scale in zip(places, elements_of, strict=True):
            length = shape[place]
            scales[place] = scale
            kept[place] = scale == 1
            sizes[place] = length if kept[place] else None
            if scale is not None and length is not None:
                sizes[place] = run_length(length, float(scale))
    given = Given(rw, modes, shape, by_sizes, places, kept, scales, sizes)
    _keep_outer_axes(given)
    return given


def _keep_outer_axes(given: Given) -> None:
    """Of axes that are not known to change, those stay that no kernel for linear and cubic resizes."""
    rank = len(given.shape)
    open_axes = [axis for axis in range(rank) if not given.kept[axis] and given.scales[axis] is None]
    if given.modes.mode == "nearest" or rank not in (4, 5):
        return
    # Where neither the second axis of four nor the last is known to stay, all but the first are resampled.
    layout_known = rank == 5 or given.kept[1] or given.kept[3] or given.scales[3] not in (None, 1)
    for axis in (0, 1) if layout_known and not (rank == 4 and given.kept[3]) else (0,):
        if axis in open_axes:
            given.kept[axis] = True
            given.scales[axis] = np.float32(1)
            given.sizes[axis] = given.shape[axis]


def _apply_policy(
    rw: LoweringRewriter,
    places: list[int],
    shape: tuple[int | None, ...],
    elements: list[int | None],
    kept: list[bool],
    scales: list[np.float32 | None],
    sizes: list[int | None],
) -> None:
    """Give all axes one scale, the smallest or the largest, as AdjustOutputSizeAsPolicy does."""
    policy = rw.get("keep_aspect_ratio_policy")
    lengths = [shape[place] for place in places]
    if any(size is None for size in elements) or any(length is None for length in lengths):
        if any(size is None for size in elements):
            rw.need_constant(3, f"sizes, which keep_aspect_ratio_policy={policy} applies to,")
        rw.refuse(
            f"keep_aspect_ratio_policy is {policy!r}, and below opset 18 the lengths of its input must be known to apply it",
            code="needs-shape",
            hint="fix the dims of the model's inputs with --fix",
        )
    pairs = [(length or 0, size or 0) for length, size in zip(lengths, elements, strict=True)]
    choose = min if policy == "not_larger" else max
    scale = choose(scale_of_size(length, size) for length, size in pairs)
    for place, (length, _) in zip(places, pairs, strict=True):
        product = np.float32(scale) * np.float32(length)
        scales[place] = np.float32(scale)
        sizes[place] = int(np.floor(product) + np.floor(2 * (product - np.floor(product))))
        kept[place] = bool(scale == 1)


def write_scales(given: Given) -> bool:
    """Give the Resize the scales of all axes as a constant, if they are known and give the lengths; return whether."""
    every: list[np.float32] = []
    for kept, length, scale, size in zip(given.kept, given.shape, given.scales, given.sizes, strict=True):
        if kept:
            every.append(np.float32(1))
        elif (
            scale is None
            or size is None
            or (length is None and given.by_sizes)
            or (length is not None and run_length(length, float(scale)) != size)
            or (length is not None and given.by_sizes and lengths_differ(length, float(scale)))
        ):
            return False
        else:
            every.append(scale)
    rw = given.rw
    rw.set_input(2 if rw.version >= 11 else 1, rw.constant(np.array(every, np.float32), "scales"))
    return True


def sampled_alike(f: Folding, axis: Axis, old: Modes, new: Modes) -> bool:
    """Return whether two ways to sample an axis of fixed lengths and scale take the same elements with the same weights."""
    if old.antialias:
        pairs = (antialiased(axis, modes) for modes in (old, new))
        first, second = ([array for pair in samples for array in pair] for samples in pairs)
    else:
        first, second = (_samples(f, axis, modes) for modes in (old, new))
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _samples(f: Folding, axis: Axis, modes: Modes) -> list[Any]:
    at = coordinates(f, axis, modes.coordinates)
    if modes.mode == "nearest":
        return [nearest(f, axis, at, modes.rounding)]
    pairs = linear(f, axis, at) if modes.mode == "linear" else cubic(f, axis, at, modes)[0]
    return [array for pair in pairs for array in pair]


def spread_axes(rw: LoweringRewriter) -> None:
    """Write roi, scales and sizes of some axes as those of all: scale 1, the length as it is, the whole as roi."""
    if not rw.get("axes", []):
        rw.drop("axes")
        return
    source = rw.input(0)
    rank = rw.need_rank(source)
    places = resized_axes(rw.pop("axes"), rank)
    count = len(places)
    if rw.get("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize":
        rw.set_input(1, "")  # nothing reads it, so it may be of any length
    if rw.input(1):
        ends = np.array([0, 1], helper.tensor_dtype_to_np_dtype(rw.need_dtype(rw.input(1))))
        order = [
            2 + half * count + places.index(axis) if axis in places else half
            for half in (0, 1)
            for axis in range(rank)
        ]
        _spread(rw, 1, rw.constant(ends, "whole"), order, "roi")
    by_axis = [rank + places.index(axis) if axis in places else axis for axis in range(rank)]
    if rw.input(2):
        _spread(rw, 2, rw.constant(np.ones(rank, np.float32), "ones"), by_axis, "scales")
    if rw.input(3):
        shape = rw.shape(source) or ()
        others = [length for axis, length in enumerate(shape) if axis not in places]
        if None not in others and rw.known(rw.input(3)) is not None:
            lengths = rw.constant(np.array([length or 0 for length in shape], np.int64), "lengths")
        else:
            lengths = rw.before("Shape", [source], hint="lengths")
        _spread(rw, 3, lengths, by_axis, "sizes")


def _spread(rw: LoweringRewriter, index: int, others: str, order: list[int], hint: str) -> None:
    given, rest = rw.known(rw.input(index)), rw.constant_value(others)
    if given is not None and rest is not None:
        rw.set_input(index, rw.constant(np.concatenate([rest, given.reshape(-1)])[order], hint))
        return
    every = rw.before("Concat", [others, rw.input(index)], hint="every", axis=0)
    chosen = rw.constant(np.array(order, np.int64), "order")
    rw.set_input(index, rw.before("Gather", [every, chosen], hint=hint, axis=0))
