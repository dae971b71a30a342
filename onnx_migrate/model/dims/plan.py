"""The axes of a model that become dynamic, as one value: the user's request, resolved against the model's interface."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice, product

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import listed
from onnx_migrate.model.dims.requests import DynamicAxes, named_axes
from onnx_migrate.model.interface import Interface

__all__ = ["DimPlan", "DynamicDim", "batch_symbols", "plans_for_batch"]

Axes = Mapping[str, Mapping[int, str]]
"""The symbol of each axis, by input or output and axis."""

_MAX_BATCH_PLANS = 16
_LENGTH = re.compile(r"^[TSLHWtslhw]$|seq|len|time|step|frame|token|height|width|samples", re.IGNORECASE)
"""Symbols that people give to lengths, so that a first axis of such a name is no batch."""


@dataclass(frozen=True)
class DynamicDim:
    """One axis of an input that becomes the dim `symbol`."""

    input: str
    axis: int
    symbol: str
    frozen: int | None
    """The length that the axis had; None if it was open already."""
    is_batch: bool


@dataclass(frozen=True)
class DimPlan:
    """Which axes of the inputs become which symbols, and the names that the user wants for axes of outputs."""

    dims: tuple[DynamicDim, ...] = ()
    output_names: Axes = field(default_factory=dict)
    bounds: tuple[int, int] = (0, 0)
    """The step and the least length of images that computed tables allow; 0 for any."""
    keeps_cells: bool = False
    """Whether each cell of a feature map must keep its numbers at other sizes: grids that were computed count pixels."""

    @classmethod
    def of(cls, request: DynamicAxes, interface: Interface) -> DimPlan:
        """Return the plan for the user's request. Raises UsageError as `named_axes` and `of_axes` do."""
        return cls.of_axes(named_axes(request, interface), interface)

    @classmethod
    def of_axes(cls, axes: Axes, interface: Interface, batch: Set[str] = frozenset()) -> DimPlan:
        """Return the plan that gives axes these symbols; the symbols in `batch` are a batch whatever their names.

        Raises UsageError for one symbol of two lengths.
        """
        dims = _dims(axes, interface, batch)
        _require_one_length(dims)
        return cls(dims, {port.name: axes[port.name] for port in interface.outputs if port.name in axes})

    @property
    def is_empty(self) -> bool:
        """Whether the user made no request."""
        return not self.dims and not self.output_names

    @property
    def frozen_sizes(self) -> dict[str, int]:
        """The length that each symbol replaces; symbols of axes that were already open are not included."""
        return {dim.symbol: dim.frozen for dim in self.dims if dim.frozen is not None}

    @property
    def batch(self) -> frozenset[str]:
        """The symbols that are a batch."""
        return frozenset(dim.symbol for dim in self.dims if dim.is_batch)

    def only(self, symbols: Collection[str]) -> DimPlan:
        """Return the plan with these symbols alone, without names of outputs' axes, since those follow from the inputs."""
        return DimPlan(tuple(dim for dim in self.dims if dim.symbol in symbols))

    def part_text(self, symbols: Collection[str]) -> str:
        """Return a hint that these symbols can be dynamic, with the request for them."""
        dynamic_symbols = listed([symbol for symbol in self.frozen_sizes if symbol in symbols])
        requests = " ".join(f"--dynamic {text}" for text in self.only(symbols).texts())
        return f"{dynamic_symbols} can be made dynamic: {requests}"

    def texts(self) -> list[str]:
        """Return the plan as requests, one for each input, as in "x:0=N,2=H"."""
        return [
            f"{name}:{','.join(f'{axis}={symbol}' for axis, symbol in symbols.items())}"
            for name, symbols in self.axes.items()
        ]

    @property
    def axes(self) -> dict[str, dict[int, str]]:
        """The symbols that the plan gives to axes, by input and axis."""
        symbols_by_axis: dict[str, dict[int, str]] = {}
        for dim in self.dims:
            symbols_by_axis.setdefault(dim.input, {})[dim.axis] = dim.symbol
        return symbols_by_axis

    def is_generated(self, symbol: str) -> bool:
        """Return whether onnx-migrate made up a symbol for an axis that the user gave without a name."""
        return any(
            symbol == f"{name}_dim_{axis}"
            for name, symbols in {**self.axes, **self.output_names}.items()
            for axis in symbols
        )

    def with_batch(self, axes: Axes, interface: Interface, symbol: str) -> DimPlan:
        """Return this plan with `symbol`, a batch, on more inputs; an input that this plan names keeps its axes.

        Raises UsageError for one symbol of two lengths.
        """
        return DimPlan.of_axes({**axes, **self.output_names, **self.axes}, interface, {symbol})

    def with_one_symbol(self, interface: Interface) -> tuple[DimPlan, dict[str, str]]:
        """Return this plan with one symbol for all axes of the same index and length, and the replaced symbols.

        The second value maps each replaced symbol to its replacement.
        """
        first: dict[tuple[int, int], str] = {}
        others: dict[str, str] = {}
        for dim in self.dims:
            # A dim that is open already has a name of its own.
            if dim.frozen is not None:
                shared_symbol = first.setdefault((dim.axis, dim.frozen), dim.symbol)
                if shared_symbol != dim.symbol:
                    others[dim.symbol] = shared_symbol
        named = {
            name: {axis: others.get(symbol, symbol) for axis, symbol in symbols.items()}
            for name, symbols in {**self.axes, **self.output_names}.items()
        }
        return (DimPlan.of_axes(named, interface) if others else self), others

    def made_between(self, before: Interface, after: Interface) -> DimPlan:
        """Return the axes that are numbers in `before` and symbols in `after`, as this plan has them.

        Axes that are not of this plan, as those that a user's own pass names, get their entries from the interfaces.
        """
        planned_dims = {(dim.input, dim.axis, dim.symbol): dim for dim in self.dims}
        changed: dict[str, dict[int, str]] = {}
        for old, new in zip(before.inputs, after.inputs, strict=True):
            for axis, (size, symbol) in enumerate(zip(old.shape or (), new.shape or (), strict=True)):
                # Axes that were open before are not made dynamic by a pass.
                if isinstance(size, int) and size > 0 and isinstance(symbol, str):
                    changed.setdefault(new.name, {})[axis] = symbol
        changed_dims = _dims(changed, before)
        dims = tuple(planned_dims.get((dim.input, dim.axis, dim.symbol), dim) for dim in changed_dims)
        return DimPlan(dims, bounds=self.bounds, keeps_cells=self.keeps_cells)


