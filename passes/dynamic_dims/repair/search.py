"""Finds and mends what keeps a model at its frozen sizes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from copy import deepcopy
from dataclasses import dataclass

import onnx

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import fed_inputs, names_read, producers
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .domain import Dim, Worlds
from .graph_state import State
from .hypotheses import Choices
from .interpreter import Walk
from .node_context import BlockedError, LaidError, MixedError, Place, StateError

__all__ = ["Mended", "mend"]

_STEPS = (64, 1)
"""By multiples of what sizes grow: what strides divide, then what tables of positions have room for."""
_TRIALS = 48
_FACTORS = (7, 11, 13, 17, 19, 23)
"""Times 64: sizes for dims that were open already, which strides divide and no constant is likely to be."""
_SHARE = 0.1
"""Of a model's nodes that a size must move to be free, where only small steps can be taken."""


@dataclass(frozen=True)
class Mended:
    """A model without what froze its sizes, the axes of its outputs that are a batch, and where each symbol flows.

    `flow` tells for how many nodes a symbol is an axis of what they give, or laid into one, of how many.
    """

    model: Model
    batches: dict[str, dict[int, str]]
    flow: dict[str, tuple[int, int]]


def mend(model: Model, frozen: Mapping[str, int], batch: Set[str], log: ChangeLog, step: str) -> Mended:
    """Return the model with every constant that froze a symbol's size mended; each mend is a Change in the log.

    `frozen` gives each symbol of the inputs the size it had; `batch` are those that are a batch. The walk computes
    every shape at the frozen sizes and at others. Raises CannotMigrate, code `frozen-dim`, naming the node and the
    constant where no mending makes them agree.
    """
    first: BlockedError | None = None
    guessed = {
        symbol: 64 * factor for symbol, factor in zip(_opened(model.proto, frozen), _FACTORS, strict=False)
    }
    if guessed:
        try:
            worlds = Worlds.of({**frozen, **guessed}, batch, _STEPS[0])
            found, walk = _settle(model, worlds, step)
        except BlockedError:
            pass  # a network that does not take these sizes: without them, less is known
        else:
            log.changes.extend(walk.changes)
            return Mended(found, _batches(walk, worlds, batch), _flow(walk, frozen))
    for stride in _STEPS if set(frozen) - batch else _STEPS[:1]:
        worlds = Worlds.of(frozen, batch, stride)
        try:
            found, walk = _settle(model, worlds, step)
        except BlockedError as error:
            first = first or error
            continue
        if first is not None and walk.moved < _SHARE * walk.visited:
            break  # strides swallow so small a step, and it shows nothing
        log.changes.extend(walk.changes)
        return Mended(found, _batches(walk, worlds, batch), _flow(walk, frozen))
    assert first is not None
    raise _refusal(first, frozen)


def _flow(walk: Walk, frozen: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    return {symbol: (walk.flow[symbol], walk.visited) for symbol in frozen}


def _opened(proto: onnx.ModelProto, frozen: Mapping[str, int]) -> list[str]:
    """Return the symbols of inputs that were open before."""
    values = fed_inputs(proto.graph)
    names = [dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim]
    return [name for name in dict.fromkeys(names) if name and name not in frozen]


def _batches(walk: Walk, worlds: Worlds, batch: Set[str]) -> dict[str, dict[int, str]]:
    symbols = {worlds.sizes[symbol]: symbol for symbol in sorted(batch) if symbol in worlds.sizes}
    return {
        name: {
            axis: symbols[dim.sizes]
            for axis, dim in enumerate(dims)
            if dim is not None and dim.sizes in symbols
        }
        for name, dims in walk.outputs.items()
        if dims is not None
    }


def _settle(model: Model, worlds: Worlds, step: str) -> tuple[Model, Walk]:
    """Walk under one meaning after the other until nothing contradicts."""
    choices = Choices()
    tolerated: set[str] = set()
    widened: list[tuple[State, int, Dim]] = []
    # How the choices stood before they gave way to a node that mixes a batch, first come first.
    mixed: dict[str, Choices] = {}
    # What is to be said of those behind a node that took the batch away: no running shows more.
    dropped: dict[str, BlockedError] = {}
    # The error before which the walk came farthest: a worse meaning of what comes first ends sooner.
    farthest: tuple[int, BlockedError] | None = None
    for _ in range(_TRIALS):
        attempt = model.copy()
        walk = Walk(attempt, worlds, choices, step, tolerated, widened)
        choices.restart()
        try:
            walk.run()
        except BlockedError as error:
            if farthest is None or walk.visited > farthest[0]:
                farthest = walk.visited, error
            if isinstance(error, StateError):
                found = error.state, error.axis, error.dim
                if found not in widened:
                    widened.append(found)
                    continue
            if isinstance(error, MixedError):
                mixed.setdefault(error.place.label, deepcopy(choices))
            upstream = _upstream(model.proto, error)
            taker = next((place for place in walk.takers if place.label in upstream), None)
            if taker is not None and (isinstance(error, (MixedError, LaidError)) or _takes_laid(error.place)):
                what = "it takes the one item out of its batch, and nothing brings it back"
                reason = f"{what}; at {error.place.where} {error.reason}"
                dropped.setdefault(error.place.label, BlockedError(taker, reason))
            if choices.reconsider(upstream):
                continue
            last = farthest[1]
            label = last.place.label
            if label in dropped:
                raise dropped[label] from error
            if label not in mixed:
                raise last from None
            # No meaning helps: it mixes by itself, and running it will show whether that harms.
            tolerated.add(label)
            choices, mixed, farthest = mixed[label], {}, None
            continue
        return attempt, walk
    assert farthest is not None
    raise farthest[1]


def _takes_laid(place: Place) -> bool:
    """Tell whether a batch is laid with another axis in what a node takes."""
    dims = [dim for value in place.given if value is not None for dim in value.dims or ()]
    return any(dim is not None and dim.parts and place.worlds.carries_batch(dim) for dim in dims)


def _upstream(proto: onnx.ModelProto, error: BlockedError) -> set[str]:
    """Return the places whose meaning a node depends on: all but those the main graph shows not to be before it."""
    if error.place.body.parent is not None or proto.functions:
        return _Everything()
    makers = producers(proto.graph)
    seen: set[str] = set()
    queue = [error.place.label]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in makers:
            queue.extend(names_read(makers[name]))
    return _Places(seen)


class _Places(set[str]):
    def __contains__(self, place: object) -> bool:
        return super().__contains__(str(place).partition("[")[0]) or super().__contains__(place)


class _Everything(set[str]):
    def __contains__(self, place: object) -> bool:
        return True


def _refusal(error: BlockedError, frozen: Mapping[str, int]) -> CannotMigrate:
    constant = f" (constant {error.constant!r})" if error.constant else ""
    return CannotMigrate(
        f"{error.reason}{constant}",
        code="frozen-dim",
        where=error.place.where,
        hint=f"the model cannot be made dynamic in {', '.join(frozen)} as it is",
    )
