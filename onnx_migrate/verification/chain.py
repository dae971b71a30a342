"""Proves the segments and links of a migration one after the other, and decides which model is the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from onnx_migrate.advice import Advice
from onnx_migrate.cached import cached_property
from onnx_migrate.engine.helping_passes import AdvisingPass, CuringPass
from onnx_migrate.engine.obligations import Behind, Chain, Link
from onnx_migrate.engine.pass_registry import builtin_passes
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.pipeline_run import PipelineResult
from onnx_migrate.errors import CannotMigrate, PassError, VerificationFailed
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.annotations import differ_in_header_alone
from onnx_migrate.rewrite.change_log import Aside, ChangeLog
from onnx_migrate.rewrite.operator_counts import operator_counts, record_effect
from onnx_migrate.verdicts import DynamicProof, Kind, Verdict
from onnx_migrate.verification.conversion import with_conversion
from onnx_migrate.verification.faulty_pass import name_faulty_pass
from onnx_migrate.verification.retry import Retrying
from onnx_migrate.verify.prover import Proof, Prover
from onnx_migrate.verify.settings import Settings

__all__ = ["Verifying"]

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
"""The same for a higher IR version, which a runtime may not load."""


@dataclass(frozen=True)
class Verifying:
    """Proves the result of a pipeline, and decides which model may be written.

    With `required` an unverified result is an error. `simplified` says that the caller requires the optional passes, so that a
    result without them is an error too. The log records its decisions.
    """

    pipeline: Pipeline
    prover: Prover
    required: bool
    simplified: bool
    log: ChangeLog

    def __call__(self, original: Model, result: PipelineResult) -> tuple[PipelineResult, Proof]:
        """Prove each segment of `result` and then the obligation of each link; return the result, and its proof.

        An optional pass may make the last segment fail, or nothing could be compared. Then the method drops that pass and proves
        the model before it. Raises VerificationFailed if numbers differ, if the result does not load, and for an unverified
        result if `required`. Raises CannotMigrate if a dim that a pass made dynamic is not.
        """
        given_settings = self._given
        settings = [
            replace(given_settings, input_data=feeds)
            for feeds in Chain(result.links).feeds_at(given_settings.feeds)
        ]
        *earlier, end = range(len(result.segments))
        self.prover.settings = settings[-1]
        try:
            # The last segment comes first: how far the model that it ends with is from the original is measured then.
            with self._naming_faulty_pass(original, result, end):
                result, proof = self._last(self._with_aside(_with_other_numbers(result)))
            verdicts = [
                *(self._earlier(original, result, segment_index, settings) for segment_index in earlier),
                proof.verdict,
            ]
            proof = replace(proof, verdict=self._about_original(result, verdicts, settings))
        except (CannotMigrate, VerificationFailed) as error:
            # A hint is only given if it was tried.
            self._add_ways_out(error, original, result.model)
            raise
        for verdict in (*verdicts, proof.verdict):
            self._require_known(verdict)
        return result, proof

    def again(self, original: Model, result: PipelineResult, known: Proof) -> tuple[PipelineResult, Proof]:
        """Verify a result once more after an optional pass was dropped; `known` is the proof before, and the last segment is new.

        With other numbers, the method proves everything again, because the statements are on the whole chain.
        """
        # The other model belonged to the dropped pass.
        result = result.with_last(replace(result.segments[-1], other=None))
        if known.verdict.statements:
            return self(original, result)
        result, proof = self._last(result)
        self._require_known(proof.verdict)
        before = known.verdict
        merged_verdict = replace(
            proof.verdict,
            compared_with=before.compared_with,
            distance=before.distance,
            stand_ins=before.stand_ins,
        )
        return result, replace(proof, verdict=merged_verdict)

    def _earlier(
        self, original: Model, result: PipelineResult, place: int, settings: Sequence[Settings]
    ) -> Verdict:
        """Prove a segment before the last, and measure the distance between its original and the model after the next link.

        Behind the last link of the chain, that model is the result.
        """
        from onnx_migrate.verify.port_types import with_types_of  # few migrations have several segments

        segment, (following, *others) = result.segments[place], result.segments[place + 1 :]
        other = with_types_of(following.original if others else result.model, segment.original.proto)
        self.prover.settings = _settings_of(place, result.links, settings)
        with self._naming_faulty_pass(original, result, place):
            ahead = (link.obligation for link in result.links if link.leads_to > place)
            full_range = not any(obligation.changes_interface for obligation in ahead)
            segment = replace(segment, other=other, full_range=full_range)
            return self.prover.prove(segment, self._plan).verdict

    @cached_property
    def _given(self) -> Settings:
        """The settings with the user's inputs for the original, which the prover has before the first proof."""
        return self.prover.settings

    @property
    def _plan(self) -> DimPlan | None:
        return self.log.fact(DimPlan, "", "")

    def _with_aside(self, result: PipelineResult) -> PipelineResult:
        """Return the result with the model that a pass recorded beside its only segment."""
        aside = self.log.fact(Aside, "", "")
        if aside is None or len(result.segments) > 1:
            return result
        return result.with_last(replace(result.segments[-1], other=aside.model))

    def _about_original(
        self, result: PipelineResult, verdicts: Sequence[Verdict], settings: Sequence[Settings]
    ) -> Verdict:
        """Return the verdict on the result as compared with the original: the links are proved from the last to the first.

        `verdicts` are those of the segments, and `settings` those for the model before each link.
        """
        aside, verdict = self.log.fact(Aside, "", ""), verdicts[-1]
        if aside is not None and len(verdicts) == 1 and verdict.distance is not None:
            aside.tell(verdict.distance)
        for number, link in reversed(list(enumerate(result.links))):
            earlier = verdicts[link.leads_to - 1] if link.leads_to else None
            distance = earlier.distance if earlier is not None else None
            self.prover.settings = settings[number]
            behind = Behind(result.model, verdict, distance)
            verdict = link.obligation.prove(self.prover, link.before, link.after, behind)
        self.prover.settings = settings[-1]
        if verdict.statements:  # the metrics are those of the original and the result, if one run had both
            whole = verdicts[0].distance if len(result.links) == 1 and len(verdicts) > 1 else None
            verdict = replace(verdict, metrics=() if whole is None else whole.metrics)
        return with_conversion(verdict, verdicts)

    def _require_known(self, verdict: Verdict) -> None:
        if self.required and verdict.kind is Kind.UNVERIFIED:
            raise _unverified(verdict)

    def _last(self, result: PipelineResult) -> tuple[PipelineResult, Proof]:
        """Prove the last segment; drop the optional pass if it fails or cannot be compared."""
        try:
            result, proof = self._prove(result)
        except (VerificationFailed, CannotMigrate) as error:
            if not result.can_leave_out:
                raise
            return self._prove(result.without_optional(error.with_hint))
        verdict = proof.verdict
        # The caller wants an error rather than a result without a comparison.
        if verdict.kind is not Kind.UNVERIFIED or (self.required and not verdict.comparable):
            return result, proof
        reason = f"the numbers could not be compared: {verdict.reason}"
        if self.simplified and any(pipeline_pass.optional for pipeline_pass in self.pipeline):
            raise PassError(
                f"simplification is required, but {reason}",
                code="not-simplified",
                hint=Advice(
                    "--simplify=auto writes the model without it, --verify=off writes it without a comparison",
                    tried=True,
                ),
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
        """Prove the last segment; if a pass may cure the error, prove it with the model that this pass returns for the result."""
        last = result.segments[-1]
        # An equal graph computes the same, so only the load may fail.
        if last.original.as_given is None and differ_in_header_alone(last.original, last.result):
            # An older IR version loads wherever the newer one does.
            if last.result.proto.ir_version <= last.original.proto.ir_version:
                return result, Proof(_SAME_GRAPH)
            verdict = self.prover.require_loadable(last.original, last.result, _SAME_GRAPH_LOADED)
            return result, Proof(verdict)
        try:
            return result, self.prover.prove(last, self._plan, unproved)
        except VerificationFailed as error:
            # The notes of a cure that does not help must not stay.
            with self.log.trial():
                cured = self._cured(last.result, error)
                if cured is last.result:
                    raise
                last = replace(last, result=cured)
                proof = self.prover.prove(last, self._plan, unproved)
        return result.with_last(last), proof

    def _cured(self, model: Model, error: VerificationFailed) -> Model:
        """Return a model after the passes that may cure an error; the model itself if these change nothing."""
        if error.verification is None or error.verification.load is None:
            return model  # of all passes, only those for results that do not load cure anything
        cured = model
        for name, kind in builtin_passes().items():
            if issubclass(kind, CuringPass) and kind.cures(error):
                first, before = len(self.log.changes), cured
                changed = kind().run(before.copy(), self.log)
                counts = operator_counts(bodies(before.proto)), operator_counts(bodies(changed.proto))
                if changed.proto != before.proto:
                    record_effect(self.log, name, *counts, first)
                    cured = changed
        return cured

    def _add_ways_out(
        self, error: CannotMigrate | VerificationFailed, original: Model, failed: Model
    ) -> None:
        """Add to the hint of an error the requests that work, which passes find."""
        retry = Retrying(self.pipeline, self.prover, original, failed, self.log)
        for pipeline_pass in self.pipeline:
            if isinstance(pipeline_pass, AdvisingPass):
                error.advise(pipeline_pass.advice_on(error, retry))
        # Other runtimes may load the model.
        if error.code == "does-not-load":
            off = Advice("--verify=off writes it all the same, for runtimes that load it", tried=True)
            error.advise((*error.advice, off))

    @contextmanager
    def _naming_faulty_pass(self, original: Model, result: PipelineResult, place: int) -> Iterator[None]:
        """Let an error of the proof of a segment name the pass and node at which the numbers first differ."""
        try:
            yield
        except VerificationFailed as error:
            passes = tuple(
                pipeline_pass
                for pipeline_pass in self.pipeline
                if self.simplified or not pipeline_pass.optional
            )
            ended_by = [link.name for link in result.links_to(place + 1)]
            segment = result.segments[place]
            name_faulty_pass(error, Pipeline(passes), self.prover, original, segment, ended_by)
            raise


def _with_other_numbers(result: PipelineResult) -> PipelineResult:
    """Return the result; its last segment records whether the user asked for other numbers before it."""
    other = any(link.obligation.other_numbers for link in result.links)
    return result.with_last(replace(result.segments[-1], other_numbers=True)) if other else result


def _settings_of(place: int, links: Sequence[Link], settings: Sequence[Settings]) -> Settings:
    """Return the settings for the segment at a place."""
    return settings[sum(link.leads_to <= place for link in links)]


def _unverified(verdict: Verdict) -> VerificationFailed:
    error = VerificationFailed(
        f"the numbers could not be compared: {verdict.reason}",
        code="unverified",
        hint=Advice("--verify=auto writes the result all the same, and says so", tried=True),
    )
    error.verification = verdict
    return error
