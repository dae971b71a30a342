"""The array that images become as an input of a model: its axes, its size, and the number of each pixel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from onnx import TensorProto

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.inputs.fitting import InputType
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["MODES", "ImageForm", "ImageOptions", "Layout", "Numbers", "fits_images", "numbers_of"]

Layout = Literal["nchw", "nhwc"]

MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's modes by the number of channels."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)

_LARGEST = 2.0
"""Largest mean or standard deviation of pixels from 0 to 1; larger ones are for pixels from 0 to 255."""

Numbers = str | float | Sequence[float] | None


def numbers_of(option: str, value: Numbers) -> tuple[float, ...]:
    """Return the numbers of --mean or --std: a number, several, or a text like "0.485,0.456,0.406" or "1/255".

    Raises UsageError for a text that is no number, and for numbers of pixels from 0 to 255.
    """
    parts = (
        value.split(",")
        if isinstance(value, str)
        else [value]
        if isinstance(value, (int, float))
        else value or ()
    )
    try:
        numbers = tuple(float(Fraction(part.strip()) if isinstance(part, str) else part) for part in parts)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise UsageError(
            f"{option} {value} is no number", hint="write it like 0.485,0.456,0.406 or 1/255"
        ) from error
    if not all(np.isfinite(number) and abs(number) <= _LARGEST for number in numbers):
        small = ",".join(f"{number / 255:.4g}" for number in numbers)
        raise UsageError(
            f"{option} {value} is for pixels from 0 to 255, and images have pixels from 0 to 1",
            hint=f"write {option} {small}",
        )
    if option == "--std" and not all(number > 0 for number in numbers):
        raise UsageError(f"--std {value} is not above 0", hint="leave it out for a standard deviation of 1")
    return numbers


@dataclass(frozen=True)
class ImageOptions:
    """How images become arrays. `mean` and `std` are for pixels from 0 to 1: one number, or one for each channel.

    Sizes that the model leaves open are rounded to multiples of `multiple`.
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    layout: Layout | None = None
    multiple: int = 1

    @classmethod
    def of(cls, mean: Numbers, std: Numbers, layout: str | None) -> ImageOptions:
        """Return options as users write them. Raises UsageError."""
        layouts = {name: name for name in get_args(Layout)}
        if layout is not None and layout not in layouts:
            raise UsageError(f"layout={layout!r} is not known", hint=f"it is {' or '.join(layouts)}")
        return cls(numbers_of("--mean", mean), numbers_of("--std", std), layouts[layout] if layout else None)

    @property
    def is_given(self) -> bool:
        """Whether the user gave any of them."""
        return bool(self.mean or self.std or self.layout)


