"""Finds the nodes that must compute in float32, and the weights that must stay it, so that the numbers stay with the original's.

The fewest products stay float32, and of other nodes as few as the limits of all outputs allow. Nodes that stay read their weights
from float16 where that is within the limits, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx import TensorProto

from onnx_migrate import process
from onnx_migrate.advice import untried
from onnx_migrate.facts.narrow_floats import is_narrow
from onnx_migrate.facts.running_cost.obstacles import why_not_run
from onnx_migrate.facts.typed_graph import Frame, Step
from onnx_migrate.model.graphs import BodyKey, weight_tensors
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.verify import Runnable, Settings, ready_worker
from onnx_migrate.verify.equivalence.common_values import shapes_of
from onnx_migrate.verify.evaluators import STRICT
from onnx_migrate.verify.precision.closeness import CLOSENESS, RANGES, Closeness
from onnx_migrate.verify.precision.decisions import decides
from onnx_migrate.verify.precision.groups import BEYOND, MOST_GROUPS, NARROWED, Narrowed
from onnx_migrate.verify.precision.run_time import estimated_seconds
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import interruption, is_crash_of_result

from .candidates import as_group, computing, groups_by_bytes, groups_by_kind, is_product, parts_of, weight_of
from .crashes import crashing_nodes, runs_optimised
from .island_steps import Islands, islands_of, movers_between, neighbours_of, readers_of
from .numbers import largest

__all__ = ["Converting", "Found", "Islands", "find_islands"]

_REFUSALS = 8
"""Comparisons after which nodes stay because ONNX Runtime refuses the result, or because an output jumps."""

_HEADROOM = 8.0
"""A value must stay 8 times below the type's maximum, since other inputs give larger ones. Nodes with values between max / 8 and
8 * max start in float32. A larger constant number is a mask (masks.py)."""

_UNREACHED = 1e30
"""Types whose maximum is larger (bfloat16, float32) do not overflow in practice: nobody looks for large values."""

_LEVELS = 3
"""How often groups that must stay are divided into smaller ones."""

_ACCEPTED = (0.7, 0.7, 0.55, 0.4)
"""Error / limit up to which groups are accepted in each attempt, since they are selected on the inputs they are judged by."""

_WORK_FOR_SMALL, _WORK, _SMALL = 60.0, 150.0, 50_000_000
"""Estimated seconds of runs after which a search begins no further attempt, for a model of fewer bytes and for a larger one."""

_MOST_SECONDS = 10.0
"""Estimated seconds of one run. Above it nothing is compared, unless the user gives inputs."""

_CLOCK = 8.0
"""A search may take this many times the estimated seconds by the clock, since the machine may do other work too."""

_PARTS_OF_KIND = 8
"""Parts of a kind of operators that are tried without."""

_DRAWS, _DRAWS_WHERE_DECIDING = 3, 6
"""How many times inputs are drawn, and for a model that decides by its numbers."""

_NOTHING: Islands = frozenset()

_NOT_NARROW = Closeness(refusal="nothing of the model can be narrow")
"""The closeness of a result that is the original."""

Converting = Callable[[Islands, Islands], Model]
"""Converts the original with the first set of nodes in float32. The nodes of the second set also read weights in float32."""


@dataclass(frozen=True)
class Found:
    """The result of a search: the nodes that keep their type, those whose weights also do, and the error that remains.

    `sizes` are of first outputs in the main graph. `reasons` give the error of an output, as a share of its
    limit, if only these nodes are narrow. `limitations` say how the search ended early, so that more nodes may stay than must.
    """

    islands: Islands
    closeness: Closeness
    sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    exact: Islands = _NOTHING
    reasons: Mapping[tuple[BodyKey, str], str] = field(default_factory=dict)
    limitations: tuple[str, ...] = ()


def find_islands(
    original: Model,
    graph: Frame,
    kind: int,
    convert: Converting,
    settings: Settings,
    *,
    weights_alone: bool = False,
    origin: tuple[Islands, Islands] | None = None,
) -> Found:
    """Convert and compare. If the result differs from the original, find the fewest nodes that must keep their type.

    `graph` is the original's main graph. `origin` are nodes that kept their type when the model had the narrow type before, and
    those whose weights did; the search begins with them. With `weights_alone` no node computes in the type, and nodes are kept
    for their weights. Returns the closest result that was compared, which may not be close enough.
    """
    with ready_worker(settings) as worker:
        search = _Search(original, graph, kind, convert, replace(settings, worker=worker))
        islands = search.run(origin, weights_alone=weights_alone)
        return replace(islands, limitations=tuple(search.limitations))


class _Search:
    def __init__(
        self, original: Model, graph: Frame, kind: int, convert: Converting, settings: Settings
    ) -> None:
        self._original, self._graph, self._kind = original, graph, kind
        self._convert, self._settings = convert, settings
        self._draws = _DRAWS_WHERE_DECIDING if decides(graph) else _DRAWS
        self._strictly = False
        """Whether results run only with every value rounded, since the original ends the process with optimisation."""
        self._crashing: list[Step] | None = None
        """The nodes that end the process in the narrow type, once that is known."""
        self._makers = {value.name: step for step in graph.steps for value in step.made}
        self._sizes: dict[str, tuple[float, float]] = {}
        self._rounds = 0
        self._reasons: dict[tuple[BodyKey, str], str] = {}
        self.limitations: dict[str, None] = {}
        """Sentences on how the search ended early."""
        self._units = computing(graph.steps)
        self._cheap = [step for step in self._units if not is_product(step)]
        self._frames = [graph, *dict.fromkeys(step.frame for step in self._units if step.frame is not graph)]
        small = 4 * sum(map(weight_of, self._units)) < _SMALL
        self._work = _WORK_FOR_SMALL if small else _WORK
        """Estimated seconds of model runs that the search may still use."""
        self._end = time.monotonic() + _CLOCK * self._work

    def run(self, origin: tuple[Islands, Islands] | None, *, weights_alone: bool) -> Found:
        """Search, first with the nodes of an `origin`; `weights_alone` looks for nodes whose weights stay.

        If no comparison works, the closeness gives the reason.
        """
        with Prover(self._settings) as prover:
            original = prover.runnable(self._original)
            reason = self._why_not_run(original)
            if reason:
                return Found(_NOTHING, Closeness(reason=reason), self._sizes)
            if origin is not None and not weights_alone:
                same = Found(origin[0], self._compared(original, *origin), self._sizes, origin[1])
                if same.closeness.agrees:
                    return same
            ranges = self._kind != TensorProto.FLOAT and not weights_alone
            needed = self._large(original) if ranges else _NOTHING
            best, needed = self._running(original, needed, _NOTHING)
            if best.closeness is _NOT_NARROW:
                return Found(needed, Closeness(), self._sizes)
            if best.closeness.agrees or best.closeness.reason or self._kind == TensorProto.FLOAT:
                return best
            if weights_alone:
                exact = self._exact(original, _NOTHING, _NOTHING, 0)
                return self._running(original, exact, exact)[0]
            if best.closeness.excess == math.inf and not best.closeness.refusal and ranges:
                overflowing = self._overflowing(original)
                self._reasons.update(dict.fromkeys(overflowing, _reason(math.inf)))
                needed |= overflowing
                best, needed = self._running(original, needed, _NOTHING)
                if best.closeness.agrees or best.closeness.reason:
                    return best
            return self._within(original, best, needed)

    def _within(self, original: Runnable, best: Found, needed: Islands) -> Found:
        """Return a result within its limits that keeps few nodes beside the `needed` ones; the closest one if none is."""
        exact, more, current, kinds_tried = _NOTHING, _NOTHING, best, False
        for attempt in range(len(_ACCEPTED)):
            if self._is_late:
                self._limit_by_time()
                break
            kind = _NOTHING
            if current.closeness.way != STRICT and not kinds_tried:
                kind, kinds_tried = self._one_kind(original, needed | more, exact), True
            if kind:
                more |= kind
            else:
                more, exact = self._selected(original, needed | exact, exact, attempt)
            current, needed = self._running(original, needed, exact, more)
            if current.closeness.agrees or current.closeness.reason:
                return current
            best = min(best, current, key=lambda one: one.closeness.excess)
            if current.closeness.excess == math.inf and not current.closeness.on_others:
                needed |= self._around(current.closeness.causes)
        # A loop that changes its type rounds its loop-carried values in each iteration, even if its body keeps its type.
        everything = [*self._units, *(step for step in self._graph.steps if step.inner)]
        products = [step for step in self._units if is_product(step)]
        halves = [[*self._cheap, *half] for half in parts_of([products], 2)] if len(products) > 1 else []
        for steps, weights in (
            (self._cheap, exact),
            *((half, exact) for half in halves),
            (self._units, exact),
            (everything, _NOTHING),
        ):
            current, _ = self._running(original, needed, weights, islands_of(steps))
            best = min(best, current, key=lambda one: one.closeness.excess)
            if best.closeness.agrees:
                break
        return best

    def _one_kind(self, original: Runnable, needed: Islands, exact: Islands) -> Islands:
        """Return nodes of the first kind of operators that, if kept too, bring the result within its limits in ONNX Runtime.

        ONNX Runtime rounds the weights of nodes that it fuses once more, and no switched model shows this rounding.
        """

        def is_within(steps: Sequence[Step]) -> bool:
            quick = self._compared(original, needed | islands_of(steps), exact, _ACCEPTED[0])
            return not quick.reason and quick.excess <= _ACCEPTED[0]

        for members in filter(is_within, groups_by_kind(self._cheap)):
            for part in parts_of([members], _PARTS_OF_KIND):
                fewer = [step for step in members if step not in part]
                if is_within(fewer):
                    members = fewer
            return islands_of(members)
        return _NOTHING

    @property
    def _is_late(self) -> bool:
        return self._work <= 0 or time.monotonic() > self._end

    def _running(
        self, original: Runnable, needed: Islands, exact: Islands, more: Islands = _NOTHING
    ) -> tuple[Found, Islands]:
        """Compare, and keep the nodes on which ONNX Runtime fails, or before a choice that jumps; return the needed nodes too."""
        candidate = Found(_NOTHING, _NOT_NARROW, self._sizes)
        for _ in range(_REFUSALS):
            closeness = self._compared(original, needed | more, exact)
            if closeness is _NOT_NARROW:
                break
            candidate = Found(needed | more, closeness, self._sizes, exact, self._reasons)
            new = islands_of(self._makers[name] for name in closeness.causes) - needed - more
            if not closeness.refusal or not new:
                break
            needed |= new
        return candidate, needed

    def _selected(
        self, original: Runnable, needed: Islands, exact: Islands, attempt: int
    ) -> tuple[Islands, Islands]:
        """Return the nodes that must keep their type beside the `needed` ones, and those whose weights must, too."""
        units = [step for step in self._units if not islands_of([step]) & needed]
        groups = groups_by_kind(units)
        for level in range(_LEVELS):
            narrowed = self._narrowed(original, needed, exact, groups, attempt)
            if narrowed is None:
                break
            if level == 0 and narrowed.base > BEYOND and not narrowed.is_late:
                more = self._exact(original, needed, exact, attempt)
                if more:
                    return self._selected(original, needed | more, exact | more, attempt)
            for index, effect in enumerate(narrowed.alone):
                self._reasons.update(dict.fromkeys(islands_of(groups[index]), _reason(effect)))
            kept_groups = [group for index, group in enumerate(groups) if index not in narrowed.narrow]
            finer = parts_of(kept_groups, MOST_GROUPS)
            groups = kept_groups
            if not kept_groups or len(finer) == len(kept_groups):
                break
            if self._is_late:
                self._limit_by_time()
                break
            groups = finer
        else:
            groups = kept_groups
        kept_places = needed | islands_of(step for group in groups for step in group)
        return kept_places | movers_between(self._frames, kept_places), exact

    def _exact(self, original: Runnable, needed: Islands, exact: Islands, attempt: int) -> Islands:
        """Return further nodes whose weights must stay float32, since rounding the weights alone exceeds the limit."""
        groups = groups_by_bytes([step for step in self._units if not islands_of([step]) & exact])
        narrowed = self._narrowed(original, needed, exact, groups, attempt, weights=True)
        if (
            narrowed is None or narrowed.is_late or narrowed.base > BEYOND or narrowed.every <= BEYOND
        ):  # no weight is the cause
            return _NOTHING
        kept_groups = [group for index, group in enumerate(groups) if index not in narrowed.narrow]
        return islands_of(step for group in kept_groups for step in group)

    def _narrowed(
        self,
        original: Runnable,
        needed: Islands,
        exact: Islands,
        groups: Sequence[Sequence[Step]],
        attempt: int,
        *,
        weights: bool = False,
    ) -> Narrowed | None:
        """Return the groups that need not stay beside `needed`, according to a model that rounds their values."""
        with Prover(self._settings) as prover:
            result = prover.runnable(self._convert(needed, exact))
            chosen = [as_group(group) for group in groups]
            arguments = original, result, self._kind, self._settings.for_child, self._draws, chosen
            ending = self._settings.call(NARROWED, *arguments, _ACCEPTED[attempt], weights)
        if not isinstance(ending, process.Returned):
            self._limit(f"the child process that measures groups of nodes ended: {interruption(ending)}")
            return None
        narrowed: Narrowed = ending.value
        # The next session costs about as much, so that one is not begun whose work would not fit.
        self._work = self._work - narrowed.work if self._work > 1.5 * narrowed.work else 0.0
        if narrowed.problem:
            self._limit(narrowed.problem)
            return None
        if narrowed.is_late:
            self._limit_by_time()
        return narrowed

    def _limit_by_time(self) -> None:
        helps = untried(
            "on a machine with less to do, or with smaller inputs of yours (--input-data), it tries more"
        )
        self._limit(f"its time was up before all groups of nodes were tried; {helps}")

    def _limit(self, reason: str) -> None:
        """Note that the search ended early, so that more nodes may stay than must."""
        self.limitations[reason] = None

    def _why_not_run(self, original: Runnable) -> str:
        """Return why a run would exceed its limits, "" if nothing shows that."""
        feeds, limits = self._settings.feeds, self._settings.limits
        sizes = None if feeds is None else shapes_of(feeds.sets[0].inputs)
        obstacle = why_not_run(original.model, limits.memory, limits.seconds, sizes, asked=feeds is not None)
        if obstacle:
            return f"the original was not run: {obstacle}"
        seconds = estimated_seconds(original.model, sizes)
        if seconds > _MOST_SECONDS and feeds is None:
            helps = untried("--input-data compares on inputs of yours, however long that takes")
            return f"one run of the original takes about {seconds:.0f} s, and a comparison needs several; {helps}"
        return ""

    def _large(self, original: Runnable) -> Islands:
        """Return the nodes that make or read numbers near the largest one of the type, and note the sizes of all numbers."""
        limit = largest(self._kind)
        values = self._ranges(original, limit / _HEADROOM)
        self._sizes.update({name: (top, low) for name, (top, low, _) in values.items()})
        near = [
            self._makers[name]
            for name, (top, _, varies) in values.items()
            if varies and top < limit * _HEADROOM < _UNREACHED
        ]
        return islands_of(other for step in near for other in (step, *readers_of(step)))

    def _overflowing(self, original: Runnable) -> Islands:
        """Return the nodes that make or read numbers beyond the type's largest one, on the inputs on which a result was off."""
        values = self._ranges(original, largest(self._kind), failing=True)
        steps = [
            self._makers[name] for name, (top, _, varies) in values.items() if varies and top < _UNREACHED
        ]
        return islands_of(other for step in steps for other in (step, *readers_of(step)))

    def _ranges(
        self, original: Runnable, large: float, *, failing: bool = False
    ) -> Mapping[str, tuple[float, float, bool]]:
        """Return the range of each value, and whether it has larger numbers than `large` that vary."""
        arguments = original, self._settings.for_child, self._draws, large, failing
        ending = self._settings.call(RANGES, *arguments)
        if isinstance(ending, process.Returned):
            values: Mapping[str, tuple[float, float, bool]] = ending.value
            return values
        self._limit(f"the child process that measures the range of numbers ended: {interruption(ending)}")
        return {}

    def _compared(
        self, original: Runnable, islands: Islands, exact: Islands, most: float | None = None
    ) -> Closeness:
        """Convert and compare in a child process, without optimisation if that ends the process of the original, too.

        With `most` on the feed and in the configuration in which a result was off last, for a quick rejection.
        """
        with Prover(self._settings) as prover:
            converted = self._convert(islands, exact)
            if self._kind != TensorProto.FLOAT and not is_narrow(converted.proto):
                return _NOT_NARROW
            arguments = (
                original,
                prover.runnable(converted),
                self._kind,
                self._settings.for_child,
                self._draws,
            )
            ending = self._settings.call(CLOSENESS, *arguments, False, self._strictly, most)
            crashed = is_crash_of_result(ending) and not self._strictly
            if crashed and not runs_optimised(original, original, self._settings):
                self._strictly, crashed = True, False
                ending = self._settings.call(CLOSENESS, *arguments, False, True, most)
        if isinstance(ending, process.Returned):
            closeness: Closeness = ending.value
            self._tell(closeness, converted)
            return closeness
        if not crashed:
            return Closeness(reason=interruption(ending))
        # Many runs find these nodes, so the search for them happens only once.
        if self._crashing is None:
            self._crashing = crashing_nodes(
                self._graph, lambda steps: self._runs(original, islands | islands_of(steps), exact)
            )
        causes = tuple(step.node.output[0] for step in self._crashing)
        return Closeness(refusal=f"ONNX Runtime does not run it: {interruption(ending)}", causes=causes)

    def _tell(self, found: Closeness, converted: Model) -> None:
        """Report the progress of the search: the round, the error and the size of the weights that stay float32."""
        self._rounds += 1
        tensors = (
            tensor for tensor in weight_tensors(converted.proto) if tensor.data_type == TensorProto.FLOAT
        )
        kept_bytes = sum(byte_size(tensor.dims, tensor.data_type) or 0 for tensor in tensors)
        process.say(
            f"round {self._rounds}: error {found.excess:.2g} times its limit, {kept_bytes:,} bytes of weights in float32"
        )

    def _runs(self, original: Runnable, islands: Islands, exact: Islands) -> bool:
        with Prover(self._settings) as prover:
            result = prover.runnable(self._convert(islands, exact))
            return runs_optimised(original, result, self._settings)

    def _around(self, causes: Sequence[str]) -> Islands:
        """Return the nodes that cause an error of the result, and their neighbours."""
        # A loop that is kept would keep all nodes inside it too.
        steps = [step for step in map(self._makers.__getitem__, causes) if not step.inner]
        return islands_of(other for step in steps for other in (step, *neighbours_of(step)))


def _reason(effect: float) -> str:
    """Return the reason why nodes stay; `effect` is the error that they alone cause, divided by its limit."""
    if math.isnan(effect):
        return "the time of the search was up before it was tried"
    if effect == math.inf:
        return "its numbers become infinite or NaN"
    return f"alone it would make an output differ by {effect:.0%} of its limit"
