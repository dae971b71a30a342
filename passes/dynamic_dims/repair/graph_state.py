"""One body of nodes as it is walked: what is known of its values, and the hand that writes lengths into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.rewrite.rewriter import Rewriter

from .domain import Array, Assignments, Dim, Sizes, Value

__all__ = ["GraphState", "Length", "LoopState", "UnknownLength"]


class UnknownLength(Exception):
    """No value that is there has an axis of this length."""


@dataclass(frozen=True)
class Length:
    """How a length is had at run time: an axis of a value, then multiplied, divided and added to."""

    value: str
    axis: int
    multiplier: int = 1
    divisor: int = 1
    offset: int = 0


@dataclass(frozen=True)
class LoopState:
    """A value that a Loop or Scan carries round, by the label of that node and its place among those."""

    node: str
    index: int


@dataclass
class GraphState:
    """A graph's or a function's body. What is not found here is looked for in the body around it."""

    scope: Scope
    assignments: Assignments
    parent: GraphState | None = None
    values: dict[str, Value] = field(default_factory=dict)
    sources: dict[Sizes, tuple[str, int]] = field(default_factory=dict)
    """The first value and axis of each length that moves."""
    producers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    consumers: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)
    loop_states: Mapping[str, LoopState] = field(default_factory=dict)
    """Inputs of this body that are states."""
    _gathers: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)

    def enclosing(self) -> Iterator[GraphState]:
        """Give this body and those around it, from the inside."""
        graph: GraphState | None = self
        while graph is not None:
            yield graph
            graph = graph.parent

    def value(self, name: str) -> Value:
        """Return what is known of a value; small constants are read."""
        for graph in self.enclosing():
            found = graph.values.get(name)
            if found is not None:
                return found
        return Value()

    def loop_state(self, name: str) -> LoopState | None:
        """Return the state that a value is, None if it is none."""
        return next(
            (graph.loop_states[name] for graph in self.enclosing() if name in graph.loop_states), None
        )

    def record(self, name: str, value: Value) -> None:
        """Take note of a value."""
        self.values[name] = value
        for axis, dim in enumerate(value.dims or ()):
            if dim is not None and dim.varies:
                self.sources.setdefault(dim.sizes, (name, axis))

    def varying_dims(self, frozen: int) -> list[Dim]:
        """Return the lengths that were `frozen` and move, first come first."""
        found = [
            sizes
            for graph in reversed(list(self.enclosing()))
            for sizes in graph.sources
            if sizes[0] == frozen
        ]
        return [Dim(sizes) for sizes in dict.fromkeys(found)]

    def lengths(self, dim: Dim, prefer: Sequence[str] = ()) -> list[Length]:
        """Return the lengths whose product is `dim`'s, from the values preferred if they have it.

        Raises UnknownLengthError.
        """
        for name in prefer:
            for axis, other in enumerate(self.value(name).dims or ()):
                if other is not None and other.sizes == dim.sizes:
                    return [Length(name, axis)]
        for graph in self.enclosing():
            if dim.sizes in graph.sources:
                return [Length(*graph.sources[dim.sizes])]
        if dim.factors:
            varying_dims = [part for part in dim.flat_factors() if part.varies]
            rest = dim.frozen
            found: list[Length] = []
            for part in varying_dims:
                found.extend(self.lengths(part, prefer))
                rest //= part.frozen
            found[0] = Length(
                found[0].value, found[0].axis, found[0].multiplier * rest, found[0].divisor, found[0].offset
            )
            return found
        for graph in self.enclosing():
            for sizes, (name, axis) in graph.sources.items():
                made = _linear(sizes, dim.sizes)
                if made is not None:
                    return [Length(name, axis, *made)]
        raise UnknownLength

    def emit_shape(self, rw: Rewriter, entries: Sequence[int | Dim], prefer: Sequence[str] = ()) -> str:
        """Write what gives a vector of lengths and return its name: a constant, or Shape, Gather and Concat."""
        if all(isinstance(entry, int) for entry in entries):
            return rw.constant(np.array(entries, np.int64), "shape")
        parts: list[str] = []
        numbers: list[int] = []
        read: list[Length] = []

        def close() -> None:
            if numbers:
                parts.append(rw.constant(np.array(numbers, np.int64), "sizes"))
                numbers.clear()
            if read:
                parts.append(self._emit_gather(rw, read[0].value, tuple(length.axis for length in read)))
                read.clear()

        for entry in entries:
            if isinstance(entry, int):
                if read:
                    close()
                numbers.append(entry)
                continue
            lengths = self.lengths(entry, prefer)
            plain = len(lengths) == 1 and lengths[0] == Length(lengths[0].value, lengths[0].axis)
            if numbers or (read and (not plain or read[0].value != lengths[0].value)):
                close()
            if plain:
                read.append(lengths[0])
            else:
                parts.append(self._emit_product(rw, lengths))
        close()
        return parts[0] if len(parts) == 1 else rw.before("Concat", parts, hint="shape", axis=0)

    def emit_length(self, rw: Rewriter, dim: Dim, dtype: Array, prefer: Sequence[str] = ()) -> str:
        """Write what gives one length as a tensor without axes, of the type of `dtype`."""
        vector = self.emit_shape(rw, [dim], prefer)
        scalar = rw.before("Gather", [vector, rw.constant(np.array(0, np.int64), "first")], hint="length")
        if dtype.dtype == np.int64:
            return scalar
        kind = int(onnx.helper.np_dtype_to_tensor_dtype(dtype.dtype))
        return rw.before("Cast", [scalar], hint="length", to=kind)

    def _emit_gather(self, rw: Rewriter, value: str, axes: tuple[int, ...]) -> str:
        for graph in self.enclosing():
            if (value, axes) in graph._gathers:
                return graph._gathers[value, axes]
        shape = rw.before("Shape", [value])
        name = rw.before("Gather", [shape, rw.constant(np.array(axes, np.int64), "axes")], hint="sizes")
        self._gathers[value, axes] = name
        return name

    def _emit_product(self, rw: Rewriter, lengths: list[Length]) -> str:
        found = ""
        for length in lengths:
            name = self._emit_gather(rw, length.value, (length.axis,))
            for operator, number, idle in (
                ("Mul", length.multiplier, 1),
                ("Div", length.divisor, 1),
                ("Add", length.offset, 0),
            ):
                if number != idle:
                    name = rw.before(
                        operator, [name, rw.constant(np.array([number], np.int64), "by")], hint="length"
                    )
            found = rw.before("Mul", [found, name], hint="length") if found else name
        return found


def _linear(have: Sizes, want: Sizes) -> tuple[int, int, int] | None:
    """Return by what one length must be multiplied, divided and moved to be the other in every world."""
    if all(w % h == 0 and w // h == want[0] // have[0] for h, w in zip(have, want, strict=True)):
        return want[0] // have[0], 1, 0
    if all(w and h % w == 0 and h // w == have[0] // want[0] for h, w in zip(have, want, strict=True)):
        return 1, have[0] // want[0], 0
    moved = want[0] - have[0]
    if moved and all(w - h == moved for h, w in zip(have, want, strict=True)):
        return 1, 1, moved
    return None
