"""Finds the nodes that must keep their type, so that the numbers stay with the original's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from onnx import TensorProto

from onnx_migrate import process
from onnx_migrate.facts.running_cost.obstacles import why_not_run
from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.model.graphs import BodyKey
from onnx_migrate.model.model import Model
from onnx_migrate.standard.schema import RECURRENT
from onnx_migrate.verify import Runnable, Settings, ready_worker
from onnx_migrate.verify.equivalence.common_values import shapes_of
from onnx_migrate.verify.evaluators.strict import is_narrow
from onnx_migrate.verify.precision.closeness import CLOSENESS, MATRIX, RANGES, Closeness
from onnx_migrate.verify.precision.groups import NARROWED
from onnx_migrate.verify.precision.reference import decides
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import interruption, is_crash_of_result

from .candidates import largest_products, sensitive_kinds
from .crashes import crashing_nodes, runs_optimised
from .island_steps import Islands, islands_of, neighbours_of, readers_of, steps_inside
from .numbers import largest

__all__ = ["Converting", "Found", "Islands", "find_islands"]

_ROUNDS = 16
"""How many times islands may grow."""

_HEADROOM = 8.0
"""A value must stay 8 times below the type's maximum, since other inputs give larger ones. Nodes with values between max / 8 and
8 * max start in float32. A larger constant number is a mask (masks.py)."""

_UNREACHED = 1e30
"""Types whose maximum is larger (bfloat16, float32) do not overflow in practice: nobody looks for large values."""

_ACCUMULATED = 2.0
"""Error / limit up to which the cause is accumulated rounding rather than one node."""

_PATIENCE = 3
"""Rounds without improvement in which only the blamed nodes are added, not their neighbours, as along a chain that overflows."""

_ACCUMULATED_ROUNDS = 2
"""After 2 rounds of accumulated rounding, the search changes its direction: it keeps everything and releases groups."""

_LOOP_TRIES = 12
"""Attempts to keep only nodes inside a loop or branch, not the whole loop."""

_GROUPS = 32
"""Groups into which kept nodes are divided; a group is released as a whole."""

_GROUP_ROUNDS = 3
"""How often groups are released again, if the result fails on other inputs; these inputs then count too."""

_DRAWS, _DRAWS_WHERE_DECIDING = 3, 6
"""How many times inputs are drawn, and for a model that decides by its numbers."""

_ACCEPTED = 0.7
"""Error / limit up to which a smaller set of kept nodes is accepted, since it was selected on the inputs it is judged by."""

_PRODUCTS = (MATRIX | RECURRENT, MATRIX, RECURRENT)
"""Operators that change where all others keep their type: of those inside of a loop or branch the search sees no values."""

Converting = Callable[[Islands, Islands], Model]
"""Converts the original with these nodes kept, and the weights of the second ones unchanged."""


@dataclass(frozen=True)
class Found:
    """The nodes that keep their type; how close the result then is; and of first outputs in the main graph the sizes."""

    islands: Islands
    closeness: Closeness
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    exact: Islands = frozenset()
    """Kept nodes whose weights keep their type too."""
    reasons: Mapping[tuple[BodyKey, str], str] = field(default_factory=dict)
    """Why nodes were kept, where the search knows more than that."""


def find_islands(
    original: Model,
    graph: Frame,
    kind: int,
    convert: Converting,
    settings: Settings,
    *,
    weights_alone: bool = False,
) -> Found:
    """Convert, compare, and keep more nodes around those at which the result leaves the original, until it does not.

    Then nodes are given back that need not be kept. `graph` is the original's main graph. Returns the closest that was found,
    which may not be close enough, or be the original. With `weights_alone` no node computes in the type, and nodes are kept for
    their weights.
    """
    with ready_worker(settings) as worker:
        search = _Search(original, graph, kind, convert, replace(settings, worker=worker))
        return search.run(ranges=kind != TensorProto.FLOAT and not weights_alone)


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

    def run(self, *, ranges: bool) -> Found:
        """Search, with `ranges` from the nodes of large numbers on. Where nothing can be compared, the closeness says why."""
        sizes: dict[str, tuple[float, float]] = {}
        reach = idle = slow = 0
        best: Found | None = None
        near: Found | None = None
        with Prover(self._settings) as prover:
            original = prover.runnable(self._original)
            reason = self._why_not_run(original)
            if reason:
                return Found(frozenset(), Closeness(reason=reason), sizes)
            needed = self._large(original, sizes) if ranges else frozenset()
            islands = needed
            for _ in range(_ROUNDS):
                # Where the whole model is taken next, nobody asks for causes.
                named_from = _ACCUMULATED if slow == _ACCUMULATED_ROUNDS - 1 else 0.0
                found = self._compared(original, islands, named_from=named_from)
                idle += 1
                slow += found.excess < _ACCUMULATED
                if best is None or found.agrees or found.excess < best.closeness.excess:
                    near, best, idle = best, Found(islands, found, sizes), 0
                if found.agrees or found.reason or self._kind == TensorProto.FLOAT:
                    break
                if slow == _ACCUMULATED_ROUNDS and found.excess < _ACCUMULATED:
                    whole = Found(islands_of(self._graph.steps), Closeness(), sizes)
                    parts = self._smaller(original, whole, needed)
                    if parts != whole and parts.islands not in self._wholes:
                        return parts
                    found = self._compared(original, islands)
                    if best.islands == islands:
                        best = replace(best, closeness=found)
                causes = [self._makers[name] for name in found.causes]
                new = islands_of(causes) - islands
                needed |= new if found.fails else frozenset()
                reach = 0 if new and idle < _PATIENCE and slow < _ACCUMULATED_ROUNDS else max(1, 2 * reach)
                grown = islands | new | self._around(islands | islands_of(causes), reach)
                if grown == islands:
                    break
                islands = grown
            assert best is not None
            if best.closeness.agrees:
                best = self._smaller(original, best, needed)
            if best.closeness.reason or self._is_right(best):
                return best
            if near is not None and best.islands in self._wholes:
                best = self._products(original, near, islands)
            return best if self._is_right(best) else self._last_resort(original, best, needed)

    def _is_right(self, found: Found) -> bool:
        """Return whether a result is within its limits, and narrow at all."""
        return found.closeness.agrees and found.islands not in self._wholes

    def _last_resort(self, original: Runnable, found: Found, needed: Islands) -> Found:
        """Return the first result within its limits of those that keep a kind of operators, or all but the products."""
        if self._kind == TensorProto.FLOAT:
            return found
        whole = Found(islands_of(self._graph.steps), Closeness(), found.sizes)
        parts = self._smaller(original, whole, needed)
        if parts.islands != whole.islands and self._is_right(parts):
            return parts
        kept = [needed | islands_of(steps) for steps in sensitive_kinds(self._graph, found.closeness.causes)]
        narrow = [
            whole.islands - islands_of([step]) for step in largest_products(self._graph) if step.outputs
        ]
        for islands in (*kept, *narrow):
            quick = self._compared(original, islands, most=1.0)
            if quick.reason or quick.excess > 1.0 or islands in self._wholes:
                continue
            closeness = self._compared(original, islands, named_from=math.inf)
            if closeness.agrees and not closeness.reason:
                return replace(found, islands=islands, closeness=closeness)
        return found

    def _why_not_run(self, original: Runnable) -> str:
        """Return why a run would not end within its limits, "" where nothing says so."""
        feeds, limits = self._settings.feeds, self._settings.limits
        sizes = None if feeds is None else shapes_of(feeds.sets[0].inputs)
        obstacle = why_not_run(original.model, limits.memory, limits.seconds, sizes, asked=feeds is not None)
        return f"the original was not run: {obstacle}" if obstacle else ""

    def _products(self, original: Runnable, found: Found, kept: Islands) -> Found:
        """Return the closest of what was found and results of whose kept loops and branches nothing but products changes."""
        steps = [step for step in map(self._makers.__getitem__, (name for _, name in kept)) if step.inner]
        for products in _PRODUCTS if steps else ():
            islands = kept - islands_of(steps) | islands_of(steps_inside(*steps, but=products))
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
        most = max(_ACCEPTED, found.closeness.excess)

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
                if tries and tried(kept[-1] - {place} | islands_of(steps_inside(step, but=products))):
                    break
        # Of a branch that no input takes nothing would be known.
        given_back = [step for step in self._graph.steps if not step.is_a("If")]
        order = [place for step in steps_inside(*given_back) for place in islands_of([step])]
        order = [place for place in order if place in kept[-1] and place not in needed]
        length = max(1, -(-len(order) // _GROUPS))
        groups = [order[start : start + length] for start in range(0, len(order), length)]
        smaller: list[Islands] = []
        for _ in range(_GROUP_ROUNDS if groups else 0):
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
            result = prover.runnable(self._convert(islands, frozenset()))
            given = original, result, self._kind, self._settings.for_child, self._draws, groups, most
            ending = self._settings.call(NARROWED, *given)
        return ending.value if isinstance(ending, process.Returned) else []

    def _large(self, original: Runnable, sizes: dict[str, tuple[float, float]]) -> Islands:
        """Return the nodes that make or read numbers near the largest one of the type; `sizes` gets those of all nodes."""
        limit = largest(self._kind)
        given = original, self._settings.for_child, self._draws, limit / _HEADROOM
        ending = self._settings.call(RANGES, *given)
        values = ending.value if isinstance(ending, process.Returned) else {}
        sizes.update({name: (top, low) for name, (top, low, _) in values.items()})
        near = [
            self._makers[name]
            for name, (top, _, varies) in values.items()
            if varies and top < limit * _HEADROOM < _UNREACHED
        ]
        return islands_of(other for step in near for other in (step, *readers_of(step)))

    def _compared(
        self, original: Runnable, islands: Islands, most: float | None = None, *, named_from: float = 0.0
    ) -> Closeness:
        """Convert and compare in a child process, without optimisation if that ends the process of the original, too.

        With `most` up to the first output that is off by more than so many times what is allowed. Causes are named where an
        output is off by at least `named_from` times that.
        """
        with Prover(self._settings) as prover:
            converted = self._convert(islands, frozenset())
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
                self._graph, lambda steps: self._runs(original, islands | islands_of(steps))
            )
        causes = tuple(step.node.output[0] for step in self._crashing)
        return Closeness(refusal=f"ONNX Runtime does not run it: {interruption(ending)}", causes=causes)

    def _runs(self, original: Runnable, islands: Islands) -> bool:
        with Prover(self._settings) as prover:
            return runs_optimised(
                original, prover.runnable(self._convert(islands, frozenset())), self._settings
            )

    def _around(self, places: Islands, reach: int) -> Islands:
        """Return the nodes of the main graph up to `reach` nodes away from these."""
        found = {self._makers[name] for _, name in places}
        for _ in range(reach):
            found |= {other for step in found for other in neighbours_of(step)}
        return islands_of(found)
