"""One body of nodes as it is walked: what is known of its values, and the hand that writes lengths into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.rewrite.rewriter import Rewriter

from .domain import Array, Dim, Sizes, Value, Worlds

__all__ = ["Body", "Length", "State", "UnknownLengthError"]


class UnknownLengthError(Exception):
    """No value that is there has an axis of this length."""


@dataclass(frozen=True)
class Length:
    """How a length is had at run time: an axis of a value, then multiplied, divided and added to."""

    value: str
    axis: int
    times: int = 1
    over: int = 1
    plus: int = 0


@dataclass(frozen=True)
class State:
    """A value that a Loop or Scan carries round, by the label of that node and its place among those."""

    node: str
    index: int


@dataclass
class Body:
    """A graph's or a function's body. What is not found here is looked for in the body around it."""

    scope: Scope
    worlds: Worlds
    parent: Body | None = None
    values: dict[str, Value] = field(default_factory=dict)
    sources: dict[Sizes, tuple[str, int]] = field(default_factory=dict)
    """The first value and axis of each length that moves."""
    makers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    readers: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)
    carried: Mapping[str, State] = field(default_factory=dict)
    """Inputs of this body that are states."""
    _read: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)

    def around(self) -> Iterator[Body]:
        """Give this body and those around it, from the inside."""
        body: Body | None = self
        while body is not None:
            yield body
            body = body.parent

    def value(self, name: str) -> Value:
        """Return what is known of a value; small constants are read."""
        for body in self.around():
            found = body.values.get(name)
            if found is not None:
                return found
        return Value()

    def state(self, name: str) -> State | None:
        """Return the state that a value is, None if it is none."""
        return next((body.carried[name] for body in self.around() if name in body.carried), None)

    def learn(self, name: str, value: Value) -> None:
        """Take note of a value."""
        self.values[name] = value
        for axis, dim in enumerate(value.dims or ()):
            if dim is not None and dim.varies:
                self.sources.setdefault(dim.sizes, (name, axis))

    def moving(self, frozen: int) -> list[Dim]:
        """Return the lengths that were `frozen` and move, first come first."""
        found = [
            sizes for body in reversed(list(self.around())) for sizes in body.sources if sizes[0] == frozen
        ]
        return [Dim(sizes) for sizes in dict.fromkeys(found)]

    def length(self, dim: Dim, prefer: Sequence[str] = ()) -> list[Length]:
        """Return the lengths whose product is `dim`'s, from the values preferred if they have it.

        Raises UnknownLengthError.
        """
        for name in prefer:
            for axis, other in enumerate(self.value(name).dims or ()):
                if other is not None and other.sizes == dim.sizes:
                    return [Length(name, axis)]
        for body in self.around():
            if dim.sizes in body.sources:
                return [Length(*body.sources[dim.sizes])]
        if dim.parts:
            moving = [part for part in dim.leaves() if part.varies]
            rest = dim.frozen
            found: list[Length] = []
            for part in moving:
                found.extend(self.length(part, prefer))
                rest //= part.frozen
            found[0] = Length(
                found[0].value, found[0].axis, found[0].times * rest, found[0].over, found[0].plus
            )
            return found
        for body in self.around():
            for sizes, (name, axis) in body.sources.items():
                made = _linear(sizes, dim.sizes)
                if made is not None:
                    return [Length(name, axis, *made)]
        raise UnknownLengthError

    def shape(self, rw: Rewriter, entries: Sequence[int | Dim], prefer: Sequence[str] = ()) -> str:
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
                parts.append(self._gathered(rw, read[0].value, tuple(length.axis for length in read)))
                read.clear()

        for entry in entries:
            if isinstance(entry, int):
                if read:
                    close()
                numbers.append(entry)
                continue
            lengths = self.length(entry, prefer)
            plain = len(lengths) == 1 and lengths[0] == Length(lengths[0].value, lengths[0].axis)
            if numbers or (read and (not plain or read[0].value != lengths[0].value)):
                close()
            if plain:
                read.append(lengths[0])
            else:
                parts.append(self._computed(rw, lengths))
        close()
        return parts[0] if len(parts) == 1 else rw.before("Concat", parts, hint="shape", axis=0)

    def scalar(self, rw: Rewriter, dim: Dim, dtype: Array, prefer: Sequence[str] = ()) -> str:
        """Write what gives one length as a tensor without axes, of the type of `dtype`."""
        vector = self.shape(rw, [dim], prefer)
        scalar = rw.before("Gather", [vector, rw.constant(np.array(0, np.int64), "first")], hint="length")
        if dtype.dtype == np.int64:
            return scalar
        kind = int(onnx.helper.np_dtype_to_tensor_dtype(dtype.dtype))
        return rw.before("Cast", [scalar], hint="length", to=kind)

    def _gathered(self, rw: Rewriter, value: str, axes: tuple[int, ...]) -> str:
        for body in self.around():
            if (value, axes) in body._read:
                return body._read[value, axes]
        shape = rw.before("Shape", [value])
        name = rw.before("Gather", [shape, rw.constant(np.array(axes, np.int64), "axes")], hint="sizes")
        self._read[value, axes] = name
        return name

    def _computed(self, rw: Rewriter, lengths: list[Length]) -> str:
        found = ""
        for length in lengths:
            name = self._gathered(rw, length.value, (length.axis,))
            for operator, number, idle in (
                ("Mul", length.times, 1),
                ("Div", length.over, 1),
                ("Add", length.plus, 0),
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
