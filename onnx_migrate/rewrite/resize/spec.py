"""A Resize or an Upsample, read once: how it samples and, of each axis, the length, size, scale and region that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from onnx_migrate.rewrite.node_view import NodeView
from onnx_migrate.standard.resize import resized_axes, run_length, scale_of_size, sizes_are_lengths

__all__ = [
    "CROP",
    "Axis",
    "Origin",
    "ResizeSpec",
    "Sampling",
    "axes_of",
    "emptiness",
    "policy_of",
    "read_resize",
    "read_sampling",
    "scales_index",
]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
Known = Callable[[str], "Array | None"]
"""Returns the array of a value, None for one that is not known before run time."""
Origin = tuple[str, int]
"""A value and one of its axes: the length of that axis."""

CROP = "tf_crop_and_resize"
"""The one coordinate_transformation_mode that reads the roi."""
_WHOLE = (0.0, 1.0)


@dataclass(frozen=True)
class Sampling:
    """The attributes of a Resize that say how it samples."""

    mode: str
    coordinates: str
    rounding: str
    """The nearest_mode; "simple" is that of Resize-10: up if an axis shrinks, else down."""
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    extrapolation_value: float = 0.0
    antialias: bool = False

    @property
    def crops(self) -> bool:
        """Whether it samples a region of the input, and writes the extrapolation value beyond that."""
        return self.coordinates == CROP


@dataclass(frozen=True)
class Axis:
    """The known facts of one axis of the resized input; None for a fact that is known only at run time."""

    place: int
    size: int | None
    length: int | None = None
    scale: float | None = 1.0
    """A float32 number."""
    kept: bool = False
    """Whether the axis is known to stay unchanged."""
    roi: tuple[float, float] | None = _WHOLE
    """The start and end of the region that is sampled."""

    @property
    def fixed(self) -> bool:
        """Whether all facts are known that decide which elements are sampled."""
        return None not in (self.length, self.size, self.scale, self.roi)

    def keep(self) -> Axis:
        """Return the axis as one that stays unchanged."""
        return replace(self, size=self.length, scale=1.0, kept=True)


@dataclass(frozen=True)
class ResizeSpec:
    """The known facts of a Resize of any version: its sampling, and its axes, in the order of the input's."""

    sampling: Sampling
    axes: tuple[Axis, ...]
    by_sizes: bool
    """Whether it is given sizes and not scales."""
    places: tuple[int, ...]
    """The axes that scales and sizes are of, in the order of these."""

    @property
    def named(self) -> list[Axis]:
        """The axes that scales and sizes are of, in the order of these."""
        return [self.axes[index] for index in self.places]

    @property
    def scales(self) -> Floats | None:
        """The scales of `named`, if all are known."""
        known_scales = [axis.scale for axis in self.named if axis.scale is not None]
        return np.array(known_scales, np.float32) if len(known_scales) == len(self.places) else None

    @property
    def copies(self) -> bool:
        """Whether no length changes. ONNX Runtime then copies the input, for any scales."""
        return all(axis.kept or (axis.length is not None and axis.length == axis.size) for axis in self.axes)


def read_sampling(view: NodeView) -> Sampling:
    """Return how a node samples, with the defaults of its version; refuses an attribute that each call of a function sets."""
    mode = str(view.get("mode", "nearest"))
    if scales_index(view) == 1:
        return Sampling(mode, "asymmetric", "simple")
    return Sampling(
        mode=mode,
        coordinates=str(view.get("coordinate_transformation_mode", "half_pixel")),
        rounding=str(view.get("nearest_mode", "round_prefer_floor")),
        cubic_coeff_a=float(view.get("cubic_coeff_a", -0.75)),
        exclude_outside=bool(view.get("exclude_outside", 0)),
        extrapolation_value=float(view.get("extrapolation_value", 0.0)),
        antialias=bool(view.get("antialias", 0)),
    )


def scales_index(view: NodeView) -> int:
    """Return which input the scales are: the second up to Resize-10, the third from Resize-11 on."""
    return 1 if view.node.op_type == "Upsample" or (view.where.from_version or 11) < 11 else 2


def axes_of(view: NodeView, rank: int) -> list[int]:
    """Return which axes scales and sizes are of."""
    return resized_axes(view.get("axes", []), rank)


def policy_of(view: NodeView) -> str:
    """Return the keep_aspect_ratio_policy."""
    return str(view.get("keep_aspect_ratio_policy", "stretch"))


def emptiness(view: NodeView, value: str, known: Known | None = None) -> bool | None:
    """Return whether a value has no element or the node omits it; None if that is known only at run time."""
    if not value:
        return True
    array = (known or view.constant_value)(value)
    shape = view.shape(value) if array is None else array.shape
    if shape is not None and 0 in shape:
        return True
    return None if shape is None or None in shape else False


