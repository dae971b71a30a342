"""Sizes for the dims that a model leaves open, as choices to try until the model runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import onnx

from onnx_migrate.model.graphs import fed_inputs

__all__ = ["CHANNELS", "ODD_LENGTH", "SizeChoice", "choice_after_crash", "size_choices"]

_BATCHES = (2, 1, 3)
_IMAGES = (
    (64, 96),
    (48, 96),
    (32, 100),
    (224, 224),
    (256, 320),
    (48, 192),
    (112, 112),
    (299, 299),
    (512, 512),
    (8, 12),
)
ODD_LENGTH = 7
"""Where it is the length, each further symbol is one longer, so that no two lengths are equal by chance."""

_LENGTHS = (ODD_LENGTH, 16, 1, 64, 128, 256, 512, 1600, 16000)
"""Of sequences; the last are windows of audio samples."""
CHANNELS = (1, 3, 4)
_CHOICES = 64


@dataclass(frozen=True)
class SizeChoice:
    """One choice of sizes: of a batch, an image (height and width), a sequence, and of the rank where none is declared.

    `rank` is 0 where every input declares its rank.
    """

    batch: int
    image: tuple[int, int]
    length: int
    rank: int


def size_choices(model: onnx.ModelProto) -> list[SizeChoice]:
    """Return the choices to try, likeliest first, at most 64; one where the model leaves nothing open."""
    inputs = [value.type.tensor_type for value in fed_inputs(model.graph)]
    ranked = all(kind.HasField("shape") for kind in inputs)
    open_dims = [
        (axis, len(kind.shape.dim))
        for kind in inputs
        for axis, dim in enumerate(kind.shape.dim)
        if _is_open(dim)
    ]
    batches = _BATCHES if any(axis == 0 for axis, _ in open_dims) or not ranked else _BATCHES[:1]
    images = (
        _IMAGES if any(rank >= 4 and axis >= 2 for axis, rank in open_dims) or not ranked else _IMAGES[:1]
    )
    lengths = (
        _LENGTHS if any(rank < 4 and axis > 0 for axis, rank in open_dims) or not ranked else _LENGTHS[:1]
    )
    ranks = (0,) if ranked else (4, 2, 3, 1)
    positions = product(range(len(ranks)), range(len(lengths)), range(len(images)), range(len(batches)))
    # Ordered by how many first choices they give up: in nested order, most values would lie beyond the limit.
    ordered = sorted(positions, key=sum)[:_CHOICES]
    return [SizeChoice(batches[b], images[i], lengths[n], ranks[r]) for r, n, i, b in ordered]


def choice_after_crash(choices: list[SizeChoice], failed: int) -> int:
    """Return the index of the next choice whose lengths are not those of one up to `failed`, or the number of choices.

    A model that crashed at some lengths crashes at them with another batch too.
    """
    seen = {(choice.image, choice.length) for choice in choices[: failed + 1]}
    following = range(failed + 1, len(choices))
    return next((at for at in following if (choices[at].image, choices[at].length) not in seen), len(choices))


def _is_open(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether a dim has no number. ONNX Runtime takes a declared 0 as the length 0."""
    return dim.dim_value < 0 or not dim.HasField("dim_value")
