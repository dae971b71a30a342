"""Whether a model runs at other sizes of a dim that is no batch, with its batch unchanged."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.dynamic.sized_runs import RequirementViolated, SizedRunner, Values
from onnx_migrate.verify.evaluators import EvaluationError

__all__ = ["require_all_sizes_at_once", "require_two_sizes"]

_INCREMENTS = (1, 32, 64, 33, 128, 2)
"""What is added to a frozen size, in turn, until two sizes run: networks with strides accept only some sizes, and
tables of positions are only a little longer than the frozen size."""

_STEPS = (2, 3, 4, 8, 16, 32, 64)
"""Distances between sizes that networks with strides accept."""


def require_two_sizes(
    runner: SizedRunner, symbol: str, batch_axes: Mapping[str, tuple[int, int]], notes: list[str]
) -> int:
    """Run at two other sizes of `symbol`, with the batch unchanged, and return the larger. Raises RequirementViolated.

    `batch_axes` holds by output its batch axis and how long that must be.
    """
    accepted: list[int] = []
    refused: list[str] = []
    last: EvaluationError | None = None
    for increment in _INCREMENTS:
        sizes = {**runner.symbols, symbol: runner.symbols[symbol] + increment}
        try:
            _, values = runner.run(sizes)
        except EvaluationError as error:
            last = error
            refused.append(str(sizes[symbol]))
            continue
        _require_same_batch(symbol, sizes, values, batch_axes)
        accepted.append(sizes[symbol])
        if len(accepted) == 2:
            break
    if len(accepted) < 2:
        node = last.node if last else ""
        raise RequirementViolated(
            f"the model does not run with {symbol} = {' or '.join(refused)}: {last}", node=node
        )
    _note_fixed_axes(runner, symbol, values, notes)
    if refused:
        which = f"{symbol} = {', '.join(refused)}"
        notes.append(
            f"the model does not run at {which}; it does {_accepted_sizes(runner, symbol, accepted, refused)}"
        )
    return max(accepted)


def _accepted_sizes(runner: SizedRunner, symbol: str, accepted: list[int], refused: list[str]) -> str:
    """Return at which sizes of `symbol` the model runs, as far as some more runs show it."""
    frozen = runner.symbols[symbol]
    found = f"at {' and '.join(map(str, accepted))}"
    least = min(map(int, refused))
    if least > max(accepted):
        low, high = max(accepted), least
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _runs(runner, symbol, middle) else (low, middle)
        return f"up to {low}"
    for step in _STEPS:
        if _runs(runner, symbol, frozen + step):
            if all(_runs(runner, symbol, frozen + count * step) for count in (2, 3)):
                return f"{found}, in steps of {step}"
            break
    return found


def _runs(runner: SizedRunner, symbol: str, size: int) -> bool:
    try:
        runner.run({**runner.symbols, symbol: size})
    except EvaluationError:
        return False
    return True


def require_all_sizes_at_once(runner: SizedRunner, accepted: Mapping[str, int]) -> None:
    """Run with another size of every symbol: those `accepted`, and batches of 2 or 3. Raises RequirementViolated."""
    sizes = {**runner.symbols, **accepted}
    sizes |= {symbol: 2 if runner.symbols[symbol] != 2 else 3 for symbol in runner.batch}
    try:
        runner.run(sizes)
    except EvaluationError as error:
        where = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        raise RequirementViolated(
            f"the model does not run with {where} at once: {error}", node=error.node
        ) from error


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


def _note_fixed_axes(runner: SizedRunner, symbol: str, values: Values, notes: list[str]) -> None:
    """Note the outputs' axes that are as long as `symbol` was, and nothing else was, although that is longer here."""
    size = runner.symbols[symbol]
    others = [
        dim.dim_value for value in fed_inputs(runner.model.graph) for dim in value.type.tensor_type.shape.dim
    ]
    if size < 2 or size in others or list(runner.symbols.values()).count(size) > 1:
        return
    for output in runner.model.graph.output:
        for axis, length in enumerate(np.shape(values[output.name])):
            if length == size:
                notes.append(
                    f"axis {axis} of output {output.name!r} is {size}, the original size of {symbol}, at other sizes"
                    f" of {symbol} too: if it should change with {symbol}, a constant inside the model fixes it"
                )
