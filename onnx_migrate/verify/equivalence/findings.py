"""What was found of a result, output by output, and the verdict that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_migrate.plural import listed
from onnx_migrate.verdicts import Comparison, Kind, Verdict
from onnx_migrate.verify.compare.comparison import bit_difference, compare
from onnx_migrate.verify.compare.informative import VARYING_INPUTS
from onnx_migrate.verify.compare.spread import with_spread
from onnx_migrate.verify.compare.tolerance import Tolerance
from onnx_migrate.verify.equivalence.reference_run import ReferenceRun
from onnx_migrate.verify.evaluators import EvaluationError

__all__ = ["OTHER_RUNTIME", "Findings"]

OTHER_RUNTIME = Tolerance(rtol=1e-3, atol=1e-5)
"""For outputs that another runtime computed: what onnx's own backend tests allow."""


class Findings:
    """Compares results with one run of the original, and keeps the largest difference of each output.

    Outputs in `random`, a mapping to the random operator, are not compared. `exact` is whether the model for which
    bit-identity is claimed is bit for bit the original, as far as compared; None before. `own_rounding` is whether the
    runtime's own rounding explains that it is not. `differing` are the positions of the feeds on which an output of the
    result is not bit for bit the original's without optimisation. `compared` are the names of the inner values that were
    recorded with the outputs and compared bit for bit; `differs_inside` is whether one of them differs, and no output.
    """

    def __init__(self, reference: ReferenceRun, tolerance: Tolerance, random: Mapping[str, str]) -> None:
        self.reference = reference
        self.notes = list(reference.notes)
        self.exact: bool | None = None
        self.own_rounding = False
        self.compared: set[str] = set()
        self.differs_inside = False
        self.differing: set[int] = set()
        self._identical: set[tuple[int, str]] = set()
        """Positions of feeds and outputs that are bit for bit the original's without optimisation."""
        self._tolerance = tolerance
        self._random = random
        self._found: dict[str, Comparison] = {}
        self._inner: dict[str, tuple[str, str, str]] = {}
        """By entry of an inner value: the output downstream, and the value's name in the original and in the result."""
        self._unpaired: tuple[str, ...] = ()
        self._bit_difference = ""
        self._value_difference = ""

    def compare(
        self, configuration: str, index: int, values: Mapping[str, Any], pairs: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Compare the result's outputs on feed `index`, and inner values by pairs of the original's name and the result's."""
        noise, expected = self.reference.noise, self.reference.runs[configuration][index]
        for output in expected:
            if output not in self.reference.inner and output not in self._random:
                entries = noise.compare(output, expected[output], values[output], index, self._tolerance)
                if configuration != self.reference.first:
                    entries = self._without_rare_steps(entries, output, expected, values, index)
                elif all(entry.identical for entry in entries):
                    self._identical.add((index, output))
                else:
                    self.differing.add(index)
                self._enter(entries)
        for before, after in pairs:
            if before not in expected:
                continue
            value = _reshaped_like(values[after], expected[before])
            for entry in noise.compare(before, expected[before], value, index, self._tolerance):
                name = f"{entry.output} (inner)"
                self._inner[name] = self._downstream(before), before, after
                self._enter([replace(entry, output=name)])

    def _without_rare_steps(
        self,
        entries: list[Comparison],
        output: str,
        expected: Mapping[str, Any],
        values: Mapping[str, Any],
        index: int,
    ) -> list[Comparison]:
        """Accept rare steps of a quantised model in an output that is bit for bit the original's without optimisation.

        The runtime's optimiser then rounds a value before a quantisation differently in the two models, which makes it
        another whole number now and then.
        """
        if self._has_given_tolerance or not self._tolerance.quantum or (index, output) not in self._identical:
            return entries
        if all(entry.agrees for entry in entries) or not self.reference.noise.are_rare_steps(
            entries, output, expected[output], values[output]
        ):
            return entries
        self.notes.append(
            f"with optimisation {output!r} differs by quantisation steps, in a hundredth of its elements at most; without, it"
            " is bit for bit the same"
        )
        return [replace(entry, allowed=entry.largest_absolute, problem="") for entry in entries]

    @property
    def _has_given_tolerance(self) -> bool:
        return self._tolerance.rtol is not None or self._tolerance.atol is not None

    def compare_recorded(self, index: int, values: Mapping[str, Any]) -> None:
        """Compare with the outputs that the user recorded, unless the original itself differs from them."""
        allowed = (
            self._tolerance
            if self._has_given_tolerance
            else replace(OTHER_RUNTIME, quantum=self._tolerance.quantum)
        )
        feed, before = self.reference.feeds[index], self.reference.runs[self.reference.first][index]
        for output, value in feed.expected.items():
            if output in self._random:
                continue
            if compare(output, np.asarray(value), before[output], allowed).problem:
                self.notes.append(
                    f"{feed.name}: the recorded output {output!r} is not compared, because the original itself"
                    " computes other values"
                )
                continue
            recorded = np.asarray(value)
            entry = with_spread(compare(output, recorded, values[output], allowed), recorded, values[output])
            self._enter([replace(entry, output=f"{output} (recorded)")])

    def compare_bits(self, runs: Sequence[Mapping[str, Any]]) -> list[int]:
        """Compare bit for bit, without optimisation, every value of the exact model that the original has by that name.

        Returns the positions of the feeds on which one differs.
        """
        differing = []
        for index, values in enumerate(runs):
            expected = self.reference.runs[self.reference.first][index]
            compared = (name for name in expected if name in values and name not in self._random)
            differences = (bit_difference(name, expected[name], values[name]) for name in compared)
            if difference := next(filter(None, differences), ""):
                self._bit_difference = self._bit_difference or difference
                differing.append(index)
        self.exact = not self._bit_difference
        return differing

    def accept_rounding(self, runs: Mapping[int, Mapping[str, Any]]) -> None:
        """Record that the runtime's own rounding explains the difference in bits, and by how much `runs`, by feed, differ.

        They are those of the model for which bit-identity is claimed.
        """
        self.own_rounding = True
        self.notes.append(
            f"without optimisation {self._bit_difference}; that is the runtime's own rounding: computed from the same"
            " inputs, no value differs by more"
        )
        self._bit_difference = ""
        for index, values in runs.items():
            self.reference.noise.observe_proved(index, values)

    def accept_other_kernels(self, operators: Sequence[str]) -> None:
        """Record that values of these operators alone differ in bits, which the runtime computes otherwise in the two models."""
        self.own_rounding = True
        self.notes.append(
            f"without optimisation {self._bit_difference}; the runtime has a kernel for {listed(operators)} at one of the"
            " opsets, and computes the function body of the standard at the other: computed from the same inputs, no value"
            " of another operator differs by more than rounding"
        )
        self._bit_difference = ""

    def withdraw_claim(self) -> None:
        """Forget a difference in bits that was not explained: no identity is claimed."""
        self._bit_difference, self.exact = "", None

    def note_cause(self, cause: str) -> None:
        """Add to the difference in bits what causes it."""
        self._bit_difference += f"; {cause}"

    def reject_values(self, difference: str) -> None:
        """Record that a value that the result computes from the original's inputs differs by more than rounding."""
        self._value_difference = difference

    def reject_bit_identity(self, difference: str) -> None:
        """Record that a value is not bit for bit the original's, if `difference` says so; the first one counts."""
        self._bit_difference = self._bit_difference or difference
        self.exact = not self._bit_difference

    def add_unpaired(self, outputs: Sequence[str]) -> None:
        """Record outputs that do not vary, upstream of which original and result have different numbers of values."""
        self._unpaired = tuple(outputs)
        for output in outputs:
            self.notes.append(
                f"weak proof: output {output!r} is the same for all inputs tried, and the inner values that it is"
                f" computed from cannot be paired with those of the other model; {VARYING_INPUTS}"
            )

    def reject(self, error: EvaluationError, evaluator: str) -> Verdict:
        """Return the verdict on a result that does not load or run."""
        reason = f"the result does not {error.failed_to}: {error}"
        return self._verdict(Kind.DIFFERS, reason, evaluator, error.node)

    def reject_exact_model(self, error: EvaluationError) -> Verdict:
        """Return the verdict where the model for which bit-identity is claimed does not load or run."""
        self.exact = False
        reason = (
            f"the model before the changes that may round differently does not {error.failed_to}: {error}"
        )
        return self._verdict(Kind.DIFFERS, reason, "", error.node)

    def unverified(self, reason: str, evaluator: str = "", node: str = "") -> Verdict:
        """Return a verdict that says why it could not be determined whether the models compute the same."""
        return self._verdict(Kind.UNVERIFIED, reason, evaluator, node)

    def verdict(self, evaluator: str) -> Verdict:
        """Return the verdict that follows from all comparisons.

        An output that differs decides; then a difference in bits where identity is claimed; then a weakness of the proof
        that leaves it open. A difference in an inner value counts as one of the models only where both have it by the
        same name; otherwise the pairing may be wrong.
        """
        wrong = [entry for entry in self._found.values() if not entry.agrees]
        noise = self._undetermined()
        wrong = [entry for entry in wrong if entry.output.partition("[")[0] not in noise]
        differs = next((entry for entry in wrong if not self._is_renamed(entry.output)), None)
        if differs is not None:
            reason = f"output {differs.output!r}: {differs.problem}"
            reason += f"; {differs.largest_at}" if differs.largest_at else ""
            if differs.output in self._inner:
                output, before, _ = self._inner[differs.output]
                reason = f"output {output!r} is the same for all inputs tried, so inner values were compared"
                reason += f" in its place, and {before!r} differs: {differs.problem}"
            return self._verdict(Kind.DIFFERS, reason, evaluator)
        if self._bit_difference:
            reason = f"bit-identity is required, but without optimisation {self._bit_difference}"
            return self._verdict(Kind.DIFFERS, reason, evaluator)
        if self._value_difference:
            reason = f"by more than a kernel's rounding: {self._value_difference}"
            return self._verdict(Kind.DIFFERS, reason, evaluator)
        reason = self._weakness(wrong)
        return self._verdict(Kind.UNVERIFIED if reason else Kind.VERIFIED, reason, evaluator)

    def _is_renamed(self, entry: str) -> bool:
        _, before, after = self._inner.get(entry, ("", "", ""))
        return before != after

    def _weakness(self, wrong: list[Comparison]) -> str:
        """Return why agreement proves too little; "" if it proves enough."""
        if self._random:
            output, operators = next(iter(self._random.items()))
            return (
                f"output {output!r} is computed from random numbers ({operators}), so that no two runs agree"
            )
        if self.reference.noise.unstable_shapes:
            unstable = sorted(self.reference.noise.unstable_shapes)[0]
            return (
                f"output {unstable!r} of the original changes its shape when inputs change by one unit in the last"
                " place; give inputs on which its shape is stable with --input-data"
            )
        if undetermined := self._undetermined():
            name, share = next(iter(sorted(undetermined.items())))
            return (
                f"output {name!r} is not determined: of the original's, {share:.0%} of the elements change when inputs"
                " change by one unit in the last place; give inputs on which it is stable with --input-data"
            )
        if wrong:
            entry = wrong[0]
            output, before, after = self._inner[entry.output]
            return (
                f"output {output!r} is the same for all inputs tried; {before!r}, from which the original computes it,"
                f" and {after!r}, from which the result does, differ, but need not correspond: {entry.problem};"
                f" {VARYING_INPUTS}"
            )
        outputs = self.reference.runs[self.reference.first][0].keys() - self.reference.inner
        if self._unpaired and len(self._unpaired) == len(self.reference.nearest) == len(outputs):
            return (
                "every output is the same for all inputs tried, and the inner values that they are computed from"
                f" cannot be paired with those of the other model; {VARYING_INPUTS}"
            )
        return ""

    def _verdict(self, kind: Kind, reason: str, evaluator: str, node: str = "") -> Verdict:
        entries = tuple(self._found.values())
        notes = tuple(dict.fromkeys(self.notes))
        return Verdict(
            kind,
            reason,
            evaluator,
            self.reference.feed_notes,
            entries,
            notes=notes,
            node=node,
            exact=self.exact,
            own_rounding=self.own_rounding,
            given_tolerance=self._has_given_tolerance,
        )

    def _undetermined(self) -> dict[str, float]:
        found = self.reference.noise.undetermined()
        return {name: share for name, share in found.items() if name not in self.reference.inner}

    def _downstream(self, inner: str) -> str:
        return next(output for output, names in self.reference.nearest.items() if inner in names)

    def _enter(self, entries: Sequence[Comparison]) -> None:
        for entry in entries:
            known = self._found.get(entry.output)
            self._found[entry.output] = entry if known is None else _worse(known, entry)


def _worse(one: Comparison, other: Comparison) -> Comparison:
    first = (bool(one.problem), one.largest_relative) >= (bool(other.problem), other.largest_relative)
    return replace(one if first else other, differing=max(one.differing, other.differing))


def _reshaped_like(value: Any, like: Any) -> Any:
    """Return an inner value in the shape of the original's, if it has as many elements: a Reshape may have moved."""
    if isinstance(value, np.ndarray) and isinstance(like, np.ndarray) and value.size == like.size:
        return value.reshape(like.shape)
    return value