def _dims(axes: Axes, interface: Interface, known_batch: Set[str] = frozenset()) -> tuple[DynamicDim, ...]:
    """Return the entries of a plan, in the order of the inputs."""
    inputs = [port for port in interface.inputs if port.name in axes]
    batch = batch_symbols({port.name: axes[port.name] for port in inputs}) | known_batch
    dims = []
    for port in inputs:
        for axis, symbol in axes[port.name].items():
            size = port.shape[axis] if port.shape is not None else None
            frozen = size if isinstance(size, int) and size > 0 else None
            dims.append(DynamicDim(port.name, axis, symbol, frozen, symbol in batch))
    return tuple(dims)


def _require_one_length(dims: Iterable[DynamicDim]) -> None:
    first: dict[str, DynamicDim] = {}
    for dim in dims:
        if dim.frozen is None:
            continue
        other = first.setdefault(dim.symbol, dim)
        if other.frozen != dim.frozen:
            raise UsageError(
                f"{dim.symbol!r} names axes of two lengths: axis {other.axis} of {other.input!r} of length {other.frozen},"
                f" and axis {dim.axis} of {dim.input!r} of length {dim.frozen}",
                code="other-size",
                hint="give them different names",
            )


def plans_for_batch(plan: DimPlan, interface: Interface, symbol: str) -> Iterator[DimPlan]:
    """Yield `plan` with the batch of every input made `symbol`, one plan for each possible layout, likeliest first.

    The batch is the length that the first axes of the inputs have in common, or 1 if they differ. In each input it is
    the first axis of that length: axis 0, but axis 1 of a recurrent state [layers, 1, hidden]. If an input has both,
    there is a plan for each. The same holds for an input with a single axis: that may be a length for each item, or one
    number for all items. Yields nothing if the first axes are already open, named or not. Raises UsageError if no input
    has a batch.
    """
    for axes in _batch_axes(interface, symbol):
        yield plan.with_batch(axes, interface, symbol)


def _batch_axes(interface: Interface, symbol: str) -> Iterator[dict[str, dict[int, str]]]:
    ranked = [port for port in interface.inputs if port.shape]
    first = {port.shape[0] for port in ranked if port.shape and isinstance(port.shape[0], int)}
    # If all inputs agree on their first length, this length is the batch.
    batch = first.pop() if len(first) == 1 and len(ranked) == len(interface.inputs) else 1
    options: list[list[int | None]] = []
    for port in ranked:
        shape = port.shape or ()
        axes = [axis for axis, size in enumerate(shape[:2]) if size == batch and isinstance(shape[0], int)]
        batch_options: list[int | None] = list(axes)
        # One input of several may have no batch, such as a scalar or a table.
        if len(ranked) > 1 and (not axes or axes[0] or len(shape) == 1):
            batch_options.append(None)
        options.append(batch_options or [None])
    if all(axes == [None] for axes in options):
        if any(not isinstance(port.shape[0], int) for port in ranked if port.shape):
            # A symbolic first axis is a batch already.
            return
        raise UsageError(
            f"no input has an axis of length {batch} that could be the batch",
            hint=f"the inputs are {', '.join(map(str, interface.inputs))}; name the axis with --dynamic",
        )
    for chosen in islice(product(*options), _MAX_BATCH_PLANS):
        found_axes = {
            port.name: {axis: symbol} for port, axis in zip(ranked, chosen, strict=True) if axis is not None
        }
        if found_axes:
            yield found_axes


def batch_symbols(axes: Axes) -> set[str]:
    """Return the symbols of inputs' axes that are a batch.

    They are the symbols with "batch" in their name. If there is none, they are N or B on a later axis, unless a first
    axis has such a name. Otherwise they are the symbols of first axes, except names that people give to lengths.
    """
    symbols = {symbol for named in axes.values() for symbol in named.values()}
    first = {named[0] for named in axes.values() if 0 in named and not _LENGTH.search(named[0])}
    called = {symbol for symbol in symbols if "batch" in symbol.lower()}
    short = {symbol for symbol in symbols if symbol.lower() in ("n", "b")}
    return called or (short if short and first.isdisjoint(short) else first)
