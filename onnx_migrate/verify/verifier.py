"""Runs original and result side by side and says whether they compute the same."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import onnx

from onnx_migrate import isolate
from onnx_migrate.errors import UsageError
from onnx_migrate.isolate import Limits, mark
from onnx_migrate.verify.comparison import Tolerance, compare, flat, noise, scale_of
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError, Evaluator, Reference, Runnable, open_model
from onnx_migrate.verify.feeds import Feed, Feeds, check_feed, make_feed, size_plans
from onnx_migrate.verify.traits import all_nodes, coarsest_eps, exposing, nudged, quantized, random_outputs
from onnx_migrate.verify.verdict import Comparison, FeedNote, Kind, Verdict

__all__ = ["check", "verify"]

_STYLES = ("normal", "wide")
_FURTHER_STYLES = ("uniform", "pixels", "small")
_RECORDED = Tolerance(rtol=1e-3, atol=1e-5)
"""For outputs recorded with the inputs, maybe by another runtime: what onnx's own backend tests allow."""


def verify(
    original: Runnable,
    result: Runnable,
    *,
    feeds: Feeds | None = None,
    tolerance: Tolerance | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    isolated: bool = True,
) -> Verdict:
    """Run both models on the same inputs, in one child process, and compare every output.

    Without `feeds` the inputs are made up (see feeds.py). Never raises for what the models do; raises
    UsageError for
    `feeds` that do not fit the original.
    """
    start = time.perf_counter()
    function = "onnx_migrate.verify.verifier:check"
    ending = isolate.run(
        function, original, result, feeds, tolerance or Tolerance(), seed, limits=limits, isolated=isolated
    )
    seconds = time.perf_counter() - start
    if isinstance(ending, isolate.Returned):
        verdict: Verdict = ending.value
        return replace(verdict, seconds=seconds)
    if isinstance(ending, isolate.Raised) and ending.error is not None:
        raise ending.error
    broken = isinstance(ending, isolate.Crashed) and ending.stage.startswith("result")
    kind = Kind.DIFFERS if broken else Kind.UNVERIFIED
    return Verdict(kind, f"{ending.stage or 'start'}: {ending}", seconds=seconds)


def check(
    original: Runnable, result: Runnable, feeds: Feeds | None, tolerance: Tolerance, seed: int
) -> Verdict:
    """Do the work of `verify`, in whatever process this is."""
    before, after = original.proto(), result.proto()
    missing = [o.name for o in before.graph.output if o.name not in {p.name for p in after.graph.output}]
    if missing:
        return Verdict(Kind.DIFFERS, f"the result has no output {missing[0]!r}")
    mark("original: loading")
    try:
        model, levels = _open_original(original, before)
    except EvaluationError as error:
        return Verdict(Kind.UNVERIFIED, f"the original does not load: {error}", node=error.node)
    mark("original: running")
    try:
        chosen = _choose(model, before, after, feeds, seed)
    except EvaluationError as error:
        return Verdict(Kind.UNVERIFIED, f"the original does not run: {error}", model.name, node=error.node)
    notes = list(chosen.notes)
    inputs = [feed.inputs for feed in chosen.feeds]
    runs: dict[str, list[dict[str, Any]]] = {levels[0]: chosen.outputs}
    try:
        heard = _Noise(chosen.outputs)
        for index, feed in enumerate(inputs):
            heard.listen(index, model.run(nudged(feed, seed)))
        del model
        for level in levels[1:]:
            mark(f"original: running, optimisation {level}")
            other = open_model(original, level)
            runs[level] = [other.run(feed) for feed in inputs]
            for index, outputs in enumerate(runs[level]):
                heard.listen(index, outputs)
            del other
    except EvaluationError as error:
        levels = levels[:1]
        notes.append(f"the original ran without optimisation only: {error}")
    tolerance = replace(tolerance, eps=coarsest_eps(before), quantum=quantized(before))
    comparisons: dict[str, Comparison] = {}
    name = ""
    skipped = random_outputs(before)
    for level in levels:
        mark(f"result: running, optimisation {level}")
        try:
            candidate = open_model(result, level)
            name = candidate.name
            for index, given in enumerate(chosen.feeds):
                outputs = candidate.run(given.inputs)
                expected = runs[level][index]
                for output, value in expected.items():
                    if output not in skipped:
                        for entry in _held(output, value, outputs[output], tolerance, heard, index):
                            comparisons[entry.output] = _worse(comparisons.get(entry.output), entry)
                if level == levels[0]:
                    for entry in _recorded(given, expected, outputs, tolerance, skipped, notes):
                        comparisons[entry.output] = _worse(comparisons.get(entry.output), entry)
            del candidate
        except EvaluationError as error:
            if level == "reference":
                return Verdict(Kind.UNVERIFIED, f"the result does not run in onnx.reference: {error}", name)
            what = "load" if error.loading else "run"
            return Verdict(
                Kind.DIFFERS,
                f"the result does not {what}: {error}",
                name,
                chosen.described,
                tuple(comparisons.values()),
                notes=tuple(notes),
                node=error.node,
            )
    if name.startswith("onnxruntime"):
        name += f" CPU, optimisation {' and '.join(levels)}"
    verdict = Verdict(
        Kind.VERIFIED, "", name, chosen.described, tuple(comparisons.values()), notes=tuple(notes)
    )
    wrong = [entry for entry in verdict.comparisons if not entry.agrees]
    if wrong:
        return replace(verdict, kind=Kind.DIFFERS, reason=f"output {wrong[0].output!r}: {wrong[0].problem}")
    if skipped:
        output, operator = next(iter(skipped.items()))
        return replace(
            verdict, kind=Kind.UNVERIFIED, reason=f"output {output!r} depends on {operator}, which is random"
        )
    if heard.unstable:
        unstable = sorted(heard.unstable)[0]
        reason = f"the shape of output {unstable!r} changes when an input moves by one unit in the last place"
        return replace(verdict, kind=Kind.UNVERIFIED, reason=reason)
    if chosen.degenerate:
        return _look_inside(verdict, original, result, before, after, inputs[0], tolerance, seed)
    return verdict


