"""Runs original and result for the inner values that both have under the same name.

Both models may be cut at the values before a value. Each model then computes it from the original's numbers for those values. So
differences of earlier nodes do not reach it: rounding cannot add up, and a fault shows at its own node. Without cuts each model
computes its values from the inputs, like its outputs.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from onnx_migrate.model.graphs import fed_inputs, names_read, producers
from onnx_migrate.process import mark
from onnx_migrate.verify.compare.bits import bit_difference, tells_zeros_apart
from onnx_migrate.verify.equivalence.common_values import ValueTypes, chunks, masked_values, shapes_of, spread
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.original_run import OriginalRun
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.kernel.arrays import Array, is_float
from onnx_migrate.verify.model_traits import needed_nodes
from onnx_migrate.verify.run_count import begin_run

__all__ = ["CutModel", "Pair", "Reads", "computed_by_both", "masked_difference", "recorded_difference"]


_COMPUTED = " (computed)"
"""Suffix of the name of a value that the model computes while other nodes read the given one."""


class CutModel:
    """A model that computes the values `wanted`, each from the inputs and from the given `values` of others."""

    def __init__(self, runnable: Runnable, values: Mapping[str, Array], wanted: Sequence[str]) -> None:
        model = runnable.proto()
        graph = model.graph
        # The node still computes the value, under another name; its readers get the value that is fed.
        for node in graph.node:
            for index, name in enumerate(node.output):
                if name in values:
                    node.output[index] = name + _COMPUTED
        results = [name + _COMPUTED if name in values else name for name in wanted]
        part_nodes = needed_nodes(graph.node, results)
        # Only inputs that the remaining nodes read may be fed.
        read = {name for node in part_nodes for name in names_read(node)}
        inputs = [value for value in graph.input if value.name in read]
        inputs += [_input(name, value) for name, value in values.items() if name in read]
        constants = [tensor for tensor in graph.initializer if tensor.name in read]
        sparse = [tensor for tensor in graph.sparse_initializer if tensor.values.name in read]
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        shapes = [value for value in graph.value_info if value.name not in values]
        cut = onnx.GraphProto(
            name=graph.name, node=part_nodes, input=inputs, output=outputs, initializer=constants,
            sparse_initializer=sparse, value_info=shapes,
        )  # fmt: skip
        graph.CopyFrom(cut)
        self._inputs = {value.name for value in fed_inputs(graph)}
        self._evaluator = open_model(runnable.with_structure(model), UNOPTIMIZED) if wanted else None

    def run(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted values, computed from those that the model reads of the given ones."""
        if self._evaluator is None:
            return {}
        outputs = self._evaluator.run({name: value for name, value in given.items() if name in self._inputs})
        return {name.removesuffix(_COMPUTED): value for name, value in outputs.items()}


