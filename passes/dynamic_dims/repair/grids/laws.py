"""Combines the fitted columns of a table into formulas, one for each feature map, and chooses the order of arithmetic.

Programs compute the same law in several orders, which round differently. The first order that gives the bits of the
constant is used. If none does, the constant was computed in another precision, and the order that is nearest is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..domain import Array, Dim
from .columns import Columns
from .fits import Fit, Kind, fit_of
from .formula import Formula, Lengths, Quantity, Selector, Step, evaluate
from .sizes import BoxSizes, box_sizes, constant_sizes, level_sizes

__all__ = ["AmbiguousSizes", "Law", "grid_law", "nearest_law"]

_ULPS = 4
"""How many units in the last place of its largest number a law may differ from the constant."""

_FEWEST_STEPS = 3
"""Steps from row to row that a table must have along its axes together."""


@dataclass(frozen=True)
class Law:
    """The formulas of a table's segments, in order; `exact` if they give the bits of the constant. `text` is for the report."""

    formulas: tuple[Formula, ...]
    exact: bool
    text: str
    pixels: bool = False
    """Whether sizes of boxes are pixels that are divided by the length of the image."""
    clipped: bool = False
    """Whether proportions are limited to [0, 1]."""
    step: int = 0
    """The law is sure for images that are whole multiples of this length; 0 if it is sure for all sizes."""
    least: int = 0
    """The law is sure for images of at least this length: smaller ones may limit boxes that are larger than they are."""
    keeps_cells: bool = False
    """Whether the numbers of a cell are the same at any size of the image."""
    is_grid: bool = False
    """Whether the numbers are coordinates in the image, and sizes along its axes."""


class AmbiguousSizes(Exception):
    """The sizes of the boxes in a table may be pixels or shares of the image: both give the same numbers."""


def grid_law(
    parts: Sequence[Columns], images: Sequence[Dim | None], *, pixels: bool = False, clipped: bool = False
) -> Law | None:
    """Return the law of a table whose columns are affine; None if no kind of scale fits. Raises AmbiguousSizes.

    `pixels` and `clipped` are facts of another table of the model. `pixels` says that its proportions are pixels divided by
    the length of the image, `clipped` that it limits them to [0, 1]. This table may show neither.
    """
    if not all(columns.is_affine for columns in parts) or not _is_shown(parts):
        return None
    frozen = [image.frozen if image is not None else None for image in images]
    for kind in _kinds(parts, pixels=pixels):
        fits = fit_of(parts, kind, frozen)
        if fits is None:
            continue
        sizes = _sizes(fits, kind, frozen)
        if sizes is None:
            raise AmbiguousSizes
        in_pixels = any(mask.any() for size in sizes for mask in size.masks)
        # Programs that divide sizes by the length of the image mostly divide positions by it too.
        if kind is Kind.SHARE and in_pixels:
            again = fit_of(parts, Kind.IMAGE_SHARE, frozen)
            kind, fits = (Kind.IMAGE_SHARE, again) if again is not None else (kind, fits)
        limited = kind is not Kind.PIXELS and (clipped or any(size.clipped for size in sizes))
        sizes = [replace(size, clipped=limited or size.clipped) for size in sizes]
        orders = _orders(fits, sizes, images, kind)
        law = nearest_law(orders, [columns.segment.array for columns in parts], _TEXTS[kind])
        if law is not None:
            is_grid = any(formula.selectors for formula in law.formulas)
            limited = any(size.clipped for size in sizes)
            constant = kind is Kind.PIXELS and not in_pixels
            step = _longest_stride(parts, frozen) if _has_two_laws(parts, kind, frozen) else 0
            law = replace(
                law, is_grid=is_grid, pixels=in_pixels, clipped=limited, keeps_cells=constant, step=step
            )
            if in_pixels and not limited and max(float(fit.bias.max()) for fit in fits) <= 1:
                law = replace(law, least=math.ceil(max(float(size.bias.max()) for size in sizes)))
            return law
    return None


def _has_two_laws(parts: Sequence[Columns], kind: Kind, images: Sequence[int | None]) -> bool:
    """Return whether proportions of the feature map and of the image give the same numbers.

    They do if the image is a whole number of strides long, and differ at other sizes.
    """
    if kind not in (Kind.SHARE, Kind.IMAGE_SHARE):
        return False
    return all(fit_of(parts, each, images) is not None for each in (Kind.SHARE, Kind.IMAGE_SHARE))


