"""Checks that a model computes every item of a batch in the same way as that item alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onnx_migrate.advice import untried
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.dynamic.declared_shapes import axes_with_symbol, batch_axes_of, copies_of, item_of
from onnx_migrate.verify.dynamic.sized_runs import RequirementViolated, SizedRunner, Values
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.constraints.value_ranges import padding_ids
from onnx_migrate.verify.kernel.arrays import Array
from onnx_migrate.verify.model_traits import dependents

__all__ = ["independent_batches", "require_independent_items"]

_OWN_BATCHES = untried("if inputs have batches of their own, give each another name")


def independent_batches(runner: SizedRunner) -> list[frozenset[str]]:
    """Return the batch symbols in groups that must have one size: each alone if the model runs so, else all together."""
    symbols = sorted(runner.batch)
    if len(symbols) == 1:
        return [runner.batch]
    try:
        runner.run({symbol: size for size, symbol in enumerate(symbols, 2)})
    except EvaluationError:
        runner.trials.pop()  # the model need not run at different sizes
        runner.notes.append(
            f"{' and '.join(symbols)} are one batch: the model runs only where they are equal"
        )
        return [runner.batch]
    return [frozenset({symbol}) for symbol in symbols]


def require_independent_items(runner: SizedRunner, batch: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Run batches of two sizes, run each of their items alone, and require equal outputs.

    Yields the outputs that depend on the batch, each with its batch axis and the frozen size. Yields none of them if the symbols
    of `batch` were frozen at different sizes. Raises RequirementViolated.
    """
    model = runner.model
    batched = {value.name for value in fed_inputs(model.graph) if axes_with_symbol(value, batch)}
    dependent = dependents(model, batched)
    frozen = {runner.symbols[symbol] for symbol in batch}
    # At the frozen size, a dim that stayed frozen would look like the batch.
    sizes = [size for size in (2, 3, 5) if size not in frozen][:2]
    runs = {size: runner.require_run(dict.fromkeys(batch, size), f"a batch of {size}") for size in sizes}
    (few, (_, first)), (many, (_, second)) = runs.items()
    padded = _padded(runner, few, batch, first)
    for output in model.graph.output:
        name = output.name
        if name not in dependent:
            batch_inputs = "inputs that have a batch axis" if batch == runner.batch else ", ".join(batch)
            runner.notes.append(f"output {name!r} does not depend on {batch_inputs}")
            continue
        declared = axes_with_symbol(output, batch)
        axis = _batch_axis(name, declared, np.shape(first[name]), np.shape(second[name]), few, many)
        compared = {name: axis}
        if name in runner.masked:
            inner = runner.masked[name]
            axes = batch_axes_of(np.shape(first[inner]), np.shape(second[inner]), few, many)
            compared |= {inner: axis if axis in axes else axes[0]} if axes else {}
        for size, (feed, values) in (*runs.items(), *padded):
            for value, along in compared.items():
                parts = [np.take(values[value], [index], along) for index in range(size)]
                _require_same_items(runner, batch, feed, value, parts, along)
        if len(frozen) == 1:
            yield name, axis, next(iter(frozen))


def _padded(
    runner: SizedRunner, size: int, batch: frozenset[str], like: Values
) -> list[tuple[int, tuple[Values, Values]]]:
    """Return a run of texts of different lengths, which end with the id that pads them, if the model looks for one.

    Not every model runs on those: some need as many such ids in each item, or have outputs whose shapes depend on them.
    """
    if not padding_ids(runner.model):
        return []
    try:
        run = runner.run(dict.fromkeys(batch, size), padding=True)
    except EvaluationError:
        # A model need not run on padded texts, so the report must not show this refusal.
        runner.trials.pop()
        return []
    return [(size, run)] if all(np.shape(run[1][name]) == np.shape(like[name]) for name in like) else []


def _batch_axis(
    output: str, declared: list[int], a: tuple[int, ...], b: tuple[int, ...], few: int, many: int
) -> int:
    """Return the batch axis of an output that has shape `a` for `few` items and `b` for `many`.

    If several axes fit, the declared batch axis decides.
    """
    axes = batch_axes_of(a, b, few, many)
    named = [axis for axis in declared if axis in axes]
    if len(named or axes) == 1:
        return (named or axes)[0]
    if a == b:
        raise RequirementViolated(
            f"output {output!r} has shape {list(a)} for every size of the batch", output
        )
    shapes = f"{list(a)} for {few} items and {list(b)} for {many}"
    if len(axes) > 1:
        reason = f"output {output!r} combines every item of a batch with every other: its shape is {shapes}"
        raise RequirementViolated(f"{reason}; {_OWN_BATCHES}")
    raise RequirementViolated(
        f"no axis of output {output!r} is as long as the batch: its shape is {shapes}", output
    )


def _require_same_items(
    runner: SizedRunner, batch: frozenset[str], feed: Values, name: str, parts: list[Array], axis: int
) -> None:
    """Require that a value of a batch consists, along an axis, of these parts, and that each equals the run of its item alone."""
    size = len(parts)
    for index, part in enumerate(parts):
        alone = item_of(runner.model, feed, index, batch)
        single = runner.run_item(alone)[name]
        comparison = f"between item {index} of a batch of {size} and a run of that item alone"
        try:
            runner.require_same(name, single, part, alone, comparison)
        except RequirementViolated:
            # The runtime may round a batch of this size differently, so copies of the item show whether other
            # items matter.
            copies = runner.run_item(copies_of(runner.model, alone, size, batch))[name]
            if not runner.differ_by_size_only(name, single, np.take(copies, [index], axis), part, alone):
                raise
