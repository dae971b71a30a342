"""Gathers what was found of a result, output by output, and says what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_migrate.verify.compare.arrays import Tolerance, compare, unequal
from onnx_migrate.verify.equivalence.reference_run import Baseline
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.verdict import Comparison, Kind, Verdict

__all__ = ["RECORDED", "Judge"]

RECORDED = Tolerance(rtol=1e-3, atol=1e-5)
"""For outputs that another runtime gave: what onnx's own backend tests allow."""


class Judge:
    """Holds results against one baseline; outputs in `random` (with their operator) are not held."""

    def __init__(self, base: Baseline, tolerance: Tolerance, random: Mapping[str, str]) -> None:
        self.base = base
        self.notes = list(base.notes)
        self.exact: bool | None = None
        self._tolerance = tolerance
        self._random = random
        self._found: dict[str, Comparison] = {}
        self._other: dict[str, str] = {}
        self._unpaired: tuple[str, ...] = ()
        self._claim = ""

    def hold(
        self, level: str, index: int, values: Mapping[str, Any], pairs: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Compare outputs, and inner values by `pairs` of the original's name and the result's."""
        heard, expected = self.base.heard, self.base.runs[level][index]
        inner = {name for names in self.base.nearest.values() for name in names}
        for output in expected:
            if output not in inner and output not in self._random:
                self._enter(heard.hold(output, expected[output], values[output], index, self._tolerance))
        for before, after in pairs:
            if before not in expected:
                continue
            value = _shaped(values[after], expected[before])
            for entry in heard.hold(before, expected[before], value, index, self._tolerance):
                name = f"{entry.output} (inner)"
                self._other[name] = after if after != before else ""
                self._enter([replace(entry, output=name)])

    def hold_recorded(self, index: int, values: Mapping[str, Any]) -> None:
        """Compare with the outputs the user recorded, unless the original itself does not give them."""
        given = self._tolerance.rtol is not None or self._tolerance.atol is not None
        allowed = self._tolerance if given else replace(RECORDED, quantum=self._tolerance.quantum)
        feed, before = self.base.feeds[index], next(iter(self.base.runs.values()))[index]
        for output, value in feed.expected.items():
            if output in self._random:
                continue
            if compare(output, np.asarray(value), before[output], allowed).problem:
                self.notes.append(
                    f"{feed.name}: the original itself does not give the recorded output {output!r}"
                )
                continue
            entry = compare(output, np.asarray(value), values[output], allowed)
            self._enter([replace(entry, output=f"{output} (recorded)")])

    def hold_exact(self, runs: Sequence[Mapping[str, Any]]) -> None:
        """Demand that every value given is bit for bit the original's of that name, without optimisation."""
        for index, values in enumerate(runs):
            for name, value in next(iter(self.base.runs.values()))[index].items():
                if name in values and name not in self._random and not self._claim:
                    self._claim = unequal(name, value, values[name])
        self.exact = not self._claim

    def claim_fails(self, problem: str) -> None:
        """Take note of a value that is not bit for bit the original's, if `problem` says so."""
        self._claim = self._claim or problem
        self.exact = not self._claim

    def not_paired(self, outputs: Sequence[str]) -> None:
        """Take note of flat outputs above which original and result could not be matched."""
        self._unpaired = tuple(outputs)
        for output in outputs:
            self.notes.append(
                f"weak proof: the values before {output!r}, which does not vary, cannot be matched"
            )

    def fails(self, error: EvaluationError, evaluator: str) -> Verdict:
        """Return the verdict on a result that does not load or run."""
        what = "load" if error.loading else "run"
        return self._verdict(Kind.DIFFERS, f"the result does not {what}: {error}", evaluator, error.node)

    def refutes(self, error: EvaluationError) -> Verdict:
        """Return the verdict where the model for which exactness was claimed does not load or run."""
        self.exact = False
        reason = (
            f"the model before its inexact changes does not {'load' if error.loading else 'run'}: {error}"
        )
        return self._verdict(Kind.DIFFERS, reason, "", error.node)

    def unsure(self, reason: str, evaluator: str = "", node: str = "") -> Verdict:
        """Return a verdict that says why nothing is known."""
        return self._verdict(Kind.UNVERIFIED, reason, evaluator, node)

    def verdict(self, evaluator: str) -> Verdict:
        """Return what follows from all that was held."""
        wrong = [entry for entry in self._found.values() if not entry.agrees]
        differs = next((entry for entry in wrong if not self._other.get(entry.output)), None)
        if differs is not None:
            reason = f"output {differs.output!r}: {differs.problem}"
            if differs.output in self._other:
                reason = (
                    f"the outputs do not vary with the input, and the value before them differs: {reason[7:]}"
                )
            return self._verdict(Kind.DIFFERS, reason, evaluator)
        if self._claim:
            return self._verdict(Kind.DIFFERS, f"bit-identity was claimed, but {self._claim}", evaluator)
        return self._verdict(*self._sure(wrong), evaluator)

    def _sure(self, wrong: list[Comparison]) -> tuple[Kind, str]:
        reason = ""
        if self._random:
            output, operator = next(iter(self._random.items()))
            reason = f"output {output!r} depends on {operator}, which is random"
        elif self.base.heard.unstable:
            unstable = sorted(self.base.heard.unstable)[0]
            reason = (
                f"the shape of output {unstable!r} changes when an input moves by one unit in the last place"
            )
        elif wrong:
            entry = wrong[0]
            reason = "the outputs do not vary with the input, and the values before them differ"
            reason += f", {entry.output!r} and {self._other[entry.output]!r}: {entry.problem}"
        elif self._unpaired and len(self._unpaired) == len(self.base.nearest) == self._outputs():
            reason = "the outputs do not vary with the input, and the values before them cannot be matched"
        return (Kind.UNVERIFIED if reason else Kind.VERIFIED), reason

    def _outputs(self) -> int:
        inner = {name for names in self.base.nearest.values() for name in names}
        return len(next(iter(self.base.runs.values()))[0].keys() - inner)

    def _verdict(self, kind: Kind, reason: str, evaluator: str, node: str = "") -> Verdict:
        entries = tuple(self._found.values())
        notes = tuple(dict.fromkeys(self.notes))
        return Verdict(
            kind, reason, evaluator, self.base.described, entries, notes=notes, node=node, exact=self.exact
        )

    def _enter(self, entries: Sequence[Comparison]) -> None:
        for entry in entries:
            known = self._found.get(entry.output)
            self._found[entry.output] = entry if known is None else _worse(known, entry)


def _worse(one: Comparison, other: Comparison) -> Comparison:
    first = (bool(one.problem), one.largest_relative) >= (bool(other.problem), other.largest_relative)
    return replace(one if first else other, differing=max(one.differing, other.differing))


def _shaped(value: Any, like: Any) -> Any:
    """Shape an inner value as the original's is: a Reshape may have moved across it."""
    if isinstance(value, np.ndarray) and isinstance(like, np.ndarray) and value.size == like.size:
        return value.reshape(like.shape)
    return value
