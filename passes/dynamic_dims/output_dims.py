"""Which dims of the outputs equal, or depend on, which symbol of the inputs, and the notes in the report on each symbol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

import onnx

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.shapes import Dims, inferred_outputs
from onnx_migrate.rewrite.change_log import ChangeLog

from .length_formulas import Lengths, formula
from .repair import RepairResult

__all__ = ["OutputDims", "note_symbols", "symbolic_outputs"]

_INCREMENTS = (1, 2, 31, 32, 33, 63, 64)
"""What is added to a frozen size: odd and even numbers, with and without a factor of 32, since strides and pads round."""

Shapes = Mapping[str, Dims | None]
Samples = Mapping[str, list[tuple[int, Shapes]]]
"""For each symbol, the sizes that were tried, and the shapes of the outputs at each."""


@dataclass(frozen=True)
class OutputDims:
    """The dims of each output: a number, the symbol or the expression of symbols that the dim always equals, or None."""

    dims: dict[str, Dims | None]
    computed: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """The axes (output, axis) that change with a symbol and do not equal it."""
    unknown: list[tuple[str, int]] = field(default_factory=list)
    """The axes of which shape inference does not show what they change with."""


def symbolic_outputs(proto: onnx.ModelProto, frozen: Mapping[str, int], batch: Set[str]) -> OutputDims:
    """Return the dims of the outputs of a model whose inputs have symbols.

    onnx's symbolic inference does not see through most of Resize and Reshape. So the shapes are inferred with numbers
    too, each symbol of `frozen` (symbol to the size it had) at several sizes and the others at theirs: a dim that is
    always as long as one symbol and changes with no other is that symbol. One that changes with no symbol is its
    number if all symbols are a `batch`; a length might still change at sizes that were not tried. One that changes with symbols
    is their expression, where one expression alone gives all the lengths that were found.
    """
    found = inferred_outputs(proto)
    if not frozen or all(dims is not None and None not in dims for dims in found.values()):
        return OutputDims(found)
    base = inferred_outputs(proto, frozen)
    samples = {symbol: _samples(proto, frozen, symbol) for symbol in frozen}
    together = _samples_of_all(proto, frozen) if len(frozen) > 1 else []
    only_batch = batch >= frozen.keys()
    result = OutputDims({})
    for name, dims in found.items():
        numbers = base.get(name)
        if numbers is None:
            result.dims[name] = dims
            result.unknown.extend((name, axis) for axis in range(len(dims or ())))
            continue
        own: list[int | str | None] = []
        for axis, number in enumerate(numbers):
            known = dims[axis] if dims is not None and len(dims) == len(numbers) else None
            lengths = _lengths(samples, name, axis)
            if known is None and not (
                isinstance(number, int) and all(len(runs) > 1 for runs in lengths.values())
            ):
                result.unknown.append((name, axis))
            elif known is None and isinstance(number, int):
                changes = {
                    symbol for symbol, runs in lengths.items() if any(length != number for _, length in runs)
                }
                known = _dim(lengths, number, changes, only_batch=only_batch)
                for symbol in sorted(changes - {known}):
                    result.computed.setdefault(symbol, []).append((name, axis))
                if known is None and changes:
                    of_symbol = {symbol: lengths[symbol] for symbol in frozen if symbol in changes}
                    of_all = _lengths_of_all(together, name, axis)
                    known = formula(Lengths(frozen, number, of_symbol, of_all))
            own.append(known)
        result.dims[name] = tuple(own)
    return result


def _samples(proto: onnx.ModelProto, frozen: Mapping[str, int], symbol: str) -> list[tuple[int, Shapes]]:
    found: list[tuple[int, Shapes]] = []
    for increment in _INCREMENTS:
        size = frozen[symbol] + increment
        try:
            found.append((size, inferred_outputs(proto, {**frozen, symbol: size})))
        except CannotMigrate:
            continue  # the network may not take this size; others are tried
    return found


def _samples_of_all(
    proto: onnx.ModelProto, frozen: Mapping[str, int]
) -> list[tuple[Mapping[str, int], Shapes]]:
    """Return the shapes of the outputs where all symbols have other sizes at once."""
    found: list[tuple[Mapping[str, int], Shapes]] = []
    for start in range(2):
        steps = (*_INCREMENTS[start:], *_INCREMENTS[:start])
        sizes = {
            symbol: size + steps[place % len(steps)] for place, (symbol, size) in enumerate(frozen.items())
        }
        try:
            found.append((sizes, inferred_outputs(proto, sizes)))
        except CannotMigrate:
            continue  # the network may not take these sizes together
    return found


def _lengths_of_all(
    samples: list[tuple[Mapping[str, int], Shapes]], name: str, axis: int
) -> list[tuple[Mapping[str, int], int]]:
    found = []
    for sizes, shapes in samples:
        dims = shapes.get(name)
        length = dims[axis] if dims is not None and axis < len(dims) else None
        if isinstance(length, int):
            found.append((sizes, length))
    return found


def _lengths(samples: Samples, name: str, axis: int) -> dict[str, list[tuple[int, int]]]:
    """Return for each symbol the sizes tried and how long one axis of an output was at each, where that is known."""
    found: dict[str, list[tuple[int, int]]] = {}
    for symbol, runs in samples.items():
        found[symbol] = []
        for size, shapes in runs:
            dims = shapes.get(name)
            length = dims[axis] if dims is not None and axis < len(dims) else None
            if isinstance(length, int):
                found[symbol].append((size, length))
    return found


def _dim(
    lengths: Mapping[str, list[tuple[int, int]]], number: int, changes: Set[str], *, only_batch: bool
) -> int | str | None:
    """Return the symbol that an axis equals at all sizes tried, its number if it never changes, else None."""
    if len(changes) > 1:
        return None
    if not changes:
        return number if only_batch else None
    (symbol,) = changes
    return symbol if all(length == size for size, length in lengths[symbol]) else None


def note_symbols(result: RepairResult, outputs: OutputDims, log: ChangeLog, pass_name: str) -> None:
    """Note of each symbol where it occurs: `outputs` is from shape inference; what that leaves open, from `result`."""
    graph = result.model.proto.graph
    computed = {symbol: list(axes) for symbol, axes in outputs.computed.items()}
    open_axes = False
    for name, axis in outputs.unknown:
        axes = result.output_symbols.get(name, [])
        symbols = axes[axis] if axis < len(axes) else None
        open_axes |= symbols is None
        for symbol in symbols or ():
            computed.setdefault(symbol, []).append((name, axis))
    nowhere = "no output axis, as far as shape inference shows" if open_axes else "no output axis"
    for symbol, (changing, nodes) in result.symbol_use.items():
        equal = _axes_of(symbol, graph.output)
        others = [
            text
            for text in (f"{name}[{axis}]" for name, axis in computed.get(symbol, ()))
            if text not in equal
        ]
        if others:
            others[-1] += f" (computed from {symbol})"
        log.note(
            pass_name,
            "flow",
            f"{symbol}: {', '.join(_axes_of(symbol, graph.input))} → {', '.join([*equal, *others]) or nowhere};"
            f" the outputs of {changing} of {nodes} nodes change with it",
            subject=symbol,
        )


def _axes_of(symbol: str, values: Iterable[onnx.ValueInfoProto]) -> list[str]:
    return [
        f"{value.name}[{axis}]"
        for value in values
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param == symbol
    ]
