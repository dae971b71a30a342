"""The values upstream of an output that does not vary: for a Softmax that is uniform on every input, the logits.

The graph is traversed upstream from the output to the nearest values that do vary with the inputs. Each model is
traversed on its own, by its graph and not by names: a simplifier may reuse an old name for another value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from onnx_migrate.model.graphs import fed_inputs, names_read, producers
from onnx_migrate.verify.compare.informative import is_informative
from onnx_migrate.verify.evaluators import UNOPTIMIZED, Evaluator, Runnable, open_model, with_extra_outputs
from onnx_migrate.verify.run_count import run_each

__all__ = ["InnerValues", "expose_inner_values"]

_DEPTHS = (4, 16, 64)
"""How many nodes upstream of an output are exposed, in turn, until varying values are found on every path."""

_SHAPE_OPERATORS = frozenset({"Shape", "Size"})
"""Operators whose outputs depend on shapes only, which are compared by themselves."""


@dataclass(frozen=True)
class InnerValues:
    """A model with inner values as outputs, what it computed on each feed, and what was found upstream.

    `nearest` holds by output the nearest varying values upstream that are not graph outputs, in the order of the
    traversal; an output without any is left out. `incomplete` are outputs with a path upstream on which no value varies
    before an input, or that is longer than the largest depth.
    """

    evaluator: Evaluator
    runs: list[dict[str, Any]]
    nearest: Mapping[str, tuple[str, ...]]
    incomplete: frozenset[str]


def expose_inner_values(
    runnable: Runnable, outputs: Sequence[str], feeds: Sequence[Mapping[str, Any]], also: Sequence[str] = ()
) -> InnerValues:
    """Run the model with the values upstream of `outputs` and those named in `also` as further outputs.

    ONNX Runtime runs it without optimisation. Raises EvaluationError.
    """
    model = runnable.proto()
    upstream = _Upstream(model)
    for depth in _DEPTHS:
        names = [name for output in outputs for name in upstream.within(output, depth)]
        evaluator = open_model(with_extra_outputs(runnable, [*names, *also]), UNOPTIMIZED)
        runs = list(run_each(evaluator, feeds))
        varies = {name: is_informative([run[name] for run in runs]) for name in (runs[0] if runs else ())}
        found = {output: upstream.nearest(output, varies) for output in outputs}
        if not any(None in names for names in found.values()) or depth == _DEPTHS[-1]:
            break
    present = {output.name for output in model.graph.output}
    nearest = {output: tuple(n for n in names if n and n not in present) for output, names in found.items()}
    incomplete = {output for output, names in found.items() if None in names or "" in names}
    return InnerValues(
        evaluator, runs, {output: names for output, names in nearest.items() if names}, frozenset(incomplete)
    )


class _Upstream:
    """Traversal from values of the main graph to those they are computed from."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._producers = producers(model.graph)
        self._inputs = {value.name for value in fed_inputs(model.graph)}
        self._dependent = set(self._inputs)
        for node in model.graph.node:
            if node.op_type not in _SHAPE_OPERATORS and not self._dependent.isdisjoint(names_read(node)):
                self._dependent.update(name for name in node.output if name)

    def within(self, output: str, depth: int) -> Iterator[str]:
        """Yield the values up to `depth` nodes upstream of an output that depend on the elements of an input."""
        seen, layer = {output}, [output]
        for _ in range(depth):
            read = dict.fromkeys(name for below in layer for name in self._read(below))
            layer = [name for name in read if name not in seen and name not in self._inputs]
            seen.update(layer)
            yield from layer

    def nearest(self, output: str, varies: Mapping[str, bool]) -> dict[str | None, None]:
        """Return the first varying value on every path upstream, as keys in the order of the traversal.

        `varies` says so of each exposed value. A path that reaches an input before it reaches a varying value is "", one
        that reaches a value which was not exposed None.
        """
        found: dict[str | None, None] = {}
        seen: set[str] = set()
        stack = [output] if output in self._dependent else []
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._inputs:
                found[""] = None
            elif name not in varies:
                found[None] = None
            elif varies[name]:
                found[name] = None
            else:
                stack.extend(reversed(self._read(name)))
        return found

    def _read(self, name: str) -> list[str]:
        """Return the values that a value is computed from and that depend on the elements of an input."""
        node = self._producers.get(name)
        if node is None or node.op_type in _SHAPE_OPERATORS:
            return []
        ordered = dict.fromkeys([*node.input, *sorted(names_read(node))])
        return [read for read in ordered if read in self._dependent]
