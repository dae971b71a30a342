"""Compares a segment with the values of its original: outputs, bits if a pass claims them, inner values."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx

from onnx_migrate.facts.onnx_inference import without_fragile_ops
from onnx_migrate.model.model import Segment
from onnx_migrate.process import mark
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.compare.by_tensor import worse_than
from onnx_migrate.verify.compare.model_precision import coarsest_eps, is_quantized
from onnx_migrate.verify.compare.values import flatten
from onnx_migrate.verify.equivalence.common_values import keeps_all_names
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import OTHER_RUNTIME, Findings
from onnx_migrate.verify.equivalence.folded_constants import moved_constant
from onnx_migrate.verify.equivalence.inner_values import masked_difference, recorded_difference
from onnx_migrate.verify.equivalence.original_run import OriginalRun
from onnx_migrate.verify.equivalence.result_run import (
    BitDifferences,
    ResultRun,
    bit_differences,
    distance,
    run_unsimplified,
)
from onnx_migrate.verify.equivalence.value_by_value import explained, first_difference
from onnx_migrate.verify.evaluators import REFERENCE, EvaluationError, Runnable, open_model
from onnx_migrate.verify.kernel import Observation, Tolerance, judge
from onnx_migrate.verify.kernel.limits import PRECISIONS
from onnx_migrate.verify.loading import load_failure
from onnx_migrate.verify.model_traits import miscomputed_in_reference, random_outputs
from onnx_migrate.verify.run_count import begin_run, expect_runs
from onnx_migrate.verify.tolerances import tolerance_for

__all__ = ["SegmentCheck"]


_PATIENCE = 3.0
"""Seconds that the comparison of inner values may take; or as long as the original took, if that was more."""

_SINGLE = PRECISIONS["float32"].eps
"""The eps of float32: outputs of double precision may round as float32 if the model computes with that too."""

_NOT_CHECKED = "bit-identity is required, but was not checked: "

_REFERENCE_PATIENCE = 5.0
"""Seconds after which no further feed is run in onnx.reference, which is slow."""


class SegmentCheck:
    """The comparison of one segment with a run of its original, for one verdict; `seconds` is the time of that run.

    With `measured` the verdict has the metrics of the outputs.
    """

    def __init__(
        self,
        segment: Segment[Runnable],
        run: OriginalRun,
        tolerance: Tolerance,
        seconds: float,
        *,
        measured: bool = False,
    ) -> None:
        original = segment.original.model
        self._segment, self._run, self._measured = segment, run, measured
        coarsest = coarsest_eps(original)
        eps = coarsest if segment.other_numbers else 0.0
        # A double is rarely computed in double precision throughout; float16 inside an output is what the noise measures.
        least = coarsest if segment.other_numbers else min(coarsest, _SINGLE)
        self._tolerance = replace(tolerance, quantum=is_quantized(original), eps=least)
        self._seconds = max(_PATIENCE, seconds)
        self._random = random_outputs(original)
        simplified = segment.unsimplified not in (None, segment.result)
        self.findings = Findings(
            run,
            self._tolerance,
            self._random,
            simplified=simplified,
            eps=eps,
            coarsest=coarsest,
            measured=measured,
        )
        self._unsimplified: dict[int, Values] | None = None
        """By the position of the feed, outputs of the model before simplification that differ; None if it was not run."""
        self._only_reference = run.first == REFERENCE
        self._exact = segment.exact and not self._only_reference
        self._strict = False
        self._compared: set[str] = set()
        """The inner values that were recorded with the outputs and compared bit for bit."""
        self._differs_inside = False
        """Whether one of them differs, and no output."""

    def verdict(self, *, strict: bool, by_value: bool) -> tuple[Verdict, bool]:
        """Return the verdict, and whether less was run than could be, because one run takes long."""
        self._strict = strict
        findings, result = self.findings, self._segment.result
        # onnx.reference computes some operators wrongly.
        wrong = miscomputed_in_reference(result.model) if self._only_reference else ""
        if wrong:
            reason = (
                f"the original runs in onnx.reference only, which computes the {wrong} of the result wrongly"
            )
            return findings.unverified(reason), False
        if self._segment.exact and self._only_reference:
            findings.notes.append(f"{_NOT_CHECKED}ONNX Runtime does not run the original")
        failure = self._compare_unsimplified()
        running = ResultRun(result, findings, self._run.recorded if self._claimed == result else ())
        try:
            self._run_result(running)
        except EvaluationError as error:
            return self._result_fails(error, running.evaluator), False
        # A limit of the runtime is no fault of the result.
        if failure is not None and self._exact and not failure.limit:
            return findings.reject_unsimplified(failure), False
        if failure is not None:
            findings.notes.append(
                f"{_NOT_CHECKED}{failure}"
                if self._exact
                else f"the result before simplification does not {failure.failed_to}: {failure}"
            )
        elif self._exact:
            self._compare_inner_bits()
        elif by_value:
            self._compare_by_value()
        self._judge_simplification()
        verdict = findings.verdict(running.evaluator + _levels(self._run))
        if self._segment.other is not None:
            verdict = replace(
                verdict, distance=distance(self._run, self._segment.other, with_metrics=self._measured)
            )
        return verdict, self._run.expensive

    @property
    def _claimed(self) -> Runnable | None:
        """The model that is compared bit for bit: for a claim, or to see how much of a difference is the runtime's rounding."""
        unsimplified, same = self._segment.unsimplified, self._segment.unsimplified == self._segment.result
        affordable = self._exact or same or not self._run.expensive
        return unsimplified if affordable and not self._only_reference else None

    def _compare_unsimplified(self) -> EvaluationError | None:
        """Compare the model before simplification, if that is not the result; return why it does not load or run."""
        claimed = self._claimed
        if claimed is None or claimed == self._segment.result:
            return None
        try:
            self._compare_bits(run_unsimplified(claimed, self._run))
        except EvaluationError as error:
            return error
        return None

    def _run_result(self, running: ResultRun) -> None:
        """Run the result and compare its outputs; if the result must have the original's bits, compare the bits too."""
        run, result = self._run, self._segment.result
        other = self._exact and self._segment.unsimplified != result
        proved = run.expensive and other and self.findings.exact is True
        load_first = proved and run.all_at_both_levels
        expect_runs(sum(map(len, run.runs.values())) - (len(run.runs[run.first]) if load_first else 0))
        running.run(self._compare_bits if self._claimed == result else None, load_first=load_first)

    def _result_fails(self, error: EvaluationError, evaluator: str) -> Verdict:
        """Return the verdict on a result that does not load or run."""
        findings, original, result = self.findings, self._segment.original, self._segment.result
        if self._only_reference:
            reason = f"the original runs in onnx.reference only, and the result does not {error.failed_to} there: {error}"
            return findings.unverified(reason, evaluator)
        load = load_failure(original, result) if error.loading else None
        if not error.limit:
            return replace(findings.reject(error, evaluator), load=load)
        if self._exact:
            findings.notes.append(f"{_NOT_CHECKED}ONNX Runtime does not run the result")
        return replace(_in_reference(original, result, findings, error), load=load)

    def _compare_bits(self, runs: Sequence[Values]) -> None:
        """Compare runs without optimisation bit for bit, and the inner values that were recorded with them.

        A difference counts against the model only if identity is claimed. Both runs then drop the recorded values, which may take
        much memory.
        """
        run, claimed = self._run, self._claimed
        assert claimed is not None
        # Outputs come first, because inner values may differ without an effect.
        outputs = bit_differences(run, runs, self._random)
        inner, self._compared = recorded_difference(self._segment.original, claimed, run.recorded, runs[0])
        # These values need much memory.
        for name in run.recorded.keys() - run.upstream.inner:
            runs[0].pop(name, None)
        run.recorded.clear()
        self._differs_inside = bool(inner) and not outputs
        self._unsimplified = {index: runs[index] for index in outputs}
        difference = next((bit_difference.first for bit_difference in outputs.values()), inner)
        if self._exact:
            self.findings.add_bits(difference)
        if outputs or (self._exact and inner):
            self._explain(claimed, difference, outputs, runs)

    def _explain(
        self,
        claimed: Runnable,
        difference: str,
        differences: Mapping[int, BitDifferences],
        runs: Sequence[Values],
    ) -> None:
        """Find out whether a difference in bits is the runtime's own rounding, unless that does not matter.

        `differences` are those of outputs, by the position of the feed; if there are none, inner values of the first differ.
        """
        # A strict caller counts each bit.
        if self._strict:
            return
        feeds = [self._run.feeds[index].inputs for index in differences or [0]]
        outputs = {name for bit_difference in differences.values() for name in bit_difference.outputs}
        computed = outputs - set(self._run.upstream.inner)
        explanation = explained(self._segment.original, claimed, feeds, computed)
        if explanation.cause and self._exact:
            self.findings.add_cause(explanation.cause)
        elif explanation.fault:
            self.findings.add_fault(explanation.cause)
        elif explanation.note:
            self.findings.explain_bits(difference, explanation.note)
        # The noise then allows this difference in the later comparison.
        if explanation.proved:
            for index, bit_difference in differences.items():
                for name in bit_difference.outputs:
                    self._run.noise.explain(index, name, runs[index][name])

    def _judge_simplification(self) -> None:
        """Record which output simplification moves farther from the original than the result without it is (rule 8)."""
        findings, unsimplified, run = self.findings, self._segment.unsimplified, self._run
        if not findings.simplified or unsimplified is None:
            return
        if not (self._tolerance.is_given or self._segment.other_numbers):
            findings.add_worse(moved_constant(unsimplified, self._segment.result))
        # The user says how far these outputs may move.
        limited = {name for _, name, _ in findings.moved if tolerance_for(self._tolerance, name).is_given}
        if not {name for _, name, _ in findings.moved} - limited:
            return
        if self._unsimplified is None:
            try:
                self._unsimplified = dict(enumerate(run_unsimplified(unsimplified, run)))
            except EvaluationError as error:
                findings.notes.append(f"the result before simplification does not {error.failed_to}: {error}")
                return
        for index, name, simplified in findings.moved:
            if name in limited:
                continue
            original = run.runs[run.first][index][name]
            plain = self._unsimplified.get(index, {}).get(name, original)
            if worse := worse_than(original, plain, simplified, findings.eps):
                findings.add_worse(f"simplification changes output {name!r}: {worse}")

    def _compare_inner_bits(self) -> None:
        """Compare the inner values that were not recorded, if everything compared so far is bit for bit the same."""
        claimed = self._segment.unsimplified
        assert claimed is not None
        if not self.findings.exact:
            return
        difference = self._masked_difference(claimed)
        self.findings.add_bits(difference)
        if difference:
            self._explain(claimed, difference, {}, ())

    def _compare_by_value(self) -> None:
        """Compare value by value, if the outputs agree up to rounding and the result keeps the names of all values.

        A fault that is smaller than the rounding summed up in the outputs shows at its own node. If the outputs are bit for bit
        the same, inner values that later nodes may mask must be so too.
        """
        original, result, findings = self._segment.original, self._segment.result, self.findings
        # With limits of the user's, only the outputs count.
        if findings.own_rounding or self._only_reference or self._tolerance.is_given:
            return
        # Values correspond by their names here.
        if not keeps_all_names(original.model, result.model):
            return
        differing = sorted(findings.differing)
        if not differing and not self._masked_difference(result) and not self._differs_inside:
            return
        feeds = [self._run.feeds[index].inputs for index in differing or [0]]
        try:
            findings.add_value_difference(first_difference(original, result, feeds, claimed=False).problem)
        except (EvaluationError, MemoryError) as error:
            findings.notes.append(
                f"the models were not compared value by value, because then one fails: {error}"
            )

    def _masked_difference(self, result: Runnable) -> str:
        difference, note = masked_difference(
            self._segment.original, result, self._run, self._compared, self._seconds
        )
        self.findings.notes.extend(filter(None, [note]))
        return difference