class Reads:
    """Which of the values at which a model is cut each other is computed from."""

    def __init__(self, model: onnx.ModelProto, cuts: Collection[str]) -> None:
        self._producers = producers(model.graph)
        self._cuts = set(cuts)

    def by(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the cuts that these values are computed from, each without passing another cut."""
        return (name for name in self.all_by(names) if name in self._cuts)

    def all_by(self, names: Sequence[str]) -> Iterator[str]:
        """Yield all values that these are computed from, up to the next cuts."""
        seen = set(names)
        stack = list(names)
        while stack:
            node = self._producers.get(stack.pop())
            for name in names_read(node) if node is not None else ():
                if name in seen:
                    continue
                seen.add(name)
                yield name
                # A cut is itself compared, so nothing beyond it matters.
                if name not in self._cuts:
                    stack.append(name)


def _input(name: str, value: Array) -> onnx.ValueInfoProto:
    """Declare an input of this value's type and rank, with open lengths: another feed may have others."""
    element = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return onnx.helper.make_tensor_value_info(name, element, [None] * value.ndim)


_MEMORY = 1 << 28
"""How many bytes of inner values are made outputs of a model in one run, by the sizes that inference finds."""

Pair = tuple[str, Any, Any]
"""The name of a value, and the numbers that original and result compute for it."""


def computed_by_both(
    original: Runnable,
    result: Runnable,
    parts: Sequence[Sequence[str]],
    feeds: Sequence[Mapping[str, Any]],
    cuts: Collection[str] = (),
    outputs: Collection[str] = (),
) -> Iterator[Pair]:
    """Run both models, without optimisation, for the values of each part in turn, on each feed.

    `cuts` are the values at which both models are cut, if they turn out to be floats or bytes. With cuts, the function yields
    only such values and the `outputs`, which may have any type. Raises EvaluationError.
    """
    stage = "value by value" if cuts else "inner values"
    # Without cuts, the original computes all values in one run.
    cut_models = (original, result) if cuts else (result,)
    cut = frozenset(cuts)
    reads = Reads(original.model, cut), Reads(result.model, cut)
    # A part reads values of earlier parts, which are not computed again.
    boundaries = [{name for side in reads for name in side.by(part)}.difference(part) for part in parts]
    values_by_feed: list[dict[str, Array]] = [
        {} for _ in feeds
    ]  # for each feed, the values that later parts read
    for position, (part, boundary) in enumerate(zip(parts, boundaries, strict=True)):
        fed_values = {name: value for name, value in values_by_feed[0].items() if name in boundary}
        exposed = CutModel(original, fed_values, part)
        # Values that no later part reads free their memory.
        later = set().union(*boundaries[position + 1 :])
        models: list[CutModel] = []
        for index, feed in enumerate(feeds):
            mark(f"original: running, {stage}")
            begin_run(stage)
            run = {**values_by_feed[index], **exposed.run({**feed, **values_by_feed[index]})}
            values = {
                name: run[name] for name in (*boundary, *part) if name in cut and _is_cut(run.get(name))
            }
            values_by_feed[index] = {
                name: value for name, value in run.items() if name in later and _is_cut(value)
            }
            wanted = [name for name in part if name in values or name in outputs] if cuts else part
            # The models are the same for all feeds.
            models = models or [CutModel(model, values, wanted) for model in cut_models]
            inputs = {**feed, **values}
            ours = models[0].run(inputs) if cuts else run
            # The values of the original may be large, and the result's run needs the memory.
            del run
            mark(f"result: running, {stage}")
            begin_run(stage)
            theirs = models[-1].run(inputs)
            for name in wanted:
                yield name, ours[name], theirs[name]


def _is_cut(value: object) -> bool:
    """Whether a model is cut at a value: floats, and bytes, which a quantised model computes with."""
    if not isinstance(value, np.ndarray):
        return False
    return value.dtype.kind == "f" or value.dtype in (np.int8, np.uint8)


def masked_difference(
    original: Runnable, result: Runnable, run: OriginalRun, known: Collection[str], seconds: float
) -> tuple[str, str]:
    """Compare bit for bit, on the first feed, the inner values that later nodes may mask, for at most `seconds`.

    Those in `known` were compared before. Returns the first difference and a note, each "" if there is none. Several runs, each
    with values from all over the model, fit the values into memory. If one run takes long, no values are compared.
    """
    start, difference, zeros = time.perf_counter(), "", tells_zeros_apart(original.model)
    names = masked_values(original.model, result.model)
    unknown_names = [name for name in names if name not in known]
    feed = run.feeds[0].inputs
    parts = (
        chunks(spread(unknown_names), ValueTypes(original.model, shapes_of(feed)), _MEMORY)
        if unknown_names
        else []
    )
    # The next part may exceed the time, judged by the mean of the parts so far.
    compared_count = len(names) - len(unknown_names)
    if parts and run.expensive:
        return "", _limit_note(compared_count, len(names))
    for index, part in enumerate(parts):
        try:
            pairs = computed_by_both(original, result, [part], [feed])
            difference = _first_bit_difference(pairs, zeros=zeros)
        except (EvaluationError, MemoryError) as error:
            text = f"bit-identity of inner values was not checked, because with them as outputs a model fails: {error}"
            return "", text
        if difference:
            break
        compared_count += len(part)
        spent = time.perf_counter() - start
        # One more part takes as long as the mean of the parts before.
        if index + 1 < len(parts) and spent * (index + 2) / (index + 1) > seconds:
            return "", _limit_note(compared_count, len(names))
    return difference, ""


def _limit_note(done: int, count: int) -> str:
    return f"of {count} inner values, {done} were compared bit for bit, because time was limited"


def recorded_difference(
    original: Runnable, result: Runnable, recorded: Mapping[str, Any], values: Values
) -> tuple[str, set[str]]:
    """Compare the inner values that were recorded in the first run of the original and are in `values`, that of the result.

    Returns the first difference, "" if there is none, and the names that were compared.
    """
    names = [
        name for name in masked_values(original.model, result.model) if name in recorded and name in values
    ]
    pairs = ((name, recorded[name], values[name]) for name in names)
    return _first_bit_difference(pairs, zeros=tells_zeros_apart(original.model)), set(names)


def _first_bit_difference(pairs: Iterable[Pair], *, zeros: bool) -> str:
    """Describe the first value, of those that are floats, that has other bits; "" if none has.

    With `zeros` unset, 0 and -0 count as the same.
    """
    floats = (pair for pair in pairs if isinstance(pair[1], np.ndarray) and is_float(pair[1]))
    return next(filter(None, (bit_difference(*pair, zeros=zeros) for pair in floats)), "")
