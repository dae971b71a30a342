"""Sizes for the dims that a model leaves open, as choices to try until the model runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import onnx
from onnx import TypeProto, ValueInfoProto

from onnx_migrate.model.graphs import fed_inputs

__all__ = ["SizeChoice", "choice_after_crash", "shape_of_input", "size_choices"]

_UNKNOWN = frozenset({"", "?", "None", "none", "-1", "0", "unk", "dynamic"})
"""Symbols that exporters write for "unknown": two dims of the same such symbol may differ."""

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
_ODD_LENGTH = 7
"""Where it is the length, each further symbol is one longer, so that no two lengths are equal by chance."""

_LENGTHS = (_ODD_LENGTH, 16, 1, 64, 128, 256, 512, 1600, 16000)
"""Of sequences; the last are windows of audio samples."""
_CHANNELS = (1, 3, 4)
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
        if dim.dim_value <= 0
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


def shape_of_input(
    kind: TypeProto, counterpart: ValueInfoProto | None, choice: SizeChoice, symbols: dict[str, int]
) -> tuple[int, ...]:
    """Return the shape of a tensor of the declared type `kind`, with the sizes of `choice` for open dims.

    An open dim that is a number in `counterpart`, the same input of another model, takes that number. `symbols` maps
    the symbols seen so far to their sizes, and is extended.
    """
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return _unranked(choice)
    known = list(counterpart.type.tensor_type.shape.dim) if counterpart is not None else []
    rank = len(tensor.shape.dim)
    dims = tensor.shape.dim
    channel = rank - 1 if rank >= 4 and dims[1].dim_value <= 0 and dims[-1].dim_value in _CHANNELS else 1
    shape = []
    for axis, dim in enumerate(dims):
        size = dim.dim_value
        if size <= 0 and len(known) == rank:
            size = known[axis].dim_value
        if size <= 0:
            wanted = _open_size(axis, rank, channel, choice) + (
                len(symbols) if rank < 4 and axis > 0 and choice.length == _ODD_LENGTH else 0
            )
            if rank == 3 and axis == 1 and dims[0].dim_value > 1:
                wanted = choice.batch  # a recurrent state: layers, batch, features
            shared = dim.dim_param not in _UNKNOWN
            size = symbols.setdefault(dim.dim_param, wanted) if shared else wanted
        shape.append(size)
    return tuple(shape)


def _open_size(axis: int, rank: int, channel: int, choice: SizeChoice) -> int:
    if axis == 0:
        return choice.batch
    if rank < 4:
        return choice.length
    return 3 if axis == channel else choice.image[min(axis - (2 if axis > channel else 1), 1)]


def _unranked(choice: SizeChoice) -> tuple[int, ...]:
    return (
        (choice.batch, 3, *choice.image)
        if choice.rank == 4
        else (choice.batch, choice.length, 4)[: choice.rank]
    )
