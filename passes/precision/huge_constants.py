"""The values that may hold a number near a type's largest one, for example a mask, and the constants that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.model.tensors import numbers
from onnx_migrate.standard.retyping import FLOATS

from .carried import ALL_INPUTS, ARITHMETIC, CARRIED, bounds_nothing, flows
from .numbers import largest
from .stored import StoredNumbers

__all__ = ["HugeNumbers"]

Array = np.ndarray[Any, Any]

_HEADROOM = 4.0
"""A number is huge above the type's maximum divided by this: the sum of three masks and a score must not overflow."""

_MOST_NUMBERS = 16
"""Distinct huge numbers that are listed of a value. A table of more is no mask, and stays in its type."""

_MOST_SUMS = 6
"""The search follows the numbers of a constant through at most this many arithmetic nodes."""

_SMALL = 1 << 12
"""Values that follow only from constants are computed up to this many elements."""

_READ = 1 << 24
"""Constants of integers and float64 with more elements than this are not searched for huge numbers."""

_COMPUTED: Mapping[str, Callable[..., Any]] = {
    "Add": np.add, "Div": np.divide, "Mul": np.multiply, "Neg": np.negative, "Pow": np.power, "Sub": np.subtract,
}  # fmt: skip

_FLOATS = (*FLOATS, TensorProto.DOUBLE)

_NEGATIVE_VANISHES = ("Relu", "Softplus")


@dataclass(frozen=True)
class Huge:
    """The huge numbers that a value may hold, and how many arithmetic nodes they passed. `fixed`: a caller may override them."""

    numbers: frozenset[float]
    sums: int = 0
    fixed: bool = True

    def joined(self, other: Huge | None) -> Huge:
        """Return the huge numbers of both."""
        if other is None:
            return self
        # One number above the limit is enough to show that there are too many.
        joined = sorted(self.numbers | other.numbers)[: _MOST_NUMBERS + 1]
        return Huge(frozenset(joined), max(self.sums, other.sums), self.fixed and other.fixed)