def _open_original(original: Runnable, proto: onnx.ModelProto) -> tuple[Evaluator, tuple[str, ...]]:
    try:
        return open_model(original, LEVELS[0]), LEVELS
    except EvaluationError as error:
        if any(node.op_type in Reference.UNTRUSTED for node in all_nodes(proto)):
            raise
        try:
            return open_model(original, "reference"), ("reference",)
        except EvaluationError as second:
            raise error from second


@dataclass
class _Chosen:
    """The feeds that the original runs on, and what it gave."""

    feeds: list[Feed]
    outputs: list[dict[str, Any]]
    seed: int | None
    degenerate: bool = False
    notes: tuple[str, ...] = ()

    @property
    def described(self) -> tuple[FeedNote, ...]:
        return tuple(
            FeedNote(feed.name, self.seed, tuple((n, _shape(v)) for n, v in feed.inputs.items()))
            for feed in self.feeds
        )


def _choose(
    model: Evaluator, before: onnx.ModelProto, after: onnx.ModelProto, feeds: Feeds | None, seed: int
) -> _Chosen:
    if feeds is not None:
        sets = [check_feed(before, feed) for feed in feeds.sets]
        chosen = _Chosen(sets, [model.run(feed.inputs) for feed in sets], None)
    else:
        chosen = _made_up(model, before, after, seed)
    telling = _told(chosen.outputs)
    silent = [name for name, tells in telling.items() if not tells]
    if silent:
        which = ", ".join(repr(name) for name in silent[:5])
        chosen.notes = (f"weak proof: constant, saturated, empty or NaN for every input tried: {which}",)
        chosen.degenerate = len(silent) == len(telling)
    return chosen


def _made_up(model: Evaluator, before: onnx.ModelProto, after: onnx.ModelProto, seed: int) -> _Chosen:
    first: EvaluationError | None = None
    for plan in size_plans(before):
        try:
            values = make_feed(before, after, plan, _STYLES[0], seed)
        except UsageError as error:
            raise EvaluationError(error.reason) from error
        if values is None:
            continue
        try:
            outputs = model.run(values)
        except EvaluationError as error:
            first = first or error
            continue
        chosen = _Chosen([Feed(_STYLES[0], values)], [outputs], seed)
        for style in (*_STYLES[1:], *_FURTHER_STYLES):
            telling = sum(all(_told([run]).values()) for run in chosen.outputs)
            if style in _FURTHER_STYLES and telling >= len(_STYLES):
                break
            values = make_feed(before, after, plan, style, seed)
            if values is None:
                continue
            try:
                outputs = model.run(values)
            except EvaluationError as error:
                chosen.notes += (f"the original does not run on {style} inputs: {error}",)
                continue
            chosen.feeds.append(Feed(style, values))
            chosen.outputs.append(outputs)
        return chosen
    raise first or EvaluationError("no inputs of a bearable size could be made up")


def _told(runs: list[dict[str, Any]]) -> dict[str, bool]:
    """Say for each output whether some run gave values that neither are one constant nor saturated."""
    telling: dict[str, bool] = {}
    for outputs in runs:
        for name, value in outputs.items():
            telling[name] = telling.get(name, False) or any(_varies(array) for _, array in flat(name, value))
    for name, tells in telling.items():
        if not tells:
            arrays = [[part for _, part in flat(name, outputs[name])] for outputs in runs]
            telling[name] = any(_moved(a, b) for a, b in pairwise(arrays))
    return telling


def _varies(array: Any) -> bool:
    if array is None or array.size == 0:
        return False
    if array.dtype.kind not in "f":
        return bool(np.any(array != array.flat[0]))
    finite = array[np.isfinite(array)].astype(np.float64)
    if finite.size == 0:
        return False
    reach = np.ptp(finite)
    if not reach > 64 * np.finfo(array.dtype).eps * np.max(np.abs(finite)):
        return False
    place = (finite - finite.min()) / reach
    # Nothing but two values is a Softmax or Sigmoid at its ends, which hides all that stands before it.
    return finite.size <= 2 or bool(np.any((place > 1e-4) & (place < 1 - 1e-4)))


