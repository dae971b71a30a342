"""The inputs of a model for corner feeds: random values, the numbers that nodes treat specially, and size limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.verify.inputs.corners import integers
from onnx_migrate.verify.inputs.corners.beside import Beside, constants_beside
from onnx_migrate.verify.inputs.corners.flow import Flow, Meeting
from onnx_migrate.verify.inputs.corners.interest import Interest, interest
from onnx_migrate.verify.inputs.corners.operators import (
    computes_integers_alone,
    multiplies_inputs,
    runs_long_on_large_numbers,
    sizes_follow_from_values,
)
from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue
from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.user_inputs import Feed

__all__ = ["DRAW", "CornerFeed", "CornerInputs"]

DRAW = 1000
"""Added to the seed, so that the random part of corner feeds is not that of others."""

_MOST_NODES = 400
"""Nodes of a result that is read for its constants: reading takes about as long as inferring its shapes."""


@dataclass(frozen=True)
class CornerFeed:
    """A feed, and others that replace it if the original does not run on it, or returns no numbers.

    `finite` says that the feed is compared only if every element of the original's outputs is finite.
    """

    feed: Feed
    instead: tuple[Feed, ...] = ()
    finite: bool = False


@dataclass(frozen=True, eq=False)
class CornerInputs:
    """The inputs of a model at the sizes at which it runs; `magnitudes` asks for large and small numbers too."""

    source: RandomInputs
    magnitudes: bool = True

    @cached_property
    def flow(self) -> Flow:
        """Return the readers of each value of the model."""
        return Flow(self.source.model, dict(self.source.shapes))

    @cached_property
    def other_flow(self) -> Flow | None:
        """Return the readers of each value of the result; None if it has many nodes, or has those of the original."""
        other = self.source.other
        if (
            other is None
            or _has_nodes_of(self.source.model, other)
            or len(list(islice(all_nodes(other), _MOST_NODES + 1))) > _MOST_NODES
        ):
            return None
        return Flow(other, dict(self.source.shapes))

    def _base(self, distribution: str, draw: int) -> dict[str, Any] | None:
        return self.source.feed(distribution, draw=DRAW + draw)

    def _rng(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self.source.seed, DRAW, number])

    def _values(self, base: Mapping[str, Any]) -> dict[str, InputValue]:
        """Return the inputs that are arrays of types that numpy has."""
        ranges, values_by_input = self.source.ranges, {}
        for name, array in base.items():
            # NumPy cannot compute with other types.
            if isinstance(array, np.ndarray) and array.dtype.isbuiltin == 1 and array.dtype.kind in "biufO":
                meetings, wanted = self._known(name, array.dtype)
                values_by_input[name] = InputValue(name, array, ranges.get(name), wanted, meetings)
        return values_by_input

    def _known(self, name: str, dtype: np.dtype[Any]) -> tuple[tuple[Meeting, ...], Interest]:
        if name not in self._met:
            wanted = interest(self.flow, name, dtype)
            if self.other_flow is not None:
                wanted = wanted.joined(interest(self.other_flow, name, dtype))
            self._met[name] = tuple(self.flow.meetings(name)), wanted
        return self._met[name]

    def _constants(self, value: InputValue) -> list[Beside]:
        """Return the constants of both models that an input meets element by element."""
        theirs = self.other_flow.meetings(value.name) if self.other_flow is not None else ()
        return constants_beside((*value.meetings, *theirs), value.dtype)

    @cached_property
    def _takes_large(self) -> bool:
        """Whether large numbers say something of the model, and do not make it run for long."""
        flow = self.flow
        return self.magnitudes and not (runs_long_on_large_numbers(flow) or multiplies_inputs(flow))

    @cached_property
    def _largest(self) -> int | None:
        """The largest integer that does not make the original run for long; None for any."""
        if computes_integers_alone(self.flow):
            return None
        return integers.LARGEST_SIZE if sizes_follow_from_values(self.flow) else integers.LARGEST_COUNT

    @cached_property
    def _reduces(self) -> bool:
        """Whether the result reduces in a Scatter in another way than the original does."""
        if self.source.other is None:
            return False
        theirs = {integers.reduction(node) for node in all_nodes(self.source.other)}
        return bool(theirs - {integers.reduction(node) for node in self.flow.nodes} - {b"", b"none"})

    @cached_property
    def _met(self) -> dict[str, tuple[tuple[Meeting, ...], Interest]]:
        return {}

    def _feed(
        self, name: str, base: Mapping[str, Any], made: Mapping[str, CornerValue | None]
    ) -> Feed | None:
        """Return a feed of these corners and random values for other inputs; None if no input has a corner."""
        corners = {key: corner for key, corner in made.items() if corner is not None}
        if not corners:
            return None
        values = {**base, **{key: corner.values for key, corner in corners.items()}}
        fixed = {k: c.fixed for k, c in corners.items() if c.fixed is not None}
        return Feed(name, values, fixed=fixed, corner=True)


def _has_nodes_of(model: onnx.ModelProto, other: onnx.ModelProto) -> bool:
    """Whether two models have equal nodes, functions and initializers: versions may differ."""
    graphs = model.graph, other.graph
    same = graphs[0].node == graphs[1].node and model.functions == other.functions
    return same and graphs[0].initializer == graphs[1].initializer
