"""The parts into which SplitToSequence splits an axis, where its lengths are known before run time."""

from __future__ import annotations

from collections.abc import Collection

from onnx_migrate.engine.steps.formula import Array

__all__ = ["drops_axis", "part_lengths"]

_MOST = 10_000
"""The most tensors that take the place of a sequence."""


def part_lengths(given: Array, size: int | None) -> list[int] | None:
    """Return the length of each part, by a vector of lengths, or by one length for an axis of `size`.

    None for lengths that are not written: below 1, of too many parts, or of an axis whose size is not known.
    """
    if given.ndim:
        return [int(length) for length in given]
    length = int(given)
    if size is None or length < 1 or size // length >= _MOST:
        return None
    return [min(length, size - start) for start in range(0, size, length)]


def drops_axis(keepdims: int, given: Array, parts: Collection[int]) -> bool:
    """Return whether the parts are without the axis that was split.

    The standard ignores keepdims beside lengths; kernels do so beside a vector of them, and PyTorch writes unbind with a 1.
    """
    return not keepdims and not given.ndim and set(parts) <= {1}
