"""The values behind a flat output: for a Softmax that is uniform whatever goes in, the logits.

From a flat output the walk goes upstream, to the nearest values that do vary with the input. It is made in
each model on its own, over the graph and not by name: a simplifier may let an old name stand for another
value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from onnx_migrate.model.graphs import fed_inputs, names_read, producers
from onnx_migrate.verify.compare.informative import told
from onnx_migrate.verify.evaluators import Evaluator, Runnable, open_model
from onnx_migrate.verify.model_traits import exposing

__all__ = ["Inner", "look_inside"]

DEPTHS = (1, 4, 16, 64)
"""How many nodes above a flat output are looked at, in turn, until what varies is found."""

_SHAPES = frozenset({"Shape", "Size"})
"""What these give follows from the shapes, which are compared as they are."""


@dataclass(frozen=True)
class Inner:
    """The model with inner values exposed, what it gave on each feed, and what was found above each output.

    `nearest` holds the nearest varying values, in the order of the walk, that are not outputs themselves; an
    output without any is left out. In `lost` are those of which a way up met the input, or no end at all.
    """

    evaluator: Evaluator
    runs: list[dict[str, Any]]
    nearest: Mapping[str, tuple[str, ...]]
    lost: frozenset[str]


def look_inside(
    runnable: Runnable, outputs: Sequence[str], feeds: Sequence[Mapping[str, Any]], also: Sequence[str] = ()
) -> Inner:
    """Run the model with what lies above `outputs` exposed, and `also`. Raises EvaluationError."""
    model = runnable.proto()
    walk = _Walk(model)
    for depth in DEPTHS:
        names = [name for output in outputs for name in walk.above(output, depth)]
        evaluator = open_model(exposing(runnable, [*names, *also]), "off")
        runs = [evaluator.run(feed) for feed in feeds]
        found = {output: walk.nearest(output, told(runs)) for output in outputs}
        if not any(None in names for names in found.values()) or depth == DEPTHS[-1]:
            break
    present = {output.name for output in model.graph.output}
    nearest = {output: tuple(n for n in names if n and n not in present) for output, names in found.items()}
    lost = {output for output, names in found.items() if None in names or "" in names}
    return Inner(evaluator, runs, {o: names for o, names in nearest.items() if names}, frozenset(lost))


class _Walk:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._makers = producers(model.graph)
        self._inputs = {value.name for value in fed_inputs(model.graph)}
        self._fed = set(self._inputs)
        for node in model.graph.node:
            if node.op_type not in _SHAPES and not self._fed.isdisjoint(names_read(node)):
                self._fed.update(name for name in node.output if name)

    def above(self, output: str, depth: int) -> Iterator[str]:
        """Yield the values up to `depth` nodes above an output that depend on what an input holds."""
        seen, layer = {output}, [output]
        for _ in range(depth):
            read = dict.fromkeys(name for below in layer for name in self._read(below))
            layer = [name for name in read if name not in seen and name not in self._inputs]
            seen.update(layer)
            yield from layer

    def nearest(self, output: str, telling: Mapping[str, bool]) -> dict[str | None, None]:
        """Return the first varying value on every way up; None for a way that was not seen to its end.

        A way that ends at an input without a varying value in between gives "".
        """
        found: dict[str | None, None] = {}
        seen: set[str] = set()
        stack = [output] if output in self._fed else []
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in self._inputs:
                found[""] = None
            elif name not in telling:
                found[None] = None
            elif telling[name]:
                found[name] = None
            else:
                stack.extend(reversed(self._read(name)))
        return found

    def _read(self, name: str) -> list[str]:
        """Return the computed values that a value is made of and that depend on what an input holds."""
        node = self._makers.get(name)
        if node is None or node.op_type in _SHAPES:
            return []
        ordered = dict.fromkeys([*node.input, *sorted(names_read(node))])
        return [read for read in ordered if read in self._fed]
