"""Collects the findings on a result, output by output, and derives the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_migrate.advice import untried
from onnx_migrate.verdicts import Comparison, Kind, OutputMetrics, Verdict
from onnx_migrate.verify.compare.by_tensor import worse_than
from onnx_migrate.verify.compare.informative import VARYING_INPUTS
from onnx_migrate.verify.compare.metrics import Metrics
from onnx_migrate.verify.compare.spread import with_spread
from onnx_migrate.verify.equivalence.original_run import OriginalRun
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.kernel import Observation, Tolerance, decide, judge
from onnx_migrate.verify.kernel.decision import Coverage
from onnx_migrate.verify.tolerances import tolerance_for

__all__ = ["OTHER_RUNTIME", "Findings"]

OTHER_RUNTIME = Tolerance(rtol=1e-3, atol=1e-5)
"""Limits of onnx's own backend tests, for expected outputs that another runtime computed."""


class Findings:
    """Collects the largest difference of each output between original and result, and derives the verdict.

    Outputs in `random`, a mapping to the random operator, are not compared. `exact` is whether the model that must have the
    original's bits has them, as far as compared. It is None before that, and if no model must. `own_rounding` is whether the
    runtime's own rounding explains a difference in bits. `differing` has the positions of feeds on which an output of the result
    is not bit for bit the original's without optimisation. For a `simplified` result, `moved` are the outputs that simplification
    moves too far. `eps` is the eps of the coarsest type, if the user asked for other numbers. `coarsest` is the eps of the
    coarsest type that the original computes with. With `measured` the verdict has the metrics of the outputs.
    """

    def __init__(
        self,
        original: OriginalRun,
        tolerance: Tolerance,
        random: Mapping[str, str],
        *,
        simplified: bool = False,
        eps: float = 0.0,
        coarsest: float = 0.0,
        measured: bool = False,
    ) -> None:
        self.original = original
        self.notes = list(original.notes)
        self.exact: bool | None = None
        self.own_rounding = False
        self.differing: set[int] = set()
        self.simplified, self.eps = simplified, eps
        self.moved: list[tuple[int, str, Any]] = []
        self._identical: set[tuple[int, str]] = set()
        """Positions of feeds and outputs that are bit for bit the original's without optimisation."""
        self._tolerance = tolerance
        self._optimised = replace(tolerance, eps=max(tolerance.eps, coarsest))
        """For outputs that are bit for bit the same without optimisation: the optimiser computes halves in float32, or not."""
        self._random = random
        self._found: dict[str, Comparison] = {}
        self._inner: dict[str, tuple[str, str, str]] = {}
        """By entry of an inner value: the output downstream, and the value's name in the original and in the result."""
        self._covered: dict[str, Coverage] = {}
        """How much of each output was compared, either the output or an inner value that replaces it."""
        self._unpaired: tuple[str, ...] = ()
        self._bit_difference = ""
        self._value_difference = ""
        self._worse = ""
        self._fault = ""
        self._metrics: dict[str, Metrics] | None = {} if measured else None
        """The figures of each configuration, None if nobody wants them."""

    def compare(
        self, configuration: str, index: int, values: Mapping[str, Any], pairs: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Compare the result's outputs on feed `index`, and inner values by pairs of the original's name and the result's."""
        expected = self.original.runs[configuration][index]
        left_out = {*self.original.upstream.inner, *self._random}
        for output, before in expected.items():
            if output not in left_out:
                after = values[output]
                if self._metrics is not None and not self.original.feeds[index].corner:
                    self._metrics.setdefault(configuration, Metrics()).add(output, before, after)
                optimised = configuration != self.original.first
                lenient = optimised and (index, output) in self._identical
                tolerance = self._optimised if lenient else self._tolerance
                entries = self._judged(output, output, before, after, index, tolerance)
                if optimised:
                    entries = self._without_rare_steps(entries, output, before, after, index)
                elif all(entry.identical for entry in entries):
                    self._identical.add((index, output))
                else:
                    self.differing.add(index)
                    if self.simplified and worse_than(before, before, after, self.eps):
                        self.moved.append((index, output, after))
                self._enter(entries)
        for inner, counterpart in pairs:
            if inner not in expected:
                continue
            value, names = _written_like(values[counterpart], expected[inner]), self.original.upstream.names
            downstream = next(output for output, above in names.items() if inner in above)
            for entry in self._judged(downstream, inner, expected[inner], value, index, self._tolerance):
                pair = downstream, inner, counterpart
                name = f"{entry.output} (inner)"
                if (
                    self._inner.get(name, pair)[1:] != pair[1:]
                ):  # upstream of another output, it is paired with another value
                    name = f"{entry.output} (inner, {counterpart} in the result)"
                self._inner[name] = pair
                self._enter([replace(entry, output=name)])

    def _judged(
        self, output: str, value: str, original: Any, result: Any, index: int, tolerance: Tolerance
    ) -> list[Comparison]:
        """Compare an output, or an inner value that replaces it, and count how much of it was compared."""
        allowed = tolerance_for(tolerance, output)
        judged = self.original.noise.judged(value, original, result, index, allowed)
        for _, part in judged:
            self._covered[output] = self._covered.get(output, Coverage()) + part
        return [entry for entry, _ in judged]

    def _without_rare_steps(
        self, entries: list[Comparison], output: str, expected: Any, value: Any, index: int
    ) -> list[Comparison]:
        """Accept rare steps of a quantised model in an output that is bit for bit the original's without optimisation.

        The runtime's optimiser then rounds a value before a quantisation differently in the two models, which makes it
        another whole number now and then.
        """
        has_own_tolerance = tolerance_for(self._tolerance, output).is_given
        if has_own_tolerance or not self._tolerance.quantum or (index, output) not in self._identical:
            return entries
        # Entries that agree need no exception.
        agree = all(entry.agrees and not entry.doubt for entry in entries)
        if agree or not self.original.noise.are_rare_steps(entries, output, expected, value):
            return entries
        self.notes.append(
            f"with optimisation {output!r} differs by quantisation steps, in a hundredth of its elements at most; without, it"
            " is bit for bit the same"
        )
        return [replace(entry, allowed=entry.largest_absolute, problem="", doubt="") for entry in entries]

    def compare_expected(self, index: int, values: Mapping[str, Any]) -> None:
        """Compare with the outputs that the user recorded, unless the original itself differs from them."""
        feed, computed = self.original.feeds[index], self.original.runs[self.original.first][index]
        for output, value in feed.expected.items():
            recorded = np.asarray(value)
            # Recorded random numbers cannot come again.
            if output in self._random:
                continue
            own_tolerance = tolerance_for(self._tolerance, output)
            allowed = (
                own_tolerance
                if own_tolerance.is_given
                else replace(OTHER_RUNTIME, quantum=own_tolerance.quantum)
            )
            if judge(Observation(output, recorded, computed[output], allowed)).problem:
                self.notes.append(
                    f"{feed.name}: the recorded output {output!r} is not compared, because the original itself"
                    " computes other values"
                )
                continue
            entry = judge(Observation(output, recorded, values[output], allowed))
            entry = with_spread(entry, recorded, values[output])
            self._enter([replace(entry, output=f"{output} (recorded)")])

    def add_bits(self, difference: str) -> None:
        """Record how values of the model that must have the original's bits differ from these, "" if they do not.

        The first difference counts.
        """
        self._bit_difference = self._bit_difference or difference
        self.exact = not self._bit_difference

    def explain_bits(self, difference: str, note: str) -> None:
        """Record that a difference in bits is no fault, with a note on the reason."""
        self.own_rounding = True
        self.notes.append(f"without optimisation {difference}; {note}")
        self._bit_difference = ""

    def add_cause(self, cause: str) -> None:
        """Add its cause to the difference in bits."""
        self._bit_difference += f"; {cause}"

    def add_fault(self, cause: str) -> None:
        """Record that a node computes another value from the same inputs: then an output that differs leaves nothing open."""
        self._fault = cause

    def add_value_difference(self, difference: str) -> None:
        """Record that a value that the result computes from the original's inputs differs by more than rounding, "" if none."""
        self._value_difference = difference

    def add_worse(self, reason: str) -> None:
        """Record that simplification moves an output farther than rounding of its type does, "" if it does not."""
        self._worse = self._worse or reason

    def add_unpaired(self, outputs: Sequence[str]) -> None:
        """Record outputs that do not vary, if original and result have different numbers of values upstream of them."""
        self._unpaired = tuple(outputs)
        for output in outputs:
            self.notes.append(
                f"weak proof: output {output!r} is the same for all inputs tried. The two models compute it"
                f" from inner values that do not correspond; {VARYING_INPUTS}"
            )

    def reject(self, error: EvaluationError, evaluator: str) -> Verdict:
        """Return the verdict on a result that does not load or run."""
        reason = f"the result does not {error.failed_to}: {error}"
        return self._verdict(Kind.DIFFERS, reason, evaluator, error.node)

    def reject_unsimplified(self, error: EvaluationError) -> Verdict:
        """Return the verdict on a model that should be bit-identical, but does not load or run."""
        self.exact = False
        reason = (
            f"the model before the changes that may round differently does not {error.failed_to}: {error}"
        )
        return self._verdict(Kind.DIFFERS, reason, "", error.node)

    def unverified(self, reason: str, evaluator: str = "", node: str = "") -> Verdict:
        """Return a verdict that the comparison did not determine whether the models compute the same, with the reason."""
        return self._verdict(Kind.UNVERIFIED, reason, evaluator, node)

    def verdict(self, evaluator: str) -> Verdict:
        """Return the verdict that follows from all comparisons.

        The first of these findings decides. First comes an output that differs. Next comes a difference in bits if identity is
        claimed. Then follows an output that simplification makes worse, and last a weakness that leaves the proof open. A
        difference in an inner value counts only if both models have the value under the same name: otherwise the pairing may be
        wrong.
        """
        wrong = [entry for entry in self._found.values() if not entry.agrees]
        noise = self._undetermined()
        wrong = [entry for entry in wrong if entry.output.partition("[")[0] not in noise]
        # A wrong pairing is no fault of the result.
        differs = next((entry for entry in wrong if not self._is_renamed(entry.output)), None)
        if differs is not None:
            _, reason = decide([differs], {})
            if differs.output in self._inner:
                output, inner, _ = self._inner[differs.output]
                reason = f"output {output!r} is the same for all inputs tried, so inner values were compared"
                reason += f" instead, and {inner!r} differs: {differs.problem}"
            return self._verdict(Kind.DIFFERS, reason, evaluator)
        if self._bit_difference:
            reason = f"bit-identity is required, but without optimisation {self._bit_difference}"
            return self._verdict(Kind.DIFFERS, reason, evaluator)
        if self._value_difference:
            reason = f"by more than a kernel's rounding: {self._value_difference}"
            return self._verdict(Kind.DIFFERS, reason, evaluator)
        if self._worse:
            return self._verdict(Kind.DIFFERS, self._worse, evaluator)
        reason = self._weakness(wrong)
        if not reason:
            entries = [entry for entry in self._found.values() if entry not in wrong]
            if self._fault and any(entry.doubt for entry in entries):
                return self._verdict(Kind.DIFFERS, self._fault, evaluator)
            _, reason = decide(entries, self._needed())
        return self._verdict(Kind.UNVERIFIED if reason else Kind.VERIFIED, reason, evaluator)

    def _needed(self) -> dict[str, Coverage]:
        """Return how much was compared of each output that can have elements."""
        left_out = {*self.original.upstream.inner, *self._random, *self.original.empty}
        outputs = self.original.runs[self.original.first][0].keys() - left_out
        return {name: self._covered.get(name, Coverage()) for name in sorted(outputs)}

    def _is_renamed(self, entry: str) -> bool:
        _, inner, paired = self._inner.get(entry, ("", "", ""))
        return inner != paired

    def _weakness(self, wrong: list[Comparison]) -> str:
        """Return why agreement proves too little; "" if it proves enough."""
        if self._random:
            output, operators = next(iter(self._random.items()))
            return (
                f"output {output!r} is computed from random numbers ({operators}), so that no two runs agree"
            )
        if self.original.noise.unstable_shapes:
            unstable = sorted(self.original.noise.unstable_shapes)[0]
            return (
                f"output {unstable!r} of the original changes its shape when inputs change by one unit in the last"
                f" place; {untried('give inputs on which its shape is stable with --input-data')}"
            )
        if undetermined := self._undetermined():
            name, share = next(iter(sorted(undetermined.items())))
            return (
                f"output {name!r} is not determined: of the original's, {share:.0%} of the elements change when inputs"
                f" change by one unit in the last place; {untried('give inputs on which it is stable with --input-data')}"
            )
        if wrong:
            entry = wrong[0]
            output, inner, paired = self._inner[entry.output]
            return (
                f"output {output!r} is the same for all inputs tried. The original computes it from {inner!r}, and the"
                f" result from {paired!r}. These two differ, but need not correspond: {entry.problem};"
                f" {VARYING_INPUTS}"
            )
        # Inner values stand for outputs that do not vary.
        outputs = self.original.runs[self.original.first][0].keys() - self.original.upstream.inner
        if self._unpaired and len(self._unpaired) == len(self.original.upstream.names) == len(outputs):
            return (
                "every output is the same for all inputs tried. The two models compute them from inner"
                f" values that do not correspond; {VARYING_INPUTS}"
            )
        return ""

    def _verdict(self, kind: Kind, reason: str, evaluator: str, node: str = "") -> Verdict:
        entries = tuple(self._found.values())
        notes = tuple(dict.fromkeys(self.notes))
        return Verdict(
            kind,
            reason,
            evaluator,
            self.original.feed_notes,
            entries,
            notes=notes,
            node=node,
            exact=self.exact,
            own_rounding=self.own_rounding,
            given_tolerance=self._tolerance.is_given,
            metrics=self._last_metrics(),
        )

    def _last_metrics(self) -> tuple[OutputMetrics, ...]:
        """Return the metrics in the configuration that ran last: with optimisation, as applications run a model."""
        by_output = {
            output_metrics.output: output_metrics
            # Later configurations replace earlier ones.
            for metrics in (self._metrics or {}).values()
            for output_metrics in metrics.results
        }
        return tuple(by_output.values())

    def _undetermined(self) -> dict[str, float]:
        undetermined_shares = self.original.noise.undetermined()
        return {
            name: share
            for name, share in undetermined_shares.items()
            if name not in self.original.upstream.inner
        }

    def _enter(self, entries: Sequence[Comparison]) -> None:
        for entry in entries:
            worst_so_far = self._found.get(entry.output)
            self._found[entry.output] = entry if worst_so_far is None else _worse(worst_so_far, entry)


def _worse(one: Comparison, other: Comparison) -> Comparison:
    """Return the comparison that says more against the result, with the larger counts of differing and ignored elements."""

    def weight(entry: Comparison) -> tuple[bool, bool, float]:
        return bool(entry.problem), bool(entry.doubt), entry.largest_relative

    worse = one if weight(one) >= weight(other) else other
    return replace(
        worse, differing=max(one.differing, other.differing), left_out=max(one.left_out, other.left_out)
    )


def _written_like(value: Any, like: Any) -> Any:
    """Return an inner value in the shape and type of the original's, if both have equally many elements and the same numbers.

    A Reshape may have moved. An older version of an operator may support only wider types: then a Cast is before it.
    """
    if not isinstance(value, np.ndarray) or not isinstance(like, np.ndarray) or value.size != like.size:
        return value
    value = value.reshape(like.shape)
    if value.dtype == like.dtype or not np.can_cast(like.dtype, value.dtype):
        return value
    narrow = value.astype(like.dtype)
    return narrow if np.array_equal(narrow.astype(value.dtype), value) else value