def _moved(one: list[Any], other: list[Any]) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    return len(one) != len(other) or any(
        a.shape != b.shape or _varies(np.stack([np.resize(a, 1), np.resize(b, 1)]))
        for a, b in pairs
        if a.size and b.size
    )


class _Noise:
    """How much each output of the original moves by rounding alone."""

    def __init__(self, outputs: list[dict[str, Any]]) -> None:
        self._outputs = outputs
        self._heard: dict[tuple[str, int], float] = {}
        self._scales: dict[str, float] = {}
        for run in outputs:
            for name, value in run.items():
                for part, array in flat(name, value):
                    self._scales[part] = max(self._scales.get(part, 0.0), scale_of(array))
        self.unstable: set[str] = set()

    def listen(self, index: int, again: Mapping[str, Any]) -> None:
        for name, value in self._outputs[index].items():
            here, there = flat(name, value), dict(flat(name, again[name]))
            for part, array in here:
                other = there.get(part)
                if array is None or other is None or array.shape != other.shape:
                    if (array is None) != (other is None) or (array is not None and other is not None):
                        self.unstable.add(name)
                    continue
                key = part, index
                self._heard[key] = max(self._heard.get(key, 0.0), noise(array, other))

    def scale(self, part: str) -> float:
        return self._scales[part]

    def of(self, part: str, index: int) -> float:
        return self._heard.get((part, index), 0.0)


def _held(
    output: str, before: Any, after: Any, tolerance: Tolerance, heard: _Noise, index: int
) -> list[Comparison]:
    if output in heard.unstable:
        return []
    here, there = flat(output, before), flat(output, after)
    if [name for name, _ in here] != [name for name, _ in there]:
        return [Comparison(output, None, None, "container", "container", problem="holds other elements")]
    entries = []
    for (part, a), (_, b) in zip(here, there, strict=True):
        level = heard.of(part, index)
        entries.append(compare(part, a, b, tolerance, level, heard.scale(part), jumps=level == float("inf")))
    return entries


def _recorded(
    feed: Feed,
    before: dict[str, Any],
    after: dict[str, Any],
    tolerance: Tolerance,
    skipped: Mapping[str, str],
    notes: list[str],
) -> list[Comparison]:
    """Hold the result against the outputs the user recorded, unless the original does not give them."""
    given = tolerance.rtol is not None or tolerance.atol is not None
    allowed = tolerance if given else replace(_RECORDED, quantum=tolerance.quantum)
    entries = []
    for output, value in feed.expected.items():
        if output in skipped:
            continue
        if compare(output, np.asarray(value), before[output], allowed).problem:
            notes.append(f"{feed.name}: the original itself does not give the recorded output {output!r}")
            continue
        entry = compare(output, np.asarray(value), after[output], allowed)
        entries.append(replace(entry, output=f"{output} (recorded)"))
    return entries


def _worse(one: Comparison | None, other: Comparison) -> Comparison:
    if one is None:
        return other
    first = (
        one
        if (bool(one.problem), one.largest_relative) >= (bool(other.problem), other.largest_relative)
        else other
    )
    return replace(first, differing=max(one.differing, other.differing))


def _shape(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, np.ndarray) else None


def _look_inside(
    verdict: Verdict,
    original: Runnable,
    result: Runnable,
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    feed: Mapping[str, Any],
    tolerance: Tolerance,
    seed: int,
) -> Verdict:
    """Outputs that never vary prove nothing: compare the inner values that both models name the same."""
    if verdict.evaluator.startswith("onnx.reference"):
        return verdict
    theirs = {name for node in after.graph.node for name in node.output if name}
    shared = [
        n
        for node in before.graph.node
        if node.op_type not in ("Constant", "Dropout")
        for n in node.output
        if n in theirs
    ]
    mark("inner values")
    try:
        ours = open_model(exposing(original, shared), "off")
        first, moved = ours.run(feed), ours.run(nudged(feed, seed))
        del ours
        values = open_model(exposing(result, shared), "off").run(feed)
    except EvaluationError as error:
        return replace(verdict, notes=(*verdict.notes, f"inner values could not be compared: {error}"))
    heard = _Noise([first])
    heard.listen(0, moved)
    for name in shared:
        for entry in _held(name, first[name], values[name], tolerance, heard, 0):
            if not entry.agrees:
                reason = "the outputs are constant or saturated whatever the input is, "
                reason += f"and the inner value {name!r} differs: "
                return replace(verdict, kind=Kind.UNVERIFIED, reason=reason + entry.problem)
    count = (
        f"{len(shared)} inner values of the same name agree as well"
        if shared
        else "no inner value has kept its name"
    )
    return replace(verdict, notes=(*verdict.notes, count))
