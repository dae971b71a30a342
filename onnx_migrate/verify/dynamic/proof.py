"""Proves that dims which were made symbolic are free, by running the model at other sizes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from onnx_migrate import process
from onnx_migrate.errors import UsageError
from onnx_migrate.facts.running_cost.obstacles import why_not_run
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.process import mark
from onnx_migrate.process.limits import memory_limit
from onnx_migrate.verdicts import Blocker, DynamicProof, SizeCondition
from onnx_migrate.verify.compare.model_precision import coarsest_eps
from onnx_migrate.verify.dynamic.batch_items import independent_batches, require_independent_items
from onnx_migrate.verify.dynamic.declared_shapes import common_first_axis, inputs_with_sizes
from onnx_migrate.verify.dynamic.fault_localization import find_blocker, named_blocker
from onnx_migrate.verify.dynamic.same_cells import require_same_cells
from onnx_migrate.verify.dynamic.sized_runs import RequirementViolated, SizedRunner, Values
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.kernel import Tolerance
from onnx_migrate.verify.run_count import start_count
from onnx_migrate.verify.settings import Settings, interruption, is_crash_of_result

__all__ = ["PROVE", "prove", "prove_dynamic", "require_all_sizes_at_once", "require_two_sizes"]


PROVE = "onnx_migrate.verify.dynamic.proof:prove"
"""The function that the child process runs."""

_ITEM_TOLERANCE = Tolerance(floor=256.0, factor=20.0)
"""Limits for an item of a batch beside a run of that item alone.

The runtime computes a batch in other blocks than one item, so it rounds more differently than between two runs of one shape. We
measured 66 eps in a Softmax of large logits. Items that are mixed differ by thousands of eps.
"""

_INCREMENTS = (1, 32, 64, 33, 128, 2)
"""Numbers to add to a frozen size, in turn, until two sizes run.