@dataclass
class HugeNumbers:
    """The values of a model that may hold huge numbers of a type."""

    target: int
    stored: StoredNumbers
    of: dict[Value, Huge] = field(default_factory=dict)
    _looked_at: set[Value] = field(default_factory=set)
    _constants: dict[Value, Array | None] = field(default_factory=dict)

    @property
    def threshold(self) -> float:
        """Return the smallest magnitude that counts as huge."""
        return largest(self.target) / _HEADROOM

    def find(self, frames: Iterable[Frame]) -> None:
        """Follow the huge constants of all bodies, until no further value gets some."""
        frames = list(frames)
        for frame in frames:
            self._overridable(frame)
        steps = [step for frame in frames for step in frame.steps]
        changed = True
        while changed:
            changed = False
            for step in steps:
                for value, huge in self._made(step):
                    joined = huge.joined(self.of.get(value))
                    if joined != self.of.get(value):
                        self.of[value], changed = joined, True

    def overflows(self, value: Value) -> bool:
        """Return whether a huge number of a value is beyond the largest one of the type."""
        huge = self.of.get(value)
        return huge is not None and any(abs(number) > largest(self.target) for number in huge.numbers)

    def _overridable(self, frame: Frame) -> None:
        for tensor in frame.body.initializer:
            value = frame.values.get(tensor.name)
            if value is not None and value.tensor is None and (huge_values := self._huge_in(tensor)):
                self.of[value] = Huge(huge_values, fixed=False)

    def read(self, step: Step) -> Iterator[tuple[Value, Huge]]:
        """Yield the values with huge numbers that a node carries on, or computes with."""
        indices = ALL_INPUTS if step.is_a(*ARITHMETIC) else CARRIED.get(step.node.op_type, ())
        for index, value in enumerate(step.inputs if not step.domain else ()):
            if value is None or index not in indices:
                continue
            if value not in self.of and value.tensor is not None and value not in self._looked_at:
                # The loop of `find` asks in every round, and reading a large constant takes long.
                self._looked_at.add(value)
                if huge_values := self._huge_in(value.tensor):
                    self.of[value] = Huge(huge_values)
            huge = self.of.get(value)
            if huge is not None and not (step.is_a("Div") and (index or value.tensor is not None)):
                yield value, huge

    def _made(self, step: Step) -> Iterator[tuple[Value, Huge]]:
        for source, target in flows(step):
            if source in self.of:
                yield target, self.of[source]
        if step.domain or step.is_a("Constant") or not step.made:
            return
        computed = self._computed(step)
        if computed is not None:
            huge_values = self._huge_among(computed)
            huge_numbers = frozenset(huge_values)
            if huge_numbers:
                yield step.made[0], Huge(huge_numbers)
            return
        if step.is_a("ConstantOfShape"):
            huge_numbers = frozenset().union(
                *(self._huge_in(attribute.t) for attribute in step.node.attribute)
            )
            if huge_numbers:
                yield step.made[0], Huge(huge_numbers)
            return
        huge = self._carried(step)
        if huge is not None and huge.numbers and huge.sums <= _MOST_SUMS:
            for value in step.made:
                yield value, huge

    def _carried(self, step: Step) -> Huge | None:
        read = [
            (value, huge) for value, huge in self.read(step) if not bounds_nothing(step, value, huge.numbers)
        ]
        joined: Huge | None = None
        for _, huge in read:
            joined = huge.joined(joined)
        if step.is_a("Pad") and step.version < 11:
            stated = (attribute.f for attribute in step.node.attribute if attribute.name == "value")
            huge_values = self._huge_among(np.array([*stated], np.float64))
            joined = Huge(huge_values).joined(joined) if huge_values else joined
        if joined is None:
            return None
        if step.is_a("Mul") and not self._is_masking(step, [value for value, _ in read]):
            return None
        huge_values = joined.numbers
        if step.is_a(*_NEGATIVE_VANISHES):
            huge_values = frozenset(number for number in huge_values if number > 0)
        if step.is_a("Neg") or step.is_a("Sub"):
            negated = frozenset(-number for number in huge_values)
            huge_values = negated | huge_values if step.is_a("Sub") else negated
        if step.is_a("Abs"):
            huge_values = frozenset(map(abs, huge_values))
        if step.is_a("Mul", "Div"):
            huge_values = self._scaled(step, huge_values)
        return Huge(huge_values, joined.sums + step.is_a(*ARITHMETIC), joined.fixed)

    def _is_masking(self, step: Step, huge: list[Value]) -> bool:
        """Return whether a product is of a mask: of a huge computed value, or of a constant and integers or truth values.

        The product of a constant and other numbers is a scale. It may be small, and how large it is runs say.
        """
        others = [value for value in step.read if value not in huge]
        return any(value.tensor is None for value in huge) or any(map(self._is_whole, others))

    def _is_whole(self, value: Value, depth: int = 8) -> bool:
        """Return whether a value is computed from integers or truth values, or is a constant less an input."""
        maker = value.maker
        if value.tensor is not None or not depth:
            return False
        if value.dtype is not None and value.dtype not in _FLOATS:
            return True
        if maker is None:
            return False
        computed = [other for other in maker.read if other.tensor is None]
        inverted = maker.is_a("Sub") and len(computed) == 1 and maker.inputs[1] is computed[0]
        if inverted and computed[0].maker is None:
            return True
        moves = maker.is_a(*CARRIED, "Add", "Mul", "Sub")
        return moves and bool(computed) and all(self._is_whole(other, depth - 1) for other in computed)

    def _scaled(self, step: Step, found: frozenset[float]) -> frozenset[float]:
        """Return huge numbers multiplied or divided by a constant, without those that are no longer huge."""
        others = [self._known(value) for value in step.read if value not in self.of]
        factors = others[0] if others and others[0] is not None else None
        if factors is None or not factors.size or factors.size > _MOST_NUMBERS:
            return found
        with np.errstate(all="ignore"):
            pairs = product(found, factors.reshape(-1))
            scaled = [np.divide(a, b) if step.is_a("Div") else a * b for a, b in pairs]
        return self._huge_among(np.array(scaled, np.float64))

    def _known(self, value: Value) -> Array | None:
        """Return the numbers of a small value that follows only from constants."""
        if value.tensor is not None and value not in self._constants:
            small = (
                int(np.prod(value.tensor.dims)) <= _SMALL
                and value.tensor.data_location != TensorProto.EXTERNAL
            )
            numeric = value.tensor.data_type not in (TensorProto.STRING, TensorProto.UNDEFINED)
            self._constants[value] = (
                numbers(self.stored.weights.array(value.tensor)).astype(np.float64)
                if small and numeric
                else None
            )
        return self._constants.get(value)

    def _computed(self, step: Step) -> Array | None:
        """Return what a node computes from small constants; None for any other node."""
        arrays = [self._known(value) for value in step.read]
        if not arrays or any(array is None or array.size > _SMALL for array in arrays):
            return None
        with np.errstate(all="ignore"):
            if step.is_a("Cast", "CastLike", "Identity"):
                result = arrays[0]
            elif step.node.op_type in _COMPUTED and len(arrays) == len(step.inputs):
                try:
                    result = _COMPUTED[step.node.op_type](*arrays)
                except ValueError:
                    return None
            else:
                return None
        self._constants[step.made[0]] = result
        return result

    def _huge_in(self, tensor: TensorProto) -> frozenset[float]:
        size = int(np.prod(tensor.dims))
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.FLOAT16):
            # A number that is in the type already cannot overflow in it.
            if tensor.data_type == self.target or self.stored.extent(tensor).largest < self.threshold:
                return frozenset()
        elif size > _READ or tensor.data_type in (
            TensorProto.STRING,
            TensorProto.BOOL,
            TensorProto.UNDEFINED,
        ):
            return frozenset()
        array = numbers(self.stored.weights.array(tensor))
        return self._huge_among(array) if array.dtype.kind in "iuf" else frozenset()

    def _huge_among(self, array: Array) -> frozenset[float]:
        array = array.reshape(-1)
        huge = array[np.isfinite(array) & (np.abs(array.astype(np.float64)) >= self.threshold)]
        distinct = np.unique(huge).astype(np.float64)
        if distinct.size > _MOST_NUMBERS and np.abs(distinct).max() <= largest(self.target):
            return frozenset()  # a table of numbers that the type holds
        return frozenset(distinct[: _MOST_NUMBERS + 1].tolist())
