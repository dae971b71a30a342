"""Finds the nodes that must keep their type, so that the numbers stay with the original's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from onnx import TensorProto

from onnx_migrate import process
from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.model.model import Model
from onnx_migrate.verify import Runnable, Settings, ready_worker
from onnx_migrate.verify.precision.closeness import CLOSENESS, RANGES, Closeness
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import interruption

from .numbers import largest

__all__ = ["Converting", "Found", "find_islands"]

_ROUNDS = 16
"""How many times islands may grow."""

_MARGIN = 8.0
"""How far below the largest number of the type a value stays, as other inputs make it larger; up to as far above, islands begin
with it. What is larger still is a mask that becomes infinite, unless the numbers say otherwise."""

Converting = Callable[[frozenset[str]], Model]
"""Converts the original with these nodes kept, named by their first outputs."""


@dataclass(frozen=True)
class Found:
    """The nodes that keep their type, by their first outputs, with the sizes of these; and how close the result then is."""

    islands: frozenset[str]
    closeness: Closeness
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def find_islands(original: Model, graph: Frame, kind: int, convert: Converting, settings: Settings) -> Found:
    """Convert, compare, and keep more nodes around those at which the result leaves the original, until it does not.

    `graph` is the original's main graph. What has been found is checked on inputs that the search has not seen.
    Returns the closest that was found, which may not be close enough.
    """
    with ready_worker(settings.limits) if settings.isolated else nullcontext() as worker:
        return _Search(original, graph, kind, convert, replace(settings, worker=worker)).run()


class _Search:
    def __init__(
        self, original: Model, graph: Frame, kind: int, convert: Converting, settings: Settings
    ) -> None:
        self._original, self._graph, self._kind = original, graph, kind
        self._convert, self._settings = convert, settings
        self._makers = {
            value.name: step for step in graph.steps for value in step.outputs if value is not None
        }

    def run(self) -> Found:
        """Search. Where nothing can be compared, the closeness says why."""
        sizes: dict[str, tuple[float, float]] = {}
        reach = 0
        best: Found | None = None
        with Prover(self._settings) as prover:
            original = prover.runnable(self._original)
            islands = self._large(original, sizes) if self._kind != TensorProto.FLOAT else frozenset()
            for _ in range(_ROUNDS):
                found = self._compared(original, islands)
                sizes.update(found.sizes)
                if best is None or found.agrees or found.excess < best.closeness.excess:
                    best = Found(islands, found, dict(sizes))
                if found.agrees or found.reason or self._kind == TensorProto.FLOAT:
                    break
                new = frozenset(found.causes) - islands
                reach = 0 if new else max(1, 2 * reach)
                grown = islands | new | self._around(islands | frozenset(found.causes), reach)
                if grown == islands:
                    break
                islands = grown
        assert best is not None
        return best

    def _large(self, original: Runnable, sizes: dict[str, tuple[float, float]]) -> frozenset[str]:
        """Return the nodes that make or read numbers near the largest one of the type; `sizes` gets how large they are."""
        limit = largest(self._kind)
        if limit > 1e30:
            return frozenset()
        ending = self._settings.call(RANGES, original, limit / _MARGIN, self._settings.for_child)
        values = ending.value if isinstance(ending, process.Returned) else {}
        found = {name: size for name, size in values.items() if size[0] < limit * _MARGIN}
        sizes.update(found)
        near = [self._makers[name] for name in found]
        steps = {other for step in near for other in (step, *_readers(step))}
        return frozenset(value.name for step in steps for value in step.outputs[:1] if value is not None)

    def _compared(self, original: Runnable, islands: frozenset[str]) -> Closeness:
        """Compare on the inputs of the search, and where the result is close on these, on others."""
        found = Closeness()
        with Prover(self._settings) as prover:
            result = prover.runnable(self._convert(islands))
            for unseen in (False, True):
                ending = self._settings.call(
                    CLOSENESS, original, result, self._kind, self._settings.for_child, unseen
                )
                if not isinstance(ending, process.Returned):
                    return Closeness(reason=interruption(ending))
                found = ending.value
                if not found.agrees or found.reason:
                    break
        return found

    def _around(self, names: Iterable[str], reach: int) -> frozenset[str]:
        """Return the nodes up to `reach` nodes away from these, by their first outputs."""
        found = {self._makers[name] for name in names if name in self._makers}
        for _ in range(reach):
            found |= {other for step in found for other in _neighbours(step)}
        return frozenset(value.name for step in found for value in step.outputs[:1] if value is not None)


def _neighbours(step: Step) -> Iterable[Step]:
    for value in step.inputs:
        if (
            value is not None
            and value.maker is not None
            and value.maker.frame is step.frame
            and value.tensor is None
        ):
            yield value.maker
    yield from _readers(step)


def _readers(step: Step) -> Iterable[Step]:
    for value in step.outputs:
        if value is not None:
            yield from (reader for reader, _ in value.readers if reader.frame is step.frame)