Networks with strides accept only some sizes, and tables of positions are only a little longer than the frozen size.
"""

_STEPS = (2, 3, 4, 8, 16, 32, 64)
"""Distances between sizes that networks with strides accept."""

_FACTORS = (1, 2, 4)
"""Multiples of the step from the frozen size to an accepted one, at which all symbols are tried at once."""


def require_two_sizes(runner: SizedRunner, symbol: str, batch_axes: Mapping[str, tuple[int, int]]) -> int:
    """Run at two other sizes of `symbol`, with the batch unchanged, and return the larger. Raises RequirementViolated.

    `batch_axes` holds by output its batch axis and how long that must be.
    """
    accepted: list[int] = []
    refused: dict[int, EvaluationError] = {}
    for increment in _INCREMENTS:
        size = runner.symbols[symbol] + increment
        try:
            _, values = runner.run({symbol: size})
        except EvaluationError as error:
            refused[size] = error
            continue
        _require_same_batch(symbol, {**runner.symbols, symbol: size}, values, batch_axes)
        accepted.append(size)
        if len(accepted) == 2:
            break
    if len(accepted) < 2:
        last, tried = list(refused.values())[-1], " or ".join(map(str, refused))
        raise RequirementViolated(f"the model does not run with {symbol} = {tried}: {last}", node=last.node)
    _note_fixed_axes(runner, symbol, values)
    if refused:
        runs, condition, step = _accepted_sizes(runner, symbol, accepted, min(refused))
        tried = ", ".join(map(str, refused))
        note = f"the model does not run at {symbol} = {tried}; it does {runs}"
        runner.notes.append(note)
        runner.conditions.append(SizeCondition(symbol, condition, note, step))
    return max(accepted)


def _accepted_sizes(
    runner: SizedRunner, symbol: str, accepted: list[int], least: int
) -> tuple[str, str, int]:
    """Return the sizes of `symbol` at which the model runs, and the condition on a size with its `SizeCondition.step`.

    A few more runs measure both. `least` is the smallest size that the model refuses.
    """
    frozen = runner.symbols[symbol]
    accepted_text = f"at {' and '.join(map(str, accepted))}"
    if least > max(accepted):
        # A table of positions only has an upper bound, so a bisection finds it.
        low, high = max(accepted), least
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _runs(runner, symbol, middle) else (low, middle)
        return f"up to {low}", f"at most {low}", 0
    for step in _STEPS:
        if _runs(runner, symbol, frozen + step):
            if all(_runs(runner, symbol, frozen + count * step) for count in (2, 3)):
                # A smaller size costs little, and shows whether a TopK or a pool needs more rows.
                if frozen >= 2 * step:
                    _runs(runner, symbol, frozen - frozen // (2 * step) * step)
                runs, multiple = f"{accepted_text}, in steps of {step}", f"a multiple of {step}"
                return (runs, f"{frozen} plus {multiple}", 0) if frozen % step else (runs, multiple, step)
            break
    return accepted_text, f"a size that the model accepts, such as {' or '.join(map(str, accepted))}", 0


def _runs(runner: SizedRunner, symbol: str, size: int) -> bool:
    try:
        runner.run({symbol: size})
    except EvaluationError:
        return False
    return True


def require_all_sizes_at_once(runner: SizedRunner, accepted: Mapping[str, int]) -> None:
    """Run with another size of every symbol: those `accepted`, and batches of 2 or 3. Raises RequirementViolated.

    A model may accept only some combinations, for example areas of a feature map that four divides. Then larger sizes are tried.
    """
    batch = {symbol: 2 if runner.symbols[symbol] != 2 else 3 for symbol in runner.batch}
    first: RequirementViolated | None = None
    for factor in _FACTORS if len(accepted) > 1 else _FACTORS[:1]:
        larger = {
            symbol: runner.symbols[symbol] + factor * (size - runner.symbols[symbol])
            for symbol, size in accepted.items()
        }
        sizes = {**runner.symbols, **larger, **batch}
        where = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        try:
            runner.require_run(sizes, f"{where} at once")
        except RequirementViolated as error:
            # Only a refusal may depend on the combination of sizes; wrong shapes or numbers are a fault at
            # any size.
            if not isinstance(error.__cause__, EvaluationError):
                raise
            first = first or error
            continue
        if first is not None:
            runner.notes.append(f"{first}; it does with {where}, so not every combination of sizes works")
        return
    assert first is not None
    raise first


def _require_same_batch(
    symbol: str, sizes: Mapping[str, int], values: Values, batch_axes: Mapping[str, tuple[int, int]]
) -> None:
    for name, (axis, batch) in batch_axes.items():
        shape = np.shape(values[name])
        if axis >= len(shape) or shape[axis] != batch:
            reason = (
                f"axis {axis} of output {name!r} is the batch and should stay {batch} whatever {symbol} is,"
            )
            reason += f" but at {symbol} = {sizes[symbol]} its shape is {list(shape)}"
            raise RequirementViolated(reason, name, varied={symbol}, merged_at=sizes)


def _note_fixed_axes(runner: SizedRunner, symbol: str, values: Values) -> None:
    """Note the axes of outputs that have the old length of `symbol`, and of nothing else, although `symbol` is longer here."""
    size = runner.symbols[symbol]
    others = [
        dim.dim_value for value in fed_inputs(runner.model.graph) for dim in value.type.tensor_type.shape.dim
    ]
    # The length says nothing if another dim has it too, or if it is 1.
    if size < 2 or size in others or list(runner.symbols.values()).count(size) > 1:
        return
    for output in runner.model.graph.output:
        for axis, length in enumerate(np.shape(values[output.name])):
            if length == size:
                runner.notes.append(
                    f"axis {axis} of output {output.name!r} is {size}, the original size of {symbol}, at other sizes"
                    f" of {symbol} too. If it should change with {symbol}, a constant inside the model fixes it"
                )


def prove_dynamic(
    result: Runnable,
    symbols: Mapping[str, int],
    batch: Set[str] = frozenset(),
    settings: Settings | None = None,
    *,
    keeps_cells: bool = False,
    bounds: tuple[int, int] = (0, 0),
) -> DynamicProof:
    """Run `result` in a child process at the frozen sizes (`symbols`: name to size) and at two others of each symbol.

    `bounds` are a step and a least length of images, which become conditions. With `keeps_cells`, each cell of a feature map must
    give the same numbers at a larger size, from the same features.

    For a symbol in `batch`, every item of a batch must also equal its own run. The other symbols must leave the batch unchanged.
    The proof fails if the model cannot be run, and it is not determined if time or memory runs out. The proof, not an exception,
    also reports any other failure of the model. Raises UsageError for a symbol that no input has.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    ending = settings.call(PROVE, result, dict(symbols), frozenset(batch), settings.seed, keeps_cells)
    seconds = time.perf_counter() - start
    if isinstance(ending, process.Returned):
        proof: DynamicProof = ending.value
        conditions = proof.conditions
        if proof.holds and any(bounds):
            conditions = _with_bounds(conditions, symbols.keys() - batch, *bounds)
        return replace(proof, seconds=seconds, conditions=conditions)
    if isinstance(ending, process.Raised) and ending.error is not None:
        raise ending.error
    return DynamicProof(False, interruption(ending), seconds=seconds, determined=is_crash_of_result(ending))


