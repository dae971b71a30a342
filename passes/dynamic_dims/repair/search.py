"""The search for a repair: abstract interpretation over sample assignments, with conflict-directed backtracking.

The model's inputs get symbols (N, H, ...) instead of numbers. A constant inside the model does not show whether it has
to follow a symbol. For example, a 12 in a shape may be a length or a number of heads. So this module evaluates the model
abstractly, node by node, starting at the inputs (`interpreter`). An axis has no symbolic expression. It has its length
under four sample assignments of the symbols (`domain.values`). These are the frozen sizes, two others in which no two symbols
agree, and one in which only the batch differs. onnx's own inference of the single node is the transfer function.
It runs once for each assignment.

1. At each node, its repair rule (`rules`) compares the constants with the lengths of the inputs. A constant that is
   wrong at other sizes is replaced by a length read from a shape. The frozen sizes may leave several interpretations:
   which of two axes of length 1 is the batch? Then the rule asks `Hypotheses.choose` and continues with one of them.
2. A node may then still be invalid at other sizes, not fit its weights, or mix the items of a batch. This is a conflict
   (UnrepairableNode). One of the hypotheses before it is wrong.
3. `Hypotheses.backtrack` drops the latest choice among those the node depends on. The interpretation starts
   again on a fresh copy of the model. This ends when no node is in conflict, or no hypothesis remains. In the second
   case the search raises the conflict before which the interpreter visited the most nodes.

Three conflicts do not end in an error:

- A loop-carried value varies after one iteration: the repair expands it before the first (LoopStateConflict).
- An If has a condition that depends on the batch: the repair removes the If, and the search starts again without it
  (BranchConflict).
- A node mixes items under every hypothesis: the search tolerates it, since only running the model shows whether
  that changes its outputs (BatchMixed).

Imports inside this package point one way: search -> interpreter -> node_evaluation, control_flow -> rules, conflicts ->
rule_table, operand_edits, reshape_alignment -> node_context -> graph_state, hypotheses -> table_facts, tracked -> domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass, field

from onnx_migrate.advice import Advice
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.messages import listed
from onnx_migrate.model.graphs import fed_inputs, output_names
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .control_flow.branches import BranchConflict, inlined
from .domain import Assignments
from .hypotheses import Hypotheses, upstream_labels
from .interpreter import Interpreter, Resolutions
from .node_context import BatchMerged, BatchMixed, LoopStateConflict, NodeContext, UnrepairableNode

__all__ = ["RepairResult", "repair"]

_STEPS = (64, 1)
"""Sample sizes exceed frozen sizes by multiples of these numbers, in the order tried. The strides of most networks divide 64.
A step of 1 stays within tables that have room for a few more positions."""
_MAX_ATTEMPTS = 48
_OPEN_FACTORS = (7, 11, 13, 17, 19, 23)
"""Times 64: sample sizes of symbols the source model had already; strides divide them and constants rarely equal them."""
_MIN_VARYING_SHARE = 0.1
"""The share of nodes that must vary for a result with step 1 to count: strides can round so small a step away."""


@dataclass(frozen=True)
class RepairResult:
    """A repaired model.

    `batch_axes` maps an output to the batch symbol of its axes. `output_symbols` maps an output of known rank to the
    symbols that each axis changes with (None for an axis of unknown length). `symbols` are the symbols of the inputs.
    """

    model: Model
    batch_axes: dict[str, dict[int, str]]
    output_symbols: dict[str, list[list[str] | None]]
    symbols: tuple[str, ...]
    bounds: tuple[int, int] = (0, 0)
    """The step and the least length of images that computed tables allow; 0 for any."""
    keeps_cells: bool = False
    """Whether grids were computed, and all of them count pixels or are strides, so that no cell depends on the sizes."""


def repair(
    model: Model, frozen: Mapping[str, int], batch: Set[str], log: ChangeLog, pass_name: str
) -> RepairResult:
    """Return the model without constants that hold a frozen size; the log gets a Change for each node.

    `frozen` maps each new symbol of the inputs to the size it had, `batch` are the symbols that are a batch. Raises
    CannotMigrate, code `frozen-dim`, with the node and the constant for which no repair was found.
    """
    first: UnrepairableNode | None = None
    dims = (dim for value in fed_inputs(model.proto.graph) for dim in value.type.tensor_type.shape.dim)
    named = dict.fromkeys(dim.dim_param for dim in dims if dim.dim_param)
    open_symbols = [name for name in named if name not in frozen]  # that the source model had already
    if open_symbols:
        sizes = {symbol: 64 * factor for symbol, factor in zip(open_symbols, _OPEN_FACTORS, strict=False)}
        assignments = Assignments.of({**frozen, **sizes}, batch, _STEPS[0])
        try:
            return _search(model, assignments, log, pass_name).result(frozen, batch)
        except UnrepairableNode:
            pass  # the network may not take these sizes; without them, less is known
    for step in _STEPS if set(frozen) - batch else _STEPS[:1]:
        # A batch alone needs one step only, because its sample sizes do not depend on it.
        trial = log.trial()
        try:
            attempt = _search(model, Assignments.of(frozen, batch, step), log, pass_name)
        except UnrepairableNode as error:
            first = first or error
            continue
        coverage = attempt.interpreter.coverage
        if first is not None and coverage.varying < _MIN_VARYING_SHARE * coverage.visited:
            trial.roll_back()
            break
        return attempt.result(frozen, batch)
    assert first is not None
    raise _refusal(first, frozen, batch, output_names(model.proto.graph))


@dataclass(frozen=True)
class _Attempt:
    """A model without conflicts, and the interpretation that repaired it."""

    model: Model
    assignments: Assignments
    interpreter: Interpreter

    def result(self, frozen: Mapping[str, int], batch: Set[str]) -> RepairResult:
        """Return the result of the repair."""
        sizes = self.assignments.sizes
        of_batch = {sizes[symbol]: symbol for symbol in sorted(batch) if symbol in sizes}
        outputs = {name: dims for name, dims in self.interpreter.outputs.items() if dims is not None}
        axes = {
            name: {
                axis: of_batch[dim.sizes] for axis, dim in enumerate(dims) if dim and dim.sizes in of_batch
            }
            for name, dims in outputs.items()
        }
        symbols = {
            name: [None if dim is None else self.assignments.symbols_in(dim) for dim in dims]
            for name, dims in outputs.items()
        }
        facts = self.interpreter.table_facts
        return RepairResult(self.model, axes, symbols, tuple(frozen), facts.bounds, facts.keeps_cells)


@dataclass
class _Conflicts:
    """The conflicts that the search remembers since it last tolerated a node."""

    mixed: dict[str, Hypotheses] = field(default_factory=dict)
    """For each node label, a copy of the hypotheses at its first BatchMixed."""
    farthest: tuple[int, UnrepairableNode] | None = None
    """The conflict before which most nodes were interpreted; a wrong early hypothesis conflicts sooner."""

    def observe(self, error: UnrepairableNode, visited: int, hypotheses: Hypotheses) -> None:
        if self.farthest is None or visited > self.farthest[0]:
            self.farthest = visited, error
        if isinstance(error, BatchMixed):
            # Backtracking changes the hypotheses, and the search returns to these if it tolerates the node.
            self.mixed.setdefault(error.context.label, deepcopy(hypotheses))


def _search(model: Model, assignments: Assignments, log: ChangeLog, pass_name: str) -> _Attempt:
    """Interpret copies of the model under one set of hypotheses after the other until no node is in conflict.

    The log keeps the changes of that interpretation. Raises the UnrepairableNode before which the most nodes were interpreted.
    """
    hypotheses, conflicts = Hypotheses(), _Conflicts()
    resolved = Resolutions()
    # What to report of a node downstream of one that removed the batch: the removal, which causes the conflict.
    removed_batch: dict[str, UnrepairableNode] = {}
    for _ in range(_MAX_ATTEMPTS):
        attempt = model.copy()
        interpreter = Interpreter(attempt, assignments, hypotheses, log, pass_name, resolved)
        hypotheses.restart()
        try:
            with log.trial():
                interpreter.run()
        except UnrepairableNode as error:
            if isinstance(error, BranchConflict):
                try:
                    with log.trial():
                        model_without = inlined(model, error.inlining, log, pass_name)
                        return _search(model_without, assignments, log, pass_name)
                except UnrepairableNode:
                    resolved.kept_branches.add(error.context.label)
                    continue
            conflicts.observe(error, interpreter.coverage.visited, hypotheses)
            if isinstance(error, LoopStateConflict) and error.expansion not in resolved.expanded_states:
                resolved.expanded_states.append(error.expansion)
                continue
            nested = error.context.graph_state.parent is not None
            upstream = upstream_labels(model.proto, error.context.label, nested=nested)
            remover = next((each for each in interpreter.batch_removers if each.label in upstream), None)
            if remover is not None and _is_of_merged_batch(error):
                removed_batch.setdefault(error.context.label, _batch_removed(remover, error))
            if hypotheses.backtrack(upstream):
                continue
            assert conflicts.farthest is not None
            last = conflicts.farthest[1]
            label = last.context.label
            if label in removed_batch:
                raise removed_batch[label] from error
            if label not in conflicts.mixed:
                raise last from None
            # It mixes items under every hypothesis; running the model shows whether that changes its outputs.
            resolved.tolerated.add(label)
            hypotheses, conflicts = conflicts.mixed[label], _Conflicts()
            continue
        return _Attempt(attempt, assignments, interpreter)
    assert conflicts.farthest is not None
    raise conflicts.farthest[1]


def _is_of_merged_batch(error: UnrepairableNode) -> bool:
    """Return whether a conflict may come from a batch that is merged with another axis."""
    if isinstance(error, (BatchMixed, BatchMerged)):
        return True
    dims = [dim for value in error.context.inputs if value is not None for dim in value.dims or ()]
    return any(dim is not None and dim.factors and dim.of_batch for dim in dims)


def _batch_removed(remover: NodeContext, error: UnrepairableNode) -> UnrepairableNode:
    reason = (
        "it removes the batch axis, which is 1 long, and no later node adds it again. With more items in the batch,"
        f" {error.context.where} fails: {error.reason}"
    )
    return UnrepairableNode(remover, reason)


def _refusal(
    error: UnrepairableNode, frozen: Mapping[str, int], batch: Set[str], outputs: Sequence[str]
) -> CannotMigrate:
    reason = error.reason
    if error.constant and repr(error.constant) not in reason:
        source_kind = "constant" if error.context.graph_state.is_constant(error.constant) else "input"
        reason += f"; the {source_kind} is {error.constant!r}"
    if batch and set(frozen) - batch:
        less = Advice(
            "make only the batch dynamic with --dynamic-batch",
            options={"dynamic": None, "dynamic_batch": True},
        )
    else:
        less = Advice(f"leave {listed(frozen)} as exported")
    before = _values_before(error.context, outputs) if set(frozen) - batch else []
    hint = [less, Advice("export the model again with dynamic axes")]
    if before:
        text = f"cut the model before this node with --extract-outputs {','.join(before)}"
        hint.insert(0, Advice(text, options={"extract_outputs": before}))
    return CannotMigrate(reason, code="frozen-dim", where=error.context.where, hint=hint)


def _values_before(context: NodeContext, outputs: Sequence[str]) -> list[str]:
    """Return the varying inputs of a node of the main graph, and the graph's outputs that do not depend on the node."""
    state = context.graph_state
    # Only values of the main graph can become outputs of the model.
    if state.parent is not None:
        return []
    varying = [
        name
        for name, value in zip(context.rw.inputs, context.inputs, strict=False)
        if value is not None and value.varies and name in state.producers
    ]
    behind, queue = set[str](), list(context.node.output)
    while queue:
        name = queue.pop()
        if name not in behind:
            behind.add(name)
            queue.extend(output for reader in state.consumers.get(name, ()) for output in reader.output)
    return [*dict.fromkeys([*varying, *(name for name in outputs if name not in behind)])] if varying else []
