"""The values upstream of an output that does not vary: for a Softmax that is uniform on every input, the logits.

The graph is traversed upstream from the output to the nearest values that do vary with the inputs. Each model is
traversed on its own, by its graph and not by names: a simplifier may reuse an old name for another value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import onnx

from onnx_migrate.model.graphs import fed_inputs, names_read, producers
from onnx_migrate.verify.compare.informative import is_informative
from onnx_migrate.verify.evaluators import UNOPTIMIZED, Evaluator, Runnable, open_model
from onnx_migrate.verify.run_count import run_each

__all__ = ["InnerValues", "Nearest", "expose_inner_values", "nearest_among", "values_upstream"]

_DEPTHS = (4, 16, 64)
"""How many nodes upstream of an output are exposed, in turn, until varying values are found on every path."""

_SHAPE_OPERATORS = frozenset({"Shape", "Size"})
"""Operators whose outputs depend on shapes only; their outputs are compared separately."""


@dataclass(frozen=True)
class Nearest:
    """The inner values upstream of outputs that the search chose.

    `names` holds, for each output, the nearest varying values upstream that are not graph outputs, in the order of the traversal.
    It lacks outputs that have no such value. `incomplete` are outputs with an upstream path that has no varying value before an
    input, or that is longer than the largest depth. `depth` is the number of nodes between output and farthest value. `feeds` is
    the number of feeds that decided which values vary, counted from the first one.
    """

    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()
    depth: int = 1
    feeds: int = 1

    @property
    def inner(self) -> list[str]:
        """Return the values of all outputs in one list."""
        return [name for names in self.names.values() for name in names]


@dataclass(frozen=True)
class InnerValues:
    """A model with inner values as outputs, the values it computed on each feed, and the inner values that the search chose."""

    evaluator: Evaluator
    runs: list[dict[str, Any]]
    found: Nearest


def values_upstream(model: onnx.ModelProto) -> list[str]:
    """Return the values a few nodes upstream of the outputs, which are recorded in case that these do not vary.

    The nearest come first.
    """
    upstream = _Upstream(model)
    layers = [upstream.layers(output.name, _DEPTHS[0]) for output in model.graph.output]
    nearest_first = (name for row in zip_longest(*layers, fillvalue=[]) for layer in row for name in layer)
    return list(dict.fromkeys(nearest_first))


def nearest_among(
    model: onnx.ModelProto, outputs: Sequence[str], values: Mapping[str, Any]
) -> Nearest | None:
    """Find the nearest varying values upstream of `outputs` among those that a run recorded; None if one is missing."""
    return _found(_Upstream(model), outputs, [values])


def expose_inner_values(
    runnable: Runnable,
    outputs: Sequence[str],
    feeds: Sequence[Mapping[str, Any]],
    also: Sequence[str] = (),
    *,
    configuration: str = UNOPTIMIZED,
    like: Nearest | None = None,
) -> InnerValues:
    """Run the model with the values upstream of `outputs` and those named in `also` as further outputs.

    The search starts with the depth and the number of feeds of `like`, another model's search. Only then does it find the same
    values in both models. It goes further upstream if it must. Raises EvaluationError.
    """
    depth, looked_at = (like.depth, like.feeds) if like else (_DEPTHS[0], len(feeds))
    upstream = _Upstream(runnable.model)
    # A deeper search costs more memory, so it comes only if needed.
    for reach in (depth, *(further for further in _DEPTHS if further > depth)):
        names = [name for output in outputs for layer in upstream.layers(output, reach) for name in layer]
        evaluator = open_model(runnable, configuration, [*names, *also])
        runs = list(run_each(evaluator, feeds))
        nearest = _found(upstream, outputs, runs[:looked_at], last=reach >= _DEPTHS[-1])
        if nearest is not None:
            break
    assert nearest is not None
    return InnerValues(evaluator, runs, nearest)


def _found(
    upstream: _Upstream, outputs: Sequence[str], runs: Sequence[Mapping[str, Any]], *, last: bool = False
) -> Nearest | None:
    """Return the values chosen among those that runs recorded; None if others are needed, unless this search is the `last`."""
    varies = {name: is_informative([run[name] for run in runs]) for name in (runs[0] if runs else ())}
    nearest_by_output = {output: upstream.nearest(output, varies) for output in outputs}
    if not last and any(None in names for names in nearest_by_output.values()):
        return None
    nearest = {
        output: tuple(n for n in names if n and n not in upstream.outputs)
        for output, names in nearest_by_output.items()
    }
    nearest = {output: names for output, names in nearest.items() if names}
    incomplete = frozenset(
        output for output, names in nearest_by_output.items() if None in names or "" in names
    )
    depth = max((upstream.depth(output, names) for output, names in nearest.items()), default=1)
    return Nearest(nearest, incomplete, depth, len(runs))


class _Upstream:
    """Traversal from values of the main graph to those they are computed from."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.outputs = {output.name for output in model.graph.output}
        self._producers = producers(model.graph)
        self._inputs = {value.name for value in fed_inputs(model.graph)}
        self._dependent = set(self._inputs)
        for node in model.graph.node:
            if node.op_type not in _SHAPE_OPERATORS and not self._dependent.isdisjoint(names_read(node)):
                self._dependent.update(name for name in node.output if name)

    def layers(self, output: str, depth: int) -> Iterator[list[str]]:
        """Yield the values 1, 2, … up to `depth` nodes upstream of an output that depend on the elements of an input."""
        seen, layer = {output}, [output]
        for _ in range(depth):
            read = dict.fromkeys(name for below in layer for name in self._read(below))
            layer = [name for name in read if name not in seen and name not in self._inputs]
            seen.update(layer)
            yield layer

    def depth(self, output: str, names: Sequence[str]) -> int:
        """Return how many nodes upstream of an output the farthest of these values is."""
        missing = set(names)
        for count, layer in enumerate(self.layers(output, _DEPTHS[-1]), 1):
            missing.difference_update(layer)
            if not missing:
                return count
        return _DEPTHS[-1]

    def nearest(self, output: str, varies: Mapping[str, bool]) -> dict[str | None, None]:
        """Return the first varying value on every path upstream, as keys in the order of the traversal.

        `varies` tells which exposed values vary. The key is "" for a path that reaches an input before a varying value. It is
        None for a path that reaches a value which was not exposed.
        """
        varying_values: dict[str | None, None] = {}
        seen: set[str] = set()
        # An output that depends on no input has no varying value.
        stack = [output] if output in self._dependent else []
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            # The path ends without a varying value.
            if name in self._inputs:
                varying_values[""] = None
            elif name not in varies:
                varying_values[None] = None
            elif varies[name]:
                varying_values[name] = None
            else:
                stack.extend(reversed(self._read(name)))
        return varying_values

    def _read(self, name: str) -> list[str]:
        """Return the values that a value is computed from and that depend on the elements of an input."""
        node = self._producers.get(name)
        if node is None or node.op_type in _SHAPE_OPERATORS:
            return []
        ordered = dict.fromkeys([*node.input, *sorted(names_read(node))])
        return [read for read in ordered if read in self._dependent]