def _longest_stride(parts: Sequence[Columns], images: Sequence[int | None]) -> int:
    return max(
        round(image / columns.length(role))
        for columns in parts
        for role, image in enumerate(images)
        if image is not None
    )


def _is_shown(parts: Sequence[Columns]) -> bool:
    """Return whether the table has enough rows to show a law: a line through two or three numbers shows none."""
    steps = [
        columns.length(role) - 1
        for columns in parts
        for role, follows in enumerate(columns.follows)
        if follows.any()
    ]
    return not steps or sum(steps) >= _FEWEST_STEPS


def _sizes(fits: Sequence[Fit], kind: Kind, images: Sequence[int | None]) -> list[BoxSizes] | None:
    """Return how the sizes of boxes follow the image; None if the numbers do not decide it."""
    if not any(fit.moves.any() for fit in fits):
        return level_sizes(fits, images)
    if kind is Kind.PIXELS or not any(fit.bias.any() for fit in fits):
        return [constant_sizes(fit) for fit in fits]
    return None if kind is Kind.STRETCHED else box_sizes(fits, images)


_TEXTS = {
    Kind.PIXELS: "a grid in steps of the stride",
    Kind.SHARE: "a grid in proportions of the feature map",
    Kind.EDGE: "a grid from edge to edge of the feature map",
    Kind.IMAGE_SHARE: "a grid in proportions of the image",
    Kind.STRETCHED: "a grid over the image",
}


def _kinds(parts: Sequence[Columns], *, pixels: bool) -> list[Kind]:
    """Return the kinds in the order to try; a step below 1 is likelier a proportion than a number of pixels."""
    steps = np.concatenate([np.abs(slopes).reshape(-1) for columns in parts for slopes in columns.slopes])
    small = not steps.any() or bool((steps[steps > 0] < 1).any())
    if not steps.any():
        return [Kind.PIXELS]
    shares = [Kind.IMAGE_SHARE, Kind.SHARE] if pixels else [Kind.SHARE, Kind.IMAGE_SHARE]
    proportions = [*shares, Kind.EDGE]
    return [*proportions, Kind.PIXELS] if small else [Kind.PIXELS, Kind.STRETCHED, *proportions]


def nearest_law(
    orders: Iterator[tuple[Formula, ...]], arrays: Sequence[Array], text: str, ulps: float = _ULPS
) -> Law | None:
    """Return the first order of arithmetic that gives the bits of the arrays, else the nearest within rounding.

    `ulps` says how many units in the last place of the largest number are rounding.
    """
    best: tuple[float, tuple[Formula, ...]] | None = None
    for formulas in orders:
        distance = 0.0
        for formula, array in zip(formulas, arrays, strict=True):
            with np.errstate(all="ignore"):
                evaluated = evaluate(formula).astype(array.dtype)
            if not np.array_equal(evaluated, array):
                distance = max(distance, _distance(evaluated, array))
        if not distance:
            return Law(formulas, exact=True, text=text)
        if best is None or distance < best[0]:
            best = distance, formulas
    return Law(best[1], exact=False, text=text) if best is not None and best[0] <= ulps else None


def _distance(a: Array, b: Array) -> float:
    """Return the largest difference in units in the last place of the largest number; infinite for other types."""
    if b.dtype.kind != "f" or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite]):
        return float("inf")
    difference = np.abs(a[finite].astype(np.float64) - b[finite]).max(initial=0.0)
    unit = float(np.finfo(b.dtype).eps) * float(np.abs(b[finite]).astype(np.float64).max(initial=0.0))
    return float(difference / unit) if unit else float("inf")


def _orders(
    fits: Sequence[Fit], sizes: Sequence[BoxSizes], images: Sequence[Dim | None], kind: Kind
) -> Iterator[tuple[Formula, ...]]:
    """Yield the formulas of all segments, for one order of arithmetic after the other."""
    dtype = fits[0].columns.segment.array.dtype
    precisions: list[np.dtype[Any]] = [np.dtype(np.float32), np.dtype(np.float64)]
    if dtype.kind in "iu":
        precisions = [np.dtype(np.int64)]
    elif dtype == np.float64:
        precisions = [np.dtype(np.float64)]
    for precision in precisions:
        for order in _ORDERS[kind]:
            yield tuple(
                _formula(fit, size, images, order, precision) for fit, size in zip(fits, sizes, strict=True)
            )


