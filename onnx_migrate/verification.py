"""What a migration does with verdicts: which model is the result, and when there is none."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import pairwise

from onnx_migrate.engine.pass_infra import builtin_passes
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.pipeline_run import PipelineResult
from onnx_migrate.engine.validity import settle_ir_version
from onnx_migrate.errors import CannotMigrate, MigrateError, PassError, VerificationFailed
from onnx_migrate.messages import listed
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.fixed_values import ValuesFixed
from onnx_migrate.model.graphs import all_nodes, bodies
from onnx_migrate.model.model import Model, Segment
from onnx_migrate.rewrite.annotations import differ_in_header_alone
from onnx_migrate.rewrite.change_log import Alternative, ChangeLog, tell_distance
from onnx_migrate.rewrite.operator_counts import operator_counts, record_effect
from onnx_migrate.rewrite.part import Parts
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.targets.read import find
from onnx_migrate.verdicts import DynamicProof, Kind, RuntimeProof, Verdict, proofs_text
from onnx_migrate.verify.other_runtimes.places import RuntimeRequest
from onnx_migrate.verify.prover import Proof, Prover, first_difference
from onnx_migrate.verify.settings import Settings

__all__ = ["ProvingInRuntimes", "Verifying"]

_SAME_GRAPH = Verdict(
    Kind.VERIFIED,
    evaluator="a comparison of the graphs",
    notes=("the graph and the weights are those of the original, so nothing was run",),
)
"""The verdict on a result that differs in its header alone."""

_SAME_GRAPH_LOADED = replace(
    _SAME_GRAPH,
    notes=("the graph and the weights are those of the original, so the result was loaded and not run",),
)
"""The same where the IR version is higher, which a runtime may not load."""

_PATIENCE = 60.0
"""Seconds in which older opsets are tried, to name one at which the result loads, or parts of a request for dims."""


@dataclass(frozen=True)
class Verifying:
    """Verifies the result of a pipeline, and decides which model it is that may be written.

    With `required` an unverified result is an error. `simplified` says that the caller requires the optional passes, so
    that a result without them is an error too. What it decides is in the log.
    """

    pipeline: Pipeline
    prover: Prover
    required: bool
    simplified: bool
    log: ChangeLog

    def __call__(self, original: Model, result: PipelineResult) -> tuple[PipelineResult, Proof]:
        """Compare the two ends of each segment of `result`; return it, and the proof of the last segment.

        Where the last segment fails because of an optional pass, or could not be compared, that pass is left out and
        the proof is of the model before it. Raises VerificationFailed where numbers differ, where the result does not
        load, and for an unverified result if `required`; CannotMigrate where a dim that was made dynamic is not.
        """
        alternative, parts = self.log.fact(Alternative, "", ""), self.log.fact(Parts, "", "")
        given, fixed = self.prover.settings, self.log.fact(ValuesFixed, "", "")
        start = original if parts is None else parts.first
        if parts is not None:
            self.prover.use_inputs_of(start, original)
        if fixed is not None:
            self.prover.use_inputs_of(fixed.model, start, fixed.values)
        *earlier, last = result.segments
        verdicts = []
        for segment, following in pairwise(result.segments):
            try:
                proof = self.prover.prove(replace(segment, other=following.original), self._plan)
            except VerificationFailed as error:
                self._blame(error, original, segment)
                raise
            verdicts.append(proof.verdict)
        if any(item.changes_types for item in self.pipeline):
            self.prover.use_types_of(last.original)
        try:
            if alternative and not earlier:
                result = result.with_last(replace(last, other=alternative.model))
            result, proof = self._last(result)
            if parts is None and not earlier and any(item.narrows for item in self.pipeline):
                proof = replace(proof, verdict=self._loadable(original, result.model, proof.verdict))
        except CannotMigrate as error:
            plan = self._plan
            works = () if earlier or plan is None else self._largest_request(original, plan)
            if plan is not None and works and error.code == "frozen-dim":
                error.hint = plan.part_text(works)
            raise
        except VerificationFailed as error:
            if error.code == "does-not-load":
                error.hint = _hint(error.hint, self._newest_loadable(original, result.model))
            self._blame(error, original, last)
            raise
        for segment, verdict in zip(earlier, verdicts, strict=True):
            name = segment.ended_by
            self.log.note(
                name,
                "held-before",
                f"the model before {name}, compared with the original: {verdict.summary}"
                + (f". After {name}, {verdict.distance}" if verdict.distance else ""),
            )
        if earlier:
            after = f"the model after {earlier[-1].ended_by}"
            proof = replace(proof, verdict=replace(proof.verdict, compared_with=after))
        elif alternative is not None and proof.verdict.distance is not None:
            tell_distance(self.log, alternative, str(proof.verdict.distance))
        if fixed is not None:
            first = result.segments[0].result
            proof = replace(proof, verdict=self._with_values(start, fixed, first, proof.verdict))
        if parts is not None:
            proof = replace(
                proof, verdict=self._with_parts(original, parts, result.model, proof.verdict, given)
            )
        for verdict in (*verdicts, proof.verdict):
            self._require_known(verdict)
        return result, proof

    def _with_parts(
        self, whole: Model, parts: Parts, result: Model, verdict: Verdict, given: Settings
    ) -> Verdict:
        """Return the verdict on a result, with the proof that its original is what the whole model computes there.

        The result is run with the rest behind it where no pass changed numbers or types on purpose.
        """
        joined = None if parts.rest is None or verdict.compared_with or not verdict.verified else result
        fits = given.feeds is None or given.feeds.cover(whole.proto)
        cut = self.prover.prove_parts(
            whole,
            [parts.first, *([] if parts.rest is None else [parts.rest])],
            given if fits else replace(given, input_data=None),
            joined,
        )
        against, doubt = "the part as it was cut out", "the part was not compared with the whole model"
        return _with_start(verdict, cut, against, doubt)

    def _with_values(self, whole: Model, fixed: ValuesFixed, result: Model, verdict: Verdict) -> Verdict:
        """Return the verdict on a result, with the proof that its original is what the whole computes when fed these values."""
        fed = self.prover.prove_parts(whole, [fixed.model], self.prover.settings, result, fixed.values)
        against = f"the original with {listed(map(repr, fixed.values))} fixed"
        return _with_start(verdict, fed, against, "the original was not run with the values that are fixed")

    def _loadable(self, original: Model, result: Model, verdict: Verdict) -> Verdict:
        """Return the verdict on a result whose dims were fixed, where it loads as the original does.

        It was compared with the original of these dims, which may not load itself: onnx's inference then finds a fault in a
        branch that is not taken.
        """
        try:
            return self.prover.require_loadable(original, result, verdict)
        except VerificationFailed as error:
            if any(node.op_type == "If" for node in all_nodes(result.proto)):
                error.hint = "--no-control-flow leaves out branches that do not fit these sizes"
            raise

    def again(self, result: PipelineResult, known: Proof) -> tuple[PipelineResult, Proof]:
        """Verify the last segment of a result once more, from which the optional pass was left out after `known`."""
        result, proof = self._last(result.with_last(replace(result.segments[-1], other=None)))
        self._require_known(proof.verdict)
        before = known.verdict
        kept = replace(proof.verdict, compared_with=before.compared_with, distance=before.distance)
        return result, replace(proof, verdict=kept)

    @property
    def _plan(self) -> DimPlan | None:
        return self.log.fact(DimPlan, "", "")

    def _require_known(self, verdict: Verdict) -> None:
        if self.required and verdict.kind is Kind.UNVERIFIED:
            raise _unverified(verdict)

    def _last(self, result: PipelineResult) -> tuple[PipelineResult, Proof]:
        """Prove the last segment, without the optional pass where that fails or cannot be compared."""
        try:
            result, proof = self._prove(result)
        except (VerificationFailed, CannotMigrate) as error:
            if not result.can_leave_out:
                raise
            return self._prove(result.without_optional(str(error)))
        verdict = proof.verdict
        if verdict.kind is not Kind.UNVERIFIED or (self.required and not verdict.comparable):
            return result, proof
        reason = f"the numbers could not be compared: {verdict.reason}"
        if self.simplified and any(item.optional for item in self.pipeline):
            raise PassError(
                f"simplification is required, but {reason}",
                code="not-simplified",
                hint="--simplify=auto writes the model without it, --verify=off writes it without a comparison",
            )
        if not result.can_leave_out:
            return result, proof
        result = result.without_optional(reason)
        if verdict.comparable:
            return self._prove(result, unproved=proof.dynamic)
        last = result.segments[-1]
        return result, replace(
            proof, verdict=self.prover.require_loadable(last.original, last.result, verdict)
        )

    def _prove(
        self, result: PipelineResult, unproved: DynamicProof | None = None
    ) -> tuple[PipelineResult, Proof]:
        """Prove the last segment, respelled where ONNX Runtime loads the result only without optimisation."""
        last = result.segments[-1]
        if last.original.as_given is None and differ_in_header_alone(last.original, last.result):
            if last.result.proto.ir_version <= last.original.proto.ir_version:
                return result, Proof(_SAME_GRAPH)
            verdict = self.prover.require_loadable(last.original, last.result, _SAME_GRAPH_LOADED)
            return result, Proof(verdict)
        try:
            return result, self.prover.prove(last, self._plan, unproved)
        except VerificationFailed as error:
            load = error.verification.load if error.verification else None
            if load is None or not load.unoptimised:
                raise
            with self.log.trial():
                respelled = self._respelled(last.result)
                if respelled.proto == last.result.proto:
                    raise
                last = replace(last, result=respelled)
                proof = self.prover.prove(last, self._plan, unproved)
        return result.with_last(last), proof

    def _respelled(self, model: Model) -> Model:
        """Return a model after the passes that spell nodes as ONNX Runtime's optimiser would."""
        for name, kind in builtin_passes().items():
            if kind.helps_to_load:
                first, before = len(self.log.changes), model
                model = kind().run(before.copy(), self.log)
                counts = operator_counts(bodies(before.proto)), operator_counts(bodies(model.proto))
                if model.proto != before.proto:
                    record_effect(self.log, name, *counts, first)
        return model

    def _blame(self, error: VerificationFailed, original: Model, segment: Segment[Model]) -> None:
        """Add to the error after which pass of a segment the numbers first differ, if that is what failed.

        The passes are run once more for it. Optional ones are left out unless they are required, as what failed in the end is
        then the model without them.
        """
        if error.code != VerificationFailed.default_code or error.verification is None:
            return
        passes = tuple(item for item in self.pipeline if self.simplified or not item.optional)
        try:
            stages = Pipeline(passes).intermediate_models(original)
        except MigrateError:
            return
        if segment.original is not original and segment.original.as_given is None:
            start = segment.original.proto
            places = [place for place, (_, model) in enumerate(stages) if model.proto == start]
            stages = stages[places[-1] + 1 :] if places else []
        names = [name for name, _ in stages]
        if segment.ended_by in names:
            stages = stages[: names.index(segment.ended_by)]
        for _, model in stages:
            settle_ir_version(model, original, ChangeLog())
        claimed = error.verification.exact is False and not error.verification.own_rounding
        found = first_difference(self.prover, segment.original, stages, claimed=claimed)
        if found is not None:
            error.first_difference = found
            error.reason = f"{found}: {error.reason}"

    def _largest_request(self, original: Model, plan: DimPlan) -> Collection[str]:
        """Return symbols of a refused plan that can be dynamic together, the most that were found in time.

        The passes are run, and the result proved, for each part that is tried. Optional ones are left out.
        """
        start, works, symbols = time.perf_counter(), list[str](), list(plan.frozen_sizes)
        for symbol in sorted(symbols, key=lambda name: name not in plan.batch):
            part = plan.only({*works, symbol})
            if part == plan.only(symbols) or time.perf_counter() - start > _PATIENCE:
                break
            smaller = Pipeline(tuple(item.for_dims(part) for item in self.pipeline if not item.optional))
            log = ChangeLog()
            try:
                last = smaller.run(original, log).segments[-1]
                self.prover.prove(last, log.fact(DimPlan, "", ""))
            except (CannotMigrate, VerificationFailed):
                continue
            works.append(symbol)
        return works

    def _newest_loadable(self, original: Model, failed: Model) -> int | None:
        """Return the newest opset below the result's at which it loads as the original does; None if none was found in time.

        Optional passes are left out.
        """
        start = time.perf_counter()
        target, own = (
            onnx_opset(m.proto.opset_import, ir_version=m.proto.ir_version) for m in (failed, original)
        )
        if target is None or own is None or not any(item.raises_opset for item in self.pipeline):
            return None
        patience = min(_PATIENCE, self.prover.settings.limits.seconds or _PATIENCE)
        for opset in range(target - 1, own - 1, -1):
            if time.perf_counter() - start > patience:
                return None
            older = Pipeline(tuple(item.at_opset(opset) for item in self.pipeline if not item.optional))
            try:
                candidate = older.run(original, ChangeLog()).model
            except MigrateError:
                continue  # not every opset can be reached
            if self.prover.loads(candidate, original):
                return opset
        return None