def _levels(run: OriginalRun) -> str:
    """Return a suffix for the name of ONNX Runtime: the device and the optimisation levels that were run."""
    levels = [configuration.partition(":")[2] for configuration in run.runs]
    return f" CPU, optimisation {' and '.join(levels)}" if all(levels) else ""


def _in_reference(original: Runnable, result: Runnable, findings: Findings, why: EvaluationError) -> Verdict:
    """Compare the result in onnx.reference with the original in ONNX Runtime.

    With both in onnx.reference, an error of its own would cancel out. If onnx.reference runs the original, the difference between
    the two evaluators on it counts as noise. `why` is ONNX Runtime's error.
    """
    reason = f"this release of ONNX Runtime does not support the result: {why}"
    wrong = miscomputed_in_reference(result.model)
    if wrong:
        doubt = f"{reason}; onnx.reference cannot take its place, because it computes {wrong} wrongly"
        return findings.unverified(doubt, node=why.node)
    try:
        onnx.shape_inference.infer_shapes(without_fragile_ops(result.model), check_type=True)
    except onnx.shape_inference.InferenceError as error:
        return findings.reject(EvaluationError(" ".join(str(error).split()), why.node, loading=True), "")
    except Exception as error:  # of other kinds, which do not say that the model is wrong
        return findings.unverified(f"{reason}; onnx infers no shapes of it: {error}", node=why.node)
    mark("result: running in onnx.reference")
    start = time.perf_counter()
    trusted = True
    try:
        model = open_model(result, REFERENCE)
        inputs = findings.original.inputs(findings.original.first)
        for index, feed in enumerate(inputs):
            begin_run(f"input {index + 1} of {len(inputs)} in onnx.reference")
            values = model.run(feed)
            trusted = _observe_original(original, findings, index) and trusted
            findings.compare(findings.original.first, index, values)
            if time.perf_counter() - start > _REFERENCE_PATIENCE:
                break
    except EvaluationError as error:
        return findings.unverified(
            f"{reason}; onnx.reference cannot take its place, because it does not {error.failed_to} it: {error}",
            node=why.node,
        )
    findings.notes.append(f"{reason}; onnx.reference ran it")
    if findings.original.upstream.names:
        findings.add_unpaired(list(findings.original.upstream.names))
    verdict = findings.verdict(model.name)
    if verdict.kind is Kind.DIFFERS and not trusted:
        doubt = f"{reason}; in onnx.reference it differs, but so does the original itself"
        return findings.unverified(doubt, model.name, why.node)
    return verdict


def _observe_original(original: Runnable, findings: Findings, index: int) -> bool:
    """Run the original in onnx.reference, add the difference to the noise, and return whether it is small.

    Returns False, and adds nothing, if onnx.reference does not run the original or differs by more than backend tests allow.
    """
    expected = findings.original.runs[findings.original.first][index]
    inputs = findings.original.feeds[index].inputs
    try:
        again = open_model(original, REFERENCE, expected).run(inputs)
    except EvaluationError:
        return False
    for name, value in expected.items():
        here, there = flatten(name, value), dict(flatten(name, again[name]))
        if any(
            # A difference beyond this is a fault of onnx.reference.
            part not in there or judge(Observation(part, a, there[part], OTHER_RUNTIME)).problem
            for part, a in here
        ):
            return False
    findings.original.noise.observe(index, again)
    return True