@dataclass(frozen=True)
class ImageForm:
    """The array of an input that images become.

    `axes` are its axes in order: n (images), c (channels), h and w. `height` and `width` are 0 if each image keeps its own.
    `mean` and `std` are empty if the pixels stay unchanged.
    """

    input: InputType
    axes: str
    batch: int
    channels: int
    height: int
    width: int
    options: ImageOptions

    @classmethod
    def of(cls, value: InputType, options: ImageOptions) -> ImageForm:
        """Return the form of images for an input. Raises UsageError for an input that cannot take images."""
        if value.element not in (*_FLOATS, TensorProto.UINT8):
            raise _unfit(value, "images are for inputs of floats or uint8")
        axes = _axes(value, options.layout)
        dims = dict(zip(axes, value.dims or ("", "", "", ""), strict=True))
        sizes = {axis: dim if isinstance(dim, int) else 0 for axis, dim in dims.items()}
        channels = sizes.get("c", 1) or 3
        if channels not in MODES:
            raise _unfit(value, f"it has {channels} channels in layout {axes}, and images have 1, 3 or 4")
        form = cls(value, axes, sizes.get("n", 1) or 1, channels, sizes["h"], sizes["w"], options)
        form.check_numbers()
        return form

    def check_numbers(self) -> None:
        """Raise UsageError if the mean or the standard deviation does not fit the input."""
        for option, numbers in (("--mean", self.options.mean), ("--std", self.options.std)):
            if numbers and self.input.element == TensorProto.UINT8:
                raise UsageError(
                    f"input {self.input.name!r} is uint8 and gets the pixels unchanged, so {option} has no use",
                    hint=f"leave {option} out",
                )
            if len(numbers) not in (0, 1, self.channels):
                raise UsageError(
                    f"{option} has {len(numbers)} numbers, and input {self.input.name!r} has {self.channels} channels",
                    hint=f"give one number, or {self.channels}",
                )

    @property
    def formula(self) -> str:
        """How a pixel becomes a number."""
        mean, std = self.options.mean, self.options.std
        if self.input.element == TensorProto.UINT8:
            return "a pixel from 0 to 255, unchanged"
        scaled = f"pixel / 255 - {_text(mean)}" if mean else "pixel / 255"
        return f"({scaled}) / {_text(std)}" if std else scaled

    @property
    def size(self) -> str:
        """The size of the arrays, in words."""
        if not self.has_own_size:
            return f"resized to height {self.height} and width {self.width} (bilinear)"
        rounding = f", rounded to multiples of {self.options.multiple}" if self.options.multiple > 1 else ""
        fixed = (
            f", with height {self.height}"
            if self.height
            else f", with width {self.width}"
            if self.width
            else ""
        )
        return f"each in its own size{rounding}{fixed}"

    @property
    def has_own_size(self) -> bool:
        """Whether each image keeps its own height or width."""
        return not (self.height and self.width)

    def size_of(self, height: int, width: int) -> tuple[int, int]:
        """Return the height and width of the array of an image."""
        multiple = self.options.multiple
        own = [max(1, round(length / multiple)) * multiple for length in (height, width)]
        return self.height or own[0], self.width or own[1]

    def array(self, images: Sequence[Array]) -> Array:
        """Return the array of images of one size, which are arrays of height, width and channels."""
        stacked, axes = np.stack(images), "nhwc"
        if self.input.element != TensorProto.UINT8:
            scaled = (stacked.astype(np.float64) / 255 - (self.options.mean or 0.0)) / (
                self.options.std or 1.0
            )
            stacked = scaled.astype(self.input.dtype)
        for axis in "nc":
            if axis not in self.axes:
                stacked, axes = np.take(stacked, 0, axis=axes.index(axis)), axes.replace(axis, "")
        return np.ascontiguousarray(stacked.transpose([axes.index(axis) for axis in self.axes]))


def fits_images(value: InputType) -> bool:
    """Return whether images fit an input, so that it is the one that they are for."""
    try:
        ImageForm.of(value, ImageOptions())
    except UsageError:
        return False
    return True


def _axes(value: InputType, layout: Layout | None) -> str:
    """Return the axes of an input. Raises UsageError if they are not those of images, or not clear."""
    dims = ("", "", "", "") if value.dims is None and layout else value.dims or ()
    layouts = [axes for axes in _with_rank(len(dims)) if _is_channels(dims, axes)]
    if layout is not None:
        fitting = [axes for axes in _with_rank(len(dims)) if axes.strip("n") in (layout.strip("n"), "hw")]
        layouts = [axes for axes in fitting if "c" in axes] or fitting
    if layouts:
        return min(layouts, key=lambda axes: _rank_of(dims, axes))
    if len(dims) == 4 and any(isinstance(dims[axis], str) for axis in (1, 3)):
        raise _unfit(value, "its axis of channels is not clear; give --layout nchw or nhwc")
    raise _unfit(value, "it has no axis of 1, 3 or 4 channels")


def _rank_of(dims: Sequence[Any], axes: str) -> int:
    """Return how likely axes are, 0 for the likeliest: most images have 3 channels, and few have 4."""
    channels = dims[axes.index("c")] if "c" in axes else 1
    return (3, 1, 4, channels).index(channels)


def _with_rank(rank: int) -> Iterator[str]:
    yield from (axes for axes in ("nchw", "nhwc", "chw", "hwc", "nhw", "hw") if len(axes) == rank)


def _is_channels(dims: Sequence[Any], axes: str) -> bool:
    """Whether the dim of the channels has a number of channels; axes without channels fit any dims."""
    return "c" not in axes or dims[axes.index("c")] in MODES


def _text(numbers: tuple[float, ...]) -> str:
    return (
        f"{numbers[0]:.6g}" if len(numbers) == 1 else f"({', '.join(f'{number:.6g}' for number in numbers)})"
    )


def _unfit(value: InputType, reason: str) -> UsageError:
    return UsageError(
        f"input {value.name!r} is {value}, which images do not fit: {reason}", code="input-data"
    )