def _with_bounds(
    conditions: Sequence[SizeCondition], symbols: Set[str], step: int, least: int
) -> tuple[SizeCondition, ...]:
    """Return the conditions, each joined with a multiple of `step` and with `least`; symbols without one get these alone."""
    texts = [f"a multiple of {step}"] if step else []
    texts += [f"at least {least}"] if least else []
    text = " and ".join(texts)
    note = f"a table of proportions is sure at {text} only, as the model shows no other sizes of it"
    bounded: list[SizeCondition] = []
    for symbol in sorted(symbols):
        own = [condition for condition in conditions if condition.symbol == symbol]
        others = [
            condition for condition in own if not (step and condition.step and step % condition.step == 0)
        ]
        if len(others) < len(own) or not own:
            bounded.append(SizeCondition(symbol, text, note, step))
        bounded += [_bounded(condition, step, least) for condition in others]
    return (*bounded, *(condition for condition in conditions if condition.symbol not in symbols))


def _bounded(condition: SizeCondition, step: int, least: int) -> SizeCondition:
    """Return a condition together with the bounds; multiples of two numbers are those of their least common multiple."""
    multiple = math.lcm(condition.step, step)
    texts = [f"a multiple of {multiple}"] if multiple else [condition.text]
    texts += [f"a multiple of {step}"] if step and not multiple else []
    texts += [f"at least {least}"] if least else []
    return replace(condition, text=" and ".join(texts), step=multiple or condition.step)


def prove(
    result: Runnable, symbols: Mapping[str, int], batch: frozenset[str], seed: int, keeps_cells: bool = False
) -> DynamicProof:
    """Do the work of `prove_dynamic`, in whatever process this is."""
    model = result.model
    dims = (dim for value in fed_inputs(model.graph) for dim in value.type.tensor_type.shape.dim)
    symbols_of_dims = {dim.dim_param for dim in dims if dim.dim_param}
    for symbol in symbols:
        if symbol not in symbols_of_dims:
            hint = f"dims have these names: {', '.join(sorted(symbols_of_dims)) or 'none'}"
            raise UsageError(f"no input has a dim named {symbol!r}", code="unknown-symbol", hint=hint)
    declared = inputs_with_sizes(model, symbols).graph.input
    sizes = {
        value.name: tuple(dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim)
        for value in declared
    }
    obstacle = why_not_run(model, memory_limit(), sizes=sizes)
    if obstacle:
        return DynamicProof(False, f"the result was not run: {obstacle.reason}", determined=False)
    mark("result: loading")
    start_count()
    tolerance = replace(_ITEM_TOLERANCE, eps=coarsest_eps(model))
    try:
        runner = SizedRunner(result, symbols, batch, tolerance, seed)
    except EvaluationError as error:
        reason, blocker = f"the model does not load: {error}", named_blocker(model, error.node)
        return DynamicProof(False, _with(reason, blocker), blocker, determined=False)
    reason, blocker = "", None
    try:
        accepted = _require_all(runner)
        if keeps_cells and accepted:
            require_same_cells(runner, accepted)
    except EvaluationError as error:
        reason, blocker = f"the model does not run: {error}", named_blocker(model, error.node)
    except RequirementViolated as violation:
        reason, blocker = str(violation), find_blocker(runner, violation)
    trials, notes = tuple(runner.trials), tuple(runner.notes)
    return DynamicProof(
        not reason, _with(reason, blocker), blocker, trials, notes, conditions=tuple(runner.conditions)
    )


def _require_all(runner: SizedRunner) -> dict[str, int]:
    """Check the requirements in turn: frozen sizes, batches, other sizes of each symbol, other sizes of all.

    Returns a size that the model accepts of each symbol that is no batch.
    """
    values = runner.run_frozen()
    runner.notes.extend(
        f"ONNX Runtime's optimisation changes {name!r} at the original sizes already; it is compared without"
        " optimisation only"
        for name in sorted(runner.beyond_noise)
    )
    batch_axes: dict[str, tuple[int, int]] = {}
    common = common_first_axis(runner.model)
    if common is not None:
        # Without a symbol for the batch, a common first dim of all inputs is most likely the batch.
        batch_axes = {name: (0, common) for name, value in values.items() if np.shape(value)[:1] == (common,)}
    if runner.batch:
        for batch in independent_batches(runner):
            for name, axis, size in require_independent_items(runner, batch):
                batch_axes[name] = axis, size
    free = [symbol for symbol in runner.symbols if symbol not in runner.batch]
    accepted = {symbol: require_two_sizes(runner, symbol, batch_axes) for symbol in free}
    if len(runner.symbols) > 1 and accepted:
        require_all_sizes_at_once(runner, accepted)
    return accepted


def _with(reason: str, blocker: Blocker | None) -> str:
    return f"{reason}; the cause is {blocker}" if blocker is not None and blocker.operator else reason