@dataclass(frozen=True)
class ProvingInRuntimes:
    """Runs original and result in other runtimes, and decides whether the result may be written."""

    asked: tuple[RuntimeRequest, ...]
    verifying: Verifying

    def __call__(
        self, original: Model, result: PipelineResult, proof: Proof | None
    ) -> tuple[PipelineResult, Proof | None, tuple[RuntimeProof, ...]]:
        """Return the result, what it was verified with, and what came of it in each runtime.

        Where it fails in one, an optional pass is left out, unless those are required. Raises VerificationFailed where it
        fails without that too.
        """
        found, failing = self._proofs(original, result)
        if failing and result.can_leave_out and not self.verifying.simplified:
            result = result.without_optional(proofs_text(failing))
            if proof is not None:
                result, proof = self.verifying.again(result, proof)
            found, failing = self._proofs(original, result)
        if not failing:
            return result, proof, found
        code = "runtime-fails" if any(item.result.failed for item in failing) else "runtime-differs"
        if all(item.outcome == "unknown" for item in failing):
            code = "unverified"
        error = VerificationFailed(proofs_text(failing), code=code, hint=_what_helps(failing[0]))
        error.verification = proof.verdict if proof else None
        error.proved_in = found
        raise error

    def _proofs(
        self, original: Model, result: PipelineResult
    ) -> tuple[tuple[RuntimeProof, ...], list[RuntimeProof]]:
        """Return what came of the result in each runtime, and those in which it fails."""
        from onnx_migrate.verify.other_runtimes.proof import prove_models

        settings, intended = self.verifying.prover.settings, result.segments[-1].original
        if intended.as_given is original.proto:
            intended = original
        found = prove_models(self.asked, original, result.model, settings, intended)
        return found, [item for item in found if not item.passed]