def read_resize(
    view: NodeView,
    known: Known,
    *,
    elements: Callable[[str], Sequence[int | None] | None] | None = None,
    origins: Callable[[str], Sequence[Origin | None] | None] | None = None,
) -> ResizeSpec | None:
    """Return the known facts of a node whose scales are an input; None if its axes, or scales or sizes for each, are not known.

    `known` gives the arrays of scales, sizes and roi. If sizes are known in part, `elements` gives those, and `origins` says
    which of them are lengths of a value.
    """
    source, index = view.input(0), scales_index(view)
    # Scales that are fed may be the empty tensor of version 11, which stands for none; sizes are, or scales, not both.
    by_sizes = (
        index == 2
        and not emptiness(view, view.input(3), known)
        and emptiness(view, view.input(2), known) is not False
    )
    name = view.input(3 if by_sizes else index)
    array = known(name) if name else None
    shape = view.shape(source)
    # A scale for each axis tells the rank, unless the node names its axes.
    if shape is None and array is not None and view.attribute("axes") is None:
        shape = (None,) * array.size
    if shape is None:
        return None
    resized_axes = axes_of(view, len(shape))
    # The node is not valid, so nothing is known of it.
    if array is not None and array.size != len(resized_axes):
        return None
    sampling = read_sampling(view)
    requested: Sequence[Any] = [None] * len(resized_axes) if array is None else _numbers(array)
    # A size that is a length of the input itself keeps the axis.
    traced: Sequence[Origin | None] = [None] * len(resized_axes)
    if by_sizes:
        requested = (elements(name) if array is None and elements is not None else None) or requested
        traced = (origins(name) if origins is not None else None) or traced
    regions = _regions(view, sampling, known, len(resized_axes))
    axes = [Axis(axis_index, length, length, kept=True) for axis_index, length in enumerate(shape)]
    for at, axis_index in enumerate(resized_axes):
        axis = replace(axes[axis_index], roi=regions[at])
        if not by_sizes:
            axes[axis_index] = _scaled(axis, requested[at])
        elif traced[at] != (source, axis_index):
            axes[axis_index] = _sized(axis, requested[at])
        else:
            axes[axis_index] = axis
    spec = ResizeSpec(sampling, tuple(axes), by_sizes, tuple(resized_axes))
    return _under_policy(spec, requested, policy_of(view)) if by_sizes else spec


def _numbers(array: Array) -> list[Any]:
    """Return scales, as float32 numbers, or sizes."""
    return list(array.reshape(-1).astype(np.float32 if array.dtype.kind == "f" else array.dtype).tolist())


def _scaled(axis: Axis, scale: float | None) -> Axis:
    """Return an axis by its scale."""
    if scale is None:
        return replace(axis, size=None, scale=None, kept=False)
    size = run_length(axis.length, scale) if axis.length is not None else None
    return replace(axis, size=size, scale=scale, kept=scale == 1)


def _sized(axis: Axis, size: int | None) -> Axis:
    """Return an axis by its size."""
    if size is not None and size == axis.length:
        return axis
    scale = None if axis.length is None or size is None else float(scale_of_size(axis.length, size))
    return replace(axis, size=size, scale=scale, kept=False)


def _under_policy(spec: ResizeSpec, bounds: Sequence[int | None], policy: str) -> ResizeSpec:
    """Give all axes one scale, the smallest or the largest, if sizes are bounds, as AdjustOutputSizeAsPolicy does."""
    # Under this policy, each size is the length of its axis.
    if sizes_are_lengths(policy):
        return spec
    pairs = [(axis.length, bound) for axis, bound in zip(spec.named, bounds, strict=True)]
    known_scales = [
        scale_of_size(length, bound) for length, bound in pairs if length is not None and bound is not None
    ]
    choose = min if policy == "not_larger" else max
    scale = choose(known_scales) if pairs and len(known_scales) == len(pairs) else None
    axes = list(spec.axes)
    for axis in spec.named:
        # One open length leaves the common scale open.
        if scale is None or axis.length is None:
            axes[axis.place] = replace(axis, size=None, scale=None, kept=False)
            continue
        # ONNX Runtime rounds half up here, and computes in float32.
        product = scale * np.float32(axis.length)
        size = int(np.floor(product) + np.floor(2 * (product - np.floor(product))))
        axes[axis.place] = replace(axis, size=size, scale=float(scale), kept=bool(scale == 1))
    return replace(spec, axes=tuple(axes))


def _regions(
    view: NodeView, sampling: Sampling, known: Known, count: int
) -> Sequence[tuple[float, float] | None]:
    """Return the region of each axis that the roi is of."""
    roi = view.input(1) if sampling.crops and scales_index(view) == 2 else ""
    array = known(roi) if roi else np.zeros(0)
    if array is not None and not array.size:
        return [_WHOLE] * count
    if array is None or array.size != 2 * count:
        return [None] * count
    starts, ends = array.astype(np.float32).reshape(2, count).tolist()
    return list(zip(starts, ends, strict=True))
