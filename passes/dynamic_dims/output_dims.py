"""Which dims of the outputs follow which symbol of the inputs, measured with onnx's shape inference."""

from __future__ import annotations

from collections.abc import Mapping, Set

import onnx

from onnx_migrate.analysis.shapes import Dims, inferred_outputs
from onnx_migrate.errors import CannotMigrate

__all__ = ["symbolic_outputs"]

_INCREMENTS = (1, 2, 31, 32, 63, 64)
"""What is added to a frozen size: odd and even, with and without a factor of 32, as strides and pads tell them apart."""

Shapes = Mapping[str, Dims | None]


def symbolic_outputs(
    proto: onnx.ModelProto, frozen: Mapping[str, int], batch: Set[str]
) -> dict[str, Dims | None]:
    """Return the outputs' dims: a number, the input's symbol that the dim always equals, or None.

    Symbolic inference knows little of a Resize or a Reshape. So the shapes are inferred at numbers too, each symbol
    of `frozen` (symbol to the size it had) at several sizes, the others as they were: a dim that is always as
    large as one symbol and never moves with another is that symbol. One that moves with no symbol of `batch`, when
    there are no others, is the number it is; a length might still move at sizes that were not tried.
    """
    found = inferred_outputs(proto)
    if not frozen or all(dims is not None and None not in dims for dims in found.values()):
        return found
    base = inferred_outputs(proto, frozen)
    samples = {symbol: _samples(proto, frozen, symbol) for symbol in frozen}
    only_batch = batch >= frozen.keys()
    return {
        name: _with_symbols(name, dims, base.get(name), samples, only_batch) for name, dims in found.items()
    }


def _samples(proto: onnx.ModelProto, frozen: Mapping[str, int], symbol: str) -> list[tuple[int, Shapes]]:
    found: list[tuple[int, Shapes]] = []
    for step in _INCREMENTS:
        size = frozen[symbol] + step
        try:
            found.append((size, inferred_outputs(proto, {**frozen, symbol: size})))
        except CannotMigrate:
            continue  # A size that the network does not take tells nothing of the others.
    return found


def _with_symbols(
    name: str,
    dims: Dims | None,
    base: Dims | None,
    samples: Mapping[str, list[tuple[int, Shapes]]],
    only_batch: bool,
) -> Dims | None:
    if base is None:
        return dims
    result: list[int | str | None] = []
    for axis, number in enumerate(base):
        known = dims[axis] if dims is not None and len(dims) == len(base) else None
        if known is None and isinstance(number, int):
            known = _symbol_of_axis(name, axis, number, samples, only_batch)
        result.append(known)
    return tuple(result)


def _symbol_of_axis(
    name: str, axis: int, number: int, samples: Mapping[str, list[tuple[int, Shapes]]], only_batch: bool
) -> int | str | None:
    """Return the symbol that one dim of an output is at all sizes tried, its number if it never moves, or None."""
    symbol_found = None
    for symbol, runs in samples.items():
        values = [(size, _dim(shapes.get(name), axis)) for size, shapes in runs]
        values = [(size, value) for size, value in values if value is not None]
        if len(values) < 2:
            return None
        if all(value == number for _, value in values):
            continue
        if symbol_found is not None or any(value != size for size, value in values):
            return None
        symbol_found = symbol
    return symbol_found or (number if only_batch else None)


def _dim(dims: Dims | None, axis: int) -> int | None:
    size = dims[axis] if dims is not None and axis < len(dims) else None
    return size if isinstance(size, int) else None
