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

from .domain import Assignments, Dim
from .graph_state import LoopState
from .hypotheses import Hypotheses
from .interpreter import Interpreter
from .node_context import BatchMerged, BatchMixed, LoopStateConflict, NodeContext, UnrepairableNode

__all__ = ["RepairResult", "repair"]

_STRIDES = (64, 1)
"""By multiples of what sizes grow: what strides divide, then what tables of positions have room for."""
_MAX_ATTEMPTS = 48
_FACTORS = (7, 11, 13, 17, 19, 23)
"""Times 64: sizes for dims that were open already, which strides divide and no constant is likely to be."""
_MIN_VARYING_SHARE = 0.1
"""Of a model's nodes that a size must move to be free, where only small steps can be taken."""


@dataclass(frozen=True)
class RepairResult:
    """A model without what froze its sizes, the axes of its outputs that are a batch, and where each symbol flows.

    `flow` tells for how many nodes a symbol is an axis of what they give, or laid into one, of how many.
    """

    model: Model
    batch_axes: dict[str, dict[int, str]]
    symbol_use: dict[str, tuple[int, int]]


def repair(
    model: Model, frozen: Mapping[str, int], batch: Set[str], log: ChangeLog, pass_name: str
) -> RepairResult:
    """Return the model with every constant that froze a symbol's size mended; each mend is a Change in the log.

    `frozen` gives each symbol of the inputs the size it had; `batch` are those that are a batch. The walk computes
    every shape at the frozen sizes and at others. Raises CannotMigrate, code `frozen-dim`, naming the node and the
    constant where no mending makes them agree.
    """
    first: UnrepairableNode | None = None
    open_sizes = {
        symbol: 64 * factor
        for symbol, factor in zip(_open_symbols(model.proto, frozen), _FACTORS, strict=False)
    }
    if open_sizes:
        try:
            assignments = Assignments.of({**frozen, **open_sizes}, batch, _STRIDES[0])
            found, interpreter = _search(model, assignments, pass_name)
        except UnrepairableNode:
            pass  # a network that does not take these sizes: without them, less is known
        else:
            log.changes.extend(interpreter.changes)
            return RepairResult(
                found, _batch_axes(interpreter, assignments, batch), _symbol_use(interpreter, frozen)
            )
    for stride in _STRIDES if set(frozen) - batch else _STRIDES[:1]:
        assignments = Assignments.of(frozen, batch, stride)
        try:
            found, interpreter = _search(model, assignments, pass_name)
        except UnrepairableNode as error:
            first = first or error
            continue
        if first is not None and interpreter.varying < _MIN_VARYING_SHARE * interpreter.visited:
            break  # strides swallow so small a step, and it shows nothing
        log.changes.extend(interpreter.changes)
        return RepairResult(
            found, _batch_axes(interpreter, assignments, batch), _symbol_use(interpreter, frozen)
        )
    assert first is not None
    raise _refusal(first, frozen)


def _symbol_use(interpreter: Interpreter, frozen: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    return {symbol: (interpreter.symbol_use[symbol], interpreter.visited) for symbol in frozen}


def _open_symbols(proto: onnx.ModelProto, frozen: Mapping[str, int]) -> list[str]:
    """Return the symbols of inputs that were open before."""
    values = fed_inputs(proto.graph)
    names = [dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim]
    return [name for name in dict.fromkeys(names) if name and name not in frozen]


def _batch_axes(
    interpreter: Interpreter, assignments: Assignments, batch: Set[str]
) -> dict[str, dict[int, str]]:
    symbols = {assignments.sizes[symbol]: symbol for symbol in sorted(batch) if symbol in assignments.sizes}
    return {
        name: {
            axis: symbols[dim.sizes]
            for axis, dim in enumerate(dims)
            if dim is not None and dim.sizes in symbols
        }
        for name, dims in interpreter.outputs.items()
        if dims is not None
    }


def _search(model: Model, assignments: Assignments, pass_name: str) -> tuple[Model, Interpreter]:
    """Walk under one meaning after the other until nothing contradicts."""
    hypotheses = Hypotheses()
    tolerated: set[str] = set()
    expanded_states: list[tuple[LoopState, int, Dim]] = []
    # How the choices stood before they gave way to a node that mixes a batch, first come first.
    mixed: dict[str, Hypotheses] = {}
    # What is to be said of those behind a node that took the batch away: no running shows more.
    removed_batch: dict[str, UnrepairableNode] = {}
    # The error before which the walk came farthest: a worse meaning of what comes first ends sooner.
    farthest: tuple[int, UnrepairableNode] | None = None
    for _ in range(_MAX_ATTEMPTS):
        attempt = model.copy()
        interpreter = Interpreter(attempt, assignments, hypotheses, pass_name, tolerated, expanded_states)
        hypotheses.restart()
        try:
            interpreter.run()
        except UnrepairableNode as error:
            if farthest is None or interpreter.visited > farthest[0]:
                farthest = interpreter.visited, error
            if isinstance(error, LoopStateConflict):
                found = error.state, error.axis, error.dim
                if found not in expanded_states:
                    expanded_states.append(found)
                    continue
            if isinstance(error, BatchMixed):
                mixed.setdefault(error.context.label, deepcopy(hypotheses))
            upstream = _upstream(model.proto, error)
            remover = next(
                (context for context in interpreter.batch_removers if context.label in upstream), None
            )
            if remover is not None and (
                isinstance(error, (BatchMixed, BatchMerged)) or _reads_merged_batch(error.context)
            ):
                what = "it takes the one item out of its batch, and nothing brings it back"
                reason = f"{what}; at {error.context.where} {error.reason}"
                removed_batch.setdefault(error.context.label, UnrepairableNode(remover, reason))
            if hypotheses.backtrack(upstream):
                continue
            last = farthest[1]
            label = last.context.label
            if label in removed_batch:
                raise removed_batch[label] from error
            if label not in mixed:
                raise last from None
            # No meaning helps: it mixes by itself, and running it will show whether that harms.
            tolerated.add(label)
            hypotheses, mixed, farthest = mixed[label], {}, None
            continue
        return attempt, interpreter
    assert farthest is not None
    raise farthest[1]


def _reads_merged_batch(context: NodeContext) -> bool:
    """Tell whether a batch is laid with another axis in what a node takes."""
    dims = [dim for value in context.inputs if value is not None for dim in value.dims or ()]
    return any(dim is not None and dim.factors and context.assignments.carries_batch(dim) for dim in dims)


def _upstream(proto: onnx.ModelProto, error: UnrepairableNode) -> set[str]:
    """Return the places whose meaning a node depends on: all but those the main graph shows not to be before it."""
    if error.context.graph_state.parent is not None or proto.functions:
        return _AllLabels()
    producer_of = producers(proto.graph)
    seen: set[str] = set()
    queue = [error.context.label]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in producer_of:
            queue.extend(names_read(producer_of[name]))
    return _Labels(seen)


class _Labels(set[str]):
    def __contains__(self, label: object) -> bool:
        return super().__contains__(str(label).partition("[")[0]) or super().__contains__(label)


class _AllLabels(set[str]):
    def __contains__(self, label: object) -> bool:
        return True


def _refusal(error: UnrepairableNode, frozen: Mapping[str, int]) -> CannotMigrate:
    constant = f" (constant {error.constant!r})" if error.constant else ""
    return CannotMigrate(
        f"{error.reason}{constant}",
        code="frozen-dim",
        where=error.context.where,
        hint=f"the model cannot be made dynamic in {', '.join(frozen)} as it is",
    )
