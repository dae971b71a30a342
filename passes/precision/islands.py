"""Finds the nodes that must keep their type, so that the numbers stay with the original's."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from onnx import TensorProto

from onnx_migrate import process
from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.model.graphs import BodyKey
from onnx_migrate.model.model import Model
from onnx_migrate.standard.schema import RECURRENT
from onnx_migrate.verify import Runnable, Settings, ready_worker
from onnx_migrate.verify.evaluators.strict import is_narrow
from onnx_migrate.verify.precision.closeness import CLOSENESS, MATRIX, RANGES, Closeness
from onnx_migrate.verify.precision.groups import NARROWED
from onnx_migrate.verify.precision.reference import decides
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import interruption, is_crash_of_result

from .crashes import crashing_nodes, runs_optimised
from .numbers import largest
from .plan import moves

__all__ = ["Converting", "Found", "Islands", "find_islands"]

_ROUNDS = 16
"""How many times islands may grow."""

_MARGIN = 8.0
"""How far below the largest number of the type a value stays, as other inputs make it larger; up to as far above, islands begin
with it. What is larger still is a mask that becomes infinite, unless the numbers say otherwise."""

_NEVER = 1e30
"""Numbers of this size are of no use: a type that holds them has no nodes near its limit."""

_MARGINAL = 2.0
"""By how many times a result is off more than allowed where much rounding adds up, and no node makes it alone."""

_PATIENCE = 3
"""How many rounds that bring the result no nearer add nothing but causes; as along a chain of numbers that overflow."""

_SLOW = 2
"""After how many rounds with such results islands no longer grow: the whole model is one then, of which parts are given back."""

_LOOP_TRIES = 12
"""How often it is tried to keep of loops and branches the nodes inside them alone."""

_GROUPS = 32
"""Of how many groups of nodes, about as many in each, it is found out which need not be kept."""

_AGAIN = 3
"""How often that is found out, if the result of the last time was off on other inputs: each time on these, too."""

_DRAWS, _DRAWS_WHERE_DECIDING = 3, 6
"""How many times inputs are drawn, and for a model that decides by its numbers."""

_SURELY = 0.7
"""By which share of what is allowed a result with smaller islands may be off: it is chosen by the inputs that judge it."""

_PRODUCTS = (MATRIX | RECURRENT, MATRIX, RECURRENT)
"""Operators that change where all others keep their type: of those inside of a loop or branch the search sees no values."""

Islands = frozenset[tuple[BodyKey, str]]
"""Nodes by their bodies and first outputs."""

Converting = Callable[[Islands], Model]
"""Converts the original with these nodes kept."""


@dataclass(frozen=True)
class Found:
    """The nodes that keep their type; how close the result then is; and of first outputs in the main graph the sizes."""

    islands: Islands
    closeness: Closeness
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def find_islands(original: Model, graph: Frame, kind: int, convert: Converting, settings: Settings) -> Found:
    """Convert, compare, and keep more nodes around those at which the result leaves the original, until it does not.

    Then nodes are given back that need not be kept. `graph` is the original's main graph. Returns the closest that was found,
    which may not be close enough, or be the original.
    """
    with ready_worker(settings) as worker:
        return _Search(original, graph, kind, convert, replace(settings, worker=worker)).run()


class _Search:
    def __init__(
        self, original: Model, graph: Frame, kind: int, convert: Converting, settings: Settings
    ) -> None:
        self._original, self._graph, self._kind = original, graph, kind
        self._convert, self._settings = convert, settings
        self._draws = _DRAWS_WHERE_DECIDING if decides(graph) else _DRAWS
        self._strictly = False
        """Whether results run with every value rounded alone, as the original ends the process with optimisation."""
        self._crashing: list[Step] | None = None
        """The nodes that end the process in the narrow type, once that is known."""
        self._wholes: set[Islands] = set()
        """Islands that are the whole model."""
        self._makers = {value.name: step for step in graph.steps for value in step.made}

    def run(self) -> Found:
        """Search. Where nothing can be compared, the closeness says why."""
        sizes: dict[str, tuple[float, float]] = {}
        reach = idle = slow = 0
        best: Found | None = None
        near: Found | None = None
        with Prover(self._settings) as prover:
            original = prover.runnable(self._original)
            needed = self._large(original, sizes) if self._kind != TensorProto.FLOAT else frozenset()
            islands = needed
            for _ in range(_ROUNDS):
                # Where the whole model is taken next, nobody asks for causes.
                named_from = _MARGINAL if slow == _SLOW - 1 else 0.0
                found = self._compared(original, islands, named_from=named_from)
                idle += 1
                slow += found.excess < _MARGINAL
                if best is None or found.agrees or found.excess < best.closeness.excess:
                    near, best, idle = best, Found(islands, found, sizes), 0
                if found.agrees or found.reason or self._kind == TensorProto.FLOAT:
                    break
                if slow == _SLOW and found.excess < _MARGINAL:
                    whole = Found(_places(self._graph.steps), Closeness(), sizes)
                    parts = self._smaller(original, whole, needed)
                    if parts != whole and parts.islands not in self._wholes:
                        return parts
                    found = self._compared(original, islands)
                    if best.islands == islands:
                        best = replace(best, closeness=found)
                causes = [self._makers[name] for name in found.causes]
                new = _places(causes) - islands
                needed |= new if found.fails else frozenset()
                reach = 0 if new and idle < _PATIENCE and slow < _SLOW else max(1, 2 * reach)
                grown = islands | new | self._around(islands | _places(causes), reach)
                if grown == islands:
                    break
                islands = grown
            assert best is not None
            if best.closeness.agrees:
                best = self._smaller(original, best, needed)
            if best.closeness.reason or best.islands not in self._wholes or near is None:
                return best
            return self._products(original, near, islands)

    def _products(self, original: Runnable, found: Found, kept: Islands) -> Found:
        """Return the closest of what was found and results of whose kept loops and branches nothing but products changes."""
        steps = [step for step in map(self._makers.__getitem__, (name for _, name in kept)) if step.inner]
        for products in _PRODUCTS if steps else ():
            islands = kept - _places(steps) | _places(_inside(*steps, but=products))
            closeness = self._compared(original, islands)
            if islands in self._wholes or closeness.reason:
                continue
            if closeness.excess < found.closeness.excess:
                found = replace(found, islands=islands, closeness=closeness)
        return found

    def _smaller(self, original: Runnable, found: Found, needed: Islands) -> Found:
        """Give back nodes but the `needed` ones: a loop or branch for the nodes inside it, then groups of nodes.

        Loops are tried in the configuration that is off most, groups in one session; what remains is compared in all
        configurations, and for jumps.
        """
        tries, kept = _LOOP_TRIES, [found.islands]
        most = max(_SURELY, found.closeness.excess)

        def tried(islands: Islands) -> bool:
            nonlocal tries
            tries -= 1
            closeness = self._compared(original, islands, most)
            if closeness.reason or closeness.excess > most:
                return False
            kept.append(islands)
            return True

        for place in sorted(found.islands - needed):
            step = self._makers[place[1]]
            for products in (*_PRODUCTS, frozenset()) if step.inner else ():
                if tries and tried(kept[-1] - {place} | _places(_inside(step, but=products))):
                    break
        # Of a branch that no input takes nothing would be known.
        given_back = [step for step in self._graph.steps if not step.is_a("If")]
        order = [place for step in _inside(*given_back) for place in _places([step])]
        order = [place for place in order if place in kept[-1] and place not in needed]
        length = max(1, -(-len(order) // _GROUPS))
        groups = [order[start : start + length] for start in range(0, len(order), length)]
        smaller: list[Islands] = []
        for _ in range(_AGAIN if groups else 0):
            last = smaller[-1:]
            narrow = self._narrowed(original, kept[-1] - set(order), groups, most)
            smaller = [kept[-1].difference(*(groups[place] for place in places)) for places in narrow]
            if not smaller or smaller[-1:] == last:
                break
            closeness = self._compared(original, smaller[-1], named_from=math.inf)
            if closeness.agrees and not closeness.reason:
                return replace(found, islands=smaller[-1], closeness=closeness)
            if not closeness.on_others:
                break
        kept += smaller[:-1]
        while len(kept) > 1:  # bisection, as each is smaller than the one before
            closeness = self._compared(original, kept[-1], named_from=math.inf)
            if closeness.agrees and not closeness.reason:
                return replace(found, islands=kept[-1], closeness=closeness)
            del kept[-(len(kept) // 2) :]
        return found

    def _narrowed(
        self, original: Runnable, islands: Islands, groups: list[list[tuple[BodyKey, str]]], most: float
    ) -> list[frozenset[int]]:
        """Return which groups need not be kept beside `islands`, as far as a model shows that rounds their values."""
        with Prover(self._settings) as prover:
            result = prover.runnable(self._convert(islands))
            given = original, result, self._kind, self._settings.for_child, self._draws, groups, most
            ending = self._settings.call(NARROWED, *given)
        return ending.value if isinstance(ending, process.Returned) else []

    def _large(self, original: Runnable, sizes: dict[str, tuple[float, float]]) -> Islands:
        """Return the nodes that make or read numbers near the largest one of the type; `sizes` gets those of all nodes."""
        limit = largest(self._kind)
        given = original, self._settings.for_child, self._draws, limit / _MARGIN
        ending = self._settings.call(RANGES, *given)
        values = ending.value if isinstance(ending, process.Returned) else {}
        sizes.update({name: (top, low) for name, (top, low, _) in values.items()})
        near = [
            self._makers[name]
            for name, (top, _, varies) in values.items()
            if varies and top < limit * _MARGIN < _NEVER
        ]
        return _places(other for step in near for other in (step, *_readers(step)))

    def _compared(
        self, original: Runnable, islands: Islands, most: float | None = None, *, named_from: float = 0.0
    ) -> Closeness:
        """Convert and compare in a child process, without optimisation if that ends the process of the original, too.

        With `most` up to the first output that is off by more than so many times what is allowed. Causes are named where an
        output is off by at least `named_from` times that.
        """
        with Prover(self._settings) as prover:
            converted = self._convert(islands)
            if self._kind != TensorProto.FLOAT and not is_narrow(converted.proto):
                self._wholes.add(islands)
                return Closeness()
            given = original, prover.runnable(converted), self._kind, self._settings.for_child, self._draws
            ending = self._settings.call(CLOSENESS, *given, False, self._strictly, most, named_from)
            crashed = is_crash_of_result(ending) and not self._strictly
            if crashed and not runs_optimised(original, original, self._settings):
                self._strictly, crashed = True, False
                ending = self._settings.call(CLOSENESS, *given, False, True, most, named_from)
        if isinstance(ending, process.Returned):
            found: Closeness = ending.value
            return found
        if not crashed:
            return Closeness(reason=interruption(ending))
        if self._crashing is None:
            self._crashing = crashing_nodes(
                self._graph, lambda steps: self._runs(original, islands | _places(steps))
            )
        causes = tuple(step.node.output[0] for step in self._crashing)
        return Closeness(refusal=f"ONNX Runtime does not run it: {interruption(ending)}", causes=causes)

    def _runs(self, original: Runnable, islands: Islands) -> bool:
        with Prover(self._settings) as prover:
            return runs_optimised(original, prover.runnable(self._convert(islands)), self._settings)

    def _around(self, places: Islands, reach: int) -> Islands:
        """Return the nodes of the main graph up to `reach` nodes away from these."""
        found = {self._makers[name] for _, name in places}
        for _ in range(reach):
            found |= {other for step in found for other in _neighbours(step)}
        return _places(found)


def _places(steps: Iterable[Step]) -> Islands:
    return frozenset(
        (step.frame.key, value.name) for step in steps for value in step.outputs[:1] if value is not None
    )


def _inside(*steps: Step, but: Collection[str] = ()) -> Iterator[Step]:
    """Yield nodes that have no sub-graphs, of these and all inside them, without some operators and what moves numbers."""
    for step in steps:
        if step.inner:
            for _, frame in step.inner:
                yield from _inside(*frame.steps, but=but)
        elif not but or not (step.is_a(*but) or moves(step)):
            yield step


def _neighbours(step: Step) -> Iterable[Step]:
    for value in step.read:
        if value.maker is not None and value.maker.frame is step.frame and value.tensor is None:
            yield value.maker
    yield from _readers(step)


def _readers(step: Step) -> Iterable[Step]:
    return (reader for value in step.made for reader, _ in value.readers if reader.frame is step.frame)
