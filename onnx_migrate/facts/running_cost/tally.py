"""The work and the memory of a run, added up over nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Largest", "Tally", "Work", "seconds_of"]

_SECONDS_PER_NODE = 2e-7
"""The least time of one run of a node. ONNX Runtime takes 0.7 µs for a Relu of two elements in the body of a Loop."""

_OPERATIONS_PER_SECOND = 2e11
"""Multiplications per second that no two cores exceed: five times the speed of ONNX Runtime on the cores of a server."""

_BYTES_PER_SECOND = 1e11
"""Bytes per second that the memory of a server does not reach when it writes."""


@dataclass(slots=True)
class Work:
    """The number of node runs, of multiplications, and of bytes that nodes write, over all rounds of loops."""

    runs: int = 0
    operations: int = 0
    written: int = 0

    def add(self, other: Work, times: int = 1) -> None:
        """Add other work `times` times."""
        self.runs += times * other.runs
        self.operations += times * other.operations
        self.written += times * other.written

    def add_node(self, operations: int, written: int) -> None:
        """Add one run of a node."""
        self.runs += 1
        self.operations += operations
        self.written += written

    @property
    def seconds(self) -> float:
        """The least time that this work needs, in seconds."""
        return self.runs * _SECONDS_PER_NODE + seconds_of(self.operations, self.written)


def seconds_of(operations: int, written: int) -> float:
    """Return the least time for this number of multiplications and bytes."""
    return operations / _OPERATIONS_PER_SECOND + written / _BYTES_PER_SECOND


class Largest(NamedTuple):
    """The most bytes of something, and its name, or the beginning of a sentence whose subject uses them."""

    bytes: int = 0
    name: str = ""


@dataclass
class Tally:
    """The cost of a part of a run. `of_constants` is the work that no input of the model changes.

    `value` is the largest value; `node` is the node with the most bytes of inputs and outputs together. `costliest` is
    the node that takes the most time, with its least seconds; `endless` names a loop that no condition ends.
    """

    work: Work = field(default_factory=Work)
    of_constants: Work = field(default_factory=Work)
    value: Largest = field(default_factory=Largest)
    node: Largest = field(default_factory=Largest)
    costliest: tuple[float, str] = (0.0, "")
    endless: str = ""

    def add(self, other: Tally, times: int = 1) -> None:
        """Add the cost of another part that runs `times` times."""
        self.work.add(other.work, times)
        self.of_constants.add(other.of_constants, times)
        self._widen(other)
        seconds, name = other.costliest
        self.costliest = max(self.costliest, (seconds * times, name))

    def add_either(self, one: Tally, other: Tally) -> None:
        """Add the dearer of two branches."""
        self.add(max(one, other, key=lambda branch: branch.work.seconds))
        self._widen(one)
        self._widen(other)

    def _widen(self, other: Tally) -> None:
        self.value = max(self.value, other.value)
        self.node = max(self.node, other.node)
        self.endless = self.endless or other.endless

    def same_as(self, other: Tally) -> bool:
        """Return whether another part has exactly the same cost."""
        return (self.work, self.of_constants, self.value.bytes, self.node.bytes) == (
            other.work,
            other.of_constants,
            other.value.bytes,
            other.node.bytes,
        )
