"""What original and result compute for the inner values that both have by the same name.

Differences of earlier nodes do not reach a value where both models are cut at the values before it: each is then
computed from what the original computes for those. Rounding cannot add up, and a fault shows at its own node. Without
cuts each model computes its values from the inputs, as it does for its outputs.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onnx_migrate.process import mark
from onnx_migrate.verify.compare.arrays import Array, is_float
from onnx_migrate.verify.compare.comparison import bit_difference
from onnx_migrate.verify.equivalence.common_values import ValueTypes, chunks, masked_values, spread
from onnx_migrate.verify.equivalence.cut_model import CutModel, Reads
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.original_run import OriginalRun
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.run_count import begin_run

__all__ = ["Pair", "computed_by_both", "masked_difference", "recorded_difference"]

_MEMORY = 1 << 28
"""How many bytes of inner values are made outputs of a model in one run, by the sizes that inference finds."""

Pair = tuple[str, Any, Any]
"""The name of a value, and what original and result compute for it."""


def computed_by_both(
    original: Runnable,
    result: Runnable,
    parts: Sequence[Sequence[str]],
    feeds: Sequence[Mapping[str, Any]],
    cuts: Collection[str] = (),
) -> Iterator[Pair]:
    """Run both models, without optimisation, for the values of each part in turn, on each feed.

    `cuts` are those at which both are cut, as far as they are floats or bytes when they are computed; only these are then
    yielded. Raises EvaluationError.
    """
    what = "value by value" if cuts else "inner values"
    cut_models = (original, result) if cuts else (result,)
    cut = frozenset(cuts)
    reads = Reads(original.model, cut), Reads(result.model, cut)
    boundaries = [{name for side in reads for name in side.by(part)}.difference(part) for part in parts]
    known: list[dict[str, Array]] = [{} for _ in feeds]  # of each feed, what later parts are computed from
    for position, (part, boundary) in enumerate(zip(parts, boundaries, strict=True)):
        given = {name: value for name, value in known[0].items() if name in boundary}
        exposed = CutModel(original, given, part)
        later = set().union(*boundaries[position + 1 :])
        models: list[CutModel] = []
        for index, feed in enumerate(feeds):
            mark(f"original: running, {what}")
            begin_run(what)
            run = {**known[index], **exposed.run({**feed, **known[index]})}
            values = {
                name: run[name] for name in (*boundary, *part) if name in cut and _is_cut(run.get(name))
            }
            known[index] = {name: value for name, value in run.items() if name in later and _is_cut(value)}
            wanted = [name for name in part if name in values] if cuts else part
            models = models or [CutModel(model, values, wanted) for model in cut_models]
            inputs = {**feed, **values}
            ours = models[0].run(inputs) if cuts else run
            del run
            mark(f"result: running, {what}")
            begin_run(what)
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
) -> tuple[str, tuple[str, ...]]:
    """Compare bit for bit the inner values that later nodes may mask, on the first feed, until `seconds` have passed.

    Those in `known` were compared before. Returns the first difference, "" if there is none, and notes. Values are taken in
    several runs, each spread over the whole model, as memory allows; in none where one run takes long.
    """
    start, difference = time.perf_counter(), ""
    names = masked_values(original.model, result.model)
    left = [name for name in names if name not in known]
    feed = run.feeds[0].inputs
    parts = chunks(spread(left), ValueTypes(original.model, feed), _MEMORY) if left else []
    done = len(names) - len(left)
    if parts and run.expensive:
        return "", (_limit_note(done, len(names)),)
    for index, part in enumerate(parts):
        try:
            difference = _first_bit_difference(computed_by_both(original, result, [part], [feed]))
        except (EvaluationError, MemoryError) as error:
            text = f"bit-identity of inner values was not checked, because with them as outputs a model fails: {error}"
            return "", (text,)
        if difference:
            break
        done += len(part)
        spent = time.perf_counter() - start
        if index + 1 < len(parts) and spent * (index + 2) / (index + 1) > seconds:
            return "", (_limit_note(done, len(names)),)
    return difference, ()


def _limit_note(done: int, count: int) -> str:
    return f"bit-identity was checked for {done} of {count} inner values, as time was limited"


def recorded_difference(
    original: Runnable, result: Runnable, recorded: Mapping[str, Any], values: Values
) -> tuple[str, set[str]]:
    """Compare the inner values that were recorded in the first run of the original and are in `values`, that of the result.

    Returns the first difference, "" if there is none, and the names that were compared.
    """
    names = [
        name for name in masked_values(original.model, result.model) if name in recorded and name in values
    ]
    return _first_bit_difference((name, recorded[name], values[name]) for name in names), set(names)


def _first_bit_difference(pairs: Iterable[Pair]) -> str:
    """Describe the first value, of those that are floats, that is not bit for bit the same; "" if all are."""
    floats = (pair for pair in pairs if isinstance(pair[1], np.ndarray) and is_float(pair[1]))
    return next(filter(None, (bit_difference(*pair) for pair in floats)), "")
