"""Inputs like those of real use: pages of print, ramps, flat areas and sparse dots, as outputs may be steep on these.

A detector of text, for example, gives nearly the same number everywhere on random pixels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["SCENE", "scene"]

SCENE = "scene"
"""The name of these inputs. Their limit has a higher ceiling, because rounding moves the edges of what a model finds."""

_SHORTEST, _CHANNELS = 16, (1, 3, 4)
"""Numbers along the axes of an image or a sound, at least; and the lengths of a last axis that holds channels."""

_LINE, _GLYPH, _INK = 12, 3, 0.55
"""Height of a line of print and width of a stroke, in pixels; and the share of strokes with ink."""

_DOTS = 0.02
"""The share of numbers in a sparse area that are not 0."""

Array = np.ndarray[Any, Any]


def scene(inputs: Mapping[str, Any], seed: int) -> Mapping[str, Any] | None:
    """Return inputs whose floats of images and sounds are such scenes, from -1 to 1; None if no input has enough numbers."""
    generator, changed = np.random.default_rng(seed), dict(inputs)
    for name, value in inputs.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or "mask" in name.lower():
            continue
        # With channels last, the two axes before them are height and width.
        last = value.ndim >= 4 and value.shape[-1] in _CHANNELS
        axes = value.shape[:-1] if last else value.shape
        if len(axes) < 2 or axes[-1] < _SHORTEST:
            continue
        areas = _areas(axes[-2], axes[-1], generator)
        whole = np.broadcast_to(areas[..., None] if last else areas, value.shape)
        changed[name] = (whole + generator.normal(0, 0.01, value.shape)).clip(-1, 1).astype(value.dtype)
    return changed if any(changed[name] is not value for name, value in inputs.items()) else None


def _areas(height: int, width: int, generator: np.random.Generator) -> Array:
    """Return print on bright paper, with a quarter that is a ramp, and a dark quarter with few dots."""
    image = np.where(_printed(height, width, generator), -1.0, 0.9)
    top, left = height // 2, width // 2
    image[top:, left:] = np.linspace(-1, 1, width - left)
    dots = generator.random((height - top, left)) < _DOTS
    image[top:, :left] = np.where(dots, 1.0, -1.0)
    return image


def _printed(height: int, width: int, generator: np.random.Generator) -> Array:
    """Return which pixels have ink: strokes in lines, with gaps between words and between lines."""
    glyphs = generator.random((-(-height // (_LINE // 4)), -(-width // _GLYPH))) < _INK
    ink = np.kron(glyphs, np.ones((_LINE // 4, _GLYPH), bool))[:height, :width]
    rows, words = np.arange(height) % (2 * _LINE) < _LINE, generator.random(-(-width // 40)) < 0.8
    return np.asarray(ink & rows[:, None] & np.repeat(words, 40)[:width], bool)