Order = Callable[[Fit, "list[Dim]", "list[Dim | None]"], "list[Step]"]


def _formula(
    fit: Fit, sizes: BoxSizes, images: Sequence[Dim | None], order: Order, dtype: np.dtype[Any]
) -> Formula:
    segment = fit.columns.segment
    maps = segment.map_axes
    dims = [segment.dim(axis) for axis in maps]
    selectors = tuple(
        Selector(axis, follows.astype(np.int64))
        for axis, follows in zip(maps, fit.columns.follows, strict=True)
        if follows.any()
    )
    steps = order(fit, dims, [*images])
    if fit.offset.any():
        steps = [Step("Add", Quantity(fit.offset)), *steps]
    if sizes.bias.any():
        steps.append(Step("Add", _bias(sizes, images)))
    if sizes.clipped:
        steps += [Step("Max", Quantity(np.zeros(()))), Step("Min", Quantity(np.ones(())))]
    return Formula(segment.axes, selectors, tuple(steps), dtype)


def _bias(sizes: BoxSizes, images: Sequence[Dim | None]) -> Quantity:
    masks = [
        (image, mask.astype(np.int64))
        for image, mask in zip(images, sizes.masks, strict=True)
        if image is not None and mask.any()
    ]
    return Quantity(sizes.bias, over=Lengths(tuple(masks)) if masks else None)


def _along(fit: Fit, dims: Sequence[Dim | None]) -> Lengths:
    pairs = zip(dims, fit.columns.follows, strict=True)
    return Lengths(
        tuple((dim, mask.astype(np.int64)) for dim, mask in pairs if dim is not None and mask.any())
    )


def _scaled(fit: Fit) -> list[Step]:
    return [Step("Mul", Quantity(fit.scale))] if (fit.scale != 1).any() else []


def _pixels(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return _scaled(fit)


def _divided(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return [Step("Div", Quantity(np.ones(()), times=_along(fit, dims))), *_scaled(fit)]


def _scaled_then_divided(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return [*_scaled(fit), Step("Div", Quantity(np.ones(()), times=_along(fit, dims)))]


def _times_inverse(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return [Step("Mul", Quantity(fit.scale, over=_along(fit, dims)))]


def _edge(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    last = [
        Step("Div", Quantity(np.ones(()), times=_along(fit, dims), less=np.asarray(fit.moves, np.int64))),
    ]
    return [*_scaled(fit), *last]


def _edge_step(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return [Step("Mul", Quantity(fit.scale, over=_along(fit, dims), less=np.asarray(fit.moves, np.int64)))]


def _image_divided(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return [*_scaled(fit), Step("Div", Quantity(np.ones(()), times=_along(fit, images)))]


def _image_cells(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    """Divide by the number of strides in the image, which need not be whole."""
    return [Step("Div", Quantity(1 / fit.scale, times=_along(fit, images)))]


def _image_times_inverse(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return [Step("Mul", Quantity(fit.scale, over=_along(fit, images)))]


def _stretched(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    over = Step("Div", Quantity(np.ones(()), times=_along(fit, dims)))
    return [over, Step("Mul", Quantity(fit.scale, times=_along(fit, images)))]


def _stretched_last(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    over = Step("Div", Quantity(np.ones(()), times=_along(fit, dims)))
    return [Step("Mul", Quantity(fit.scale, times=_along(fit, images))), over]


def _stretched_step(fit: Fit, dims: list[Dim], images: list[Dim | None]) -> list[Step]:
    return [Step("Mul", Quantity(fit.scale, times=_along(fit, images), over=_along(fit, dims)))]


_ORDERS: dict[Kind, tuple[Order, ...]] = {
    Kind.PIXELS: (_pixels,),
    Kind.SHARE: (_divided, _scaled_then_divided, _times_inverse),
    Kind.EDGE: (_edge, _edge_step),
    Kind.IMAGE_SHARE: (_image_divided, _image_cells, _image_times_inverse),
    Kind.STRETCHED: (_stretched_step, _stretched, _stretched_last),
}