def _with_start(verdict: Verdict, start: Verdict, against: str, doubt: str) -> Verdict:
    """Return the verdict on a result with that on the model `against` which it was compared, or the `doubt` if that is open."""
    notes = (*verdict.notes, *start.notes)
    verdict = replace(verdict, notes=notes, compared_with=verdict.compared_with or against)
    if verdict.verified and not start.verified:
        return replace(verdict, kind=start.kind, reason=f"{doubt}: {start.reason}")
    return verdict


def _what_helps(failing: RuntimeProof) -> str:
    name = failing.asked.partition("@")[0].partition("==")[0]
    target = f"--for {name} makes a model for it, " if find(name) else ""
    return f"{target}without --prove-in {failing.asked} the result is written all the same"


def _hint(known: str, opset: int | None) -> str:
    """Return what a user can do about a result that does not load."""
    newest = "" if opset is None else f"opset {opset} is the newest at which it loads"
    off = "--verify=off writes it all the same, for runtimes that load it"
    return "; ".join(filter(None, (newest, known, off)))


def _unverified(verdict: Verdict) -> VerificationFailed:
    error = VerificationFailed(
        f"the numbers could not be compared: {verdict.reason}",
        code="unverified",
        hint="--verify=auto writes the result all the same, and says so",
    )
    error.verification = verdict
    return error
