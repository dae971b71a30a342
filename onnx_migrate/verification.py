"""What a migration does with verdicts: which model is the result, and when there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from onnx_migrate.engine.pass_infra import Pass, make_pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.pipeline_run import PipelineResult, Segment
from onnx_migrate.engine.validity import settle_ir_version
from onnx_migrate.errors import CannotMigrate, MigrateError, PassError, UsageError, VerificationFailed
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.alternative import Alternative, tell_distance
from onnx_migrate.rewrite.annotations import differ_in_header_alone
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.operator_counts import operator_counts, record_effect
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.targets.shipped import find
from onnx_migrate.verdicts import RuntimeProof, proofs_text
from onnx_migrate.verify import DynamicProof, Kind, Verdict
from onnx_migrate.verify.faulty_pass import first_difference
from onnx_migrate.verify.prover import Proof, Prover

__all__ = ["Policy", "ProvingElsewhere", "Verifying", "policy_of"]

Policy = Literal["require", "auto", "off"]
"""Whether a result must be verified, may be unverified, or is not verified at all."""

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


def policy_of(verify: bool | str) -> Policy:
    """Return the policy that the argument `verify` of `migrate` means. Raises UsageError for another value."""
    policies: dict[bool | str, Policy] = {
        True: "auto", False: "off", "require": "require", "auto": "auto", "off": "off"
    }  # fmt: skip
    if verify not in policies:
        raise UsageError(
            f"verify={verify!r} is not known",
            hint='it is "require", "auto", "off", True (auto) or False (off)',
        )
    return policies[verify]


@dataclass(frozen=True)
class Verifying:
    """Verifies the result of a pipeline, and decides which model it is that may be written.

    `prover_of` returns a prover for an original. With `required` an unverified result is an error. `simplified` says
    that the caller requires the optional passes, so that a result without them is an error too.
    """

    pipeline: Pipeline
    prover_of: Callable[[Model], Prover]
    required: bool
    simplified: bool

    def __call__(
        self, original: Model, result: PipelineResult, log: ChangeLog
    ) -> tuple[PipelineResult, Proof]:
        """Compare the two ends of each segment of `result`; return it, and the proof of the last segment.

        Where the last segment fails because of an optional pass, or could not be compared, that pass is left out and
        the proof is of the model before it. Raises VerificationFailed where numbers differ, where the result does not
        load, and for an unverified result if `required`; CannotMigrate where a dim that was made dynamic is not.
        """
        plan = log.fact(DimPlan, "", "")
        alternative = log.fact(Alternative, "", "")
        *earlier, last = result.segments
        verdicts = []
        for segment, following in pairwise(result.segments):
            with self.prover_of(segment.start) as prover:
                try:
                    proof = prover.prove(
                        segment.end, segment.exact, plan, segment.lifted, other=following.start
                    )
                except VerificationFailed as error:
                    self._blame(error, original, segment, prover)
                    raise
                verdicts.append(proof.verdict)
        with self.prover_of(last.start) as prover:
            try:
                other = alternative.model if alternative and not earlier else None
                result, proof = self._last(result, prover, plan, log, other)
            except CannotMigrate as error:
                works = () if earlier or plan is None else self._largest_request(original, plan, prover)
                if plan is not None and works and error.code == "frozen-dim":
                    error.hint = plan.part_text(works)
                raise
            except VerificationFailed as error:
                if error.code == "does-not-load":
                    error.hint = _hint(error.hint, self._newest_loadable(original, result.model, prover))
                self._blame(error, original, last, prover)
                raise
        for segment, verdict in zip(earlier, verdicts, strict=True):
            name = segment.ended_by
            log.note(
                name,
                "held-before",
                f"the model before {name}, compared with the original: {verdict.summary}"
                + (f". After {name}, {verdict.distance}" if verdict.distance else ""),
            )
        if earlier:
            after = f"the model after {earlier[-1].ended_by}"
            proof = replace(proof, verdict=replace(proof.verdict, compared_with=after))
        elif alternative is not None and proof.verdict.distance is not None:
            tell_distance(log, alternative, str(proof.verdict.distance))
        for verdict in (*verdicts, proof.verdict):
            if self.required and verdict.kind is Kind.UNVERIFIED:
                raise _unverified(verdict)
        return result, proof

    def again(self, result: PipelineResult, log: ChangeLog, known: Proof) -> tuple[PipelineResult, Proof]:
        """Verify the last segment of a result once more, from which the optional pass was left out after `known`."""
        last, told = result.segments[-1], known.verdict
        with self.prover_of(last.start) as prover:
            result, proof = self._last(result, prover, log.fact(DimPlan, "", ""), log, None)
        if self.required and proof.verdict.kind is Kind.UNVERIFIED:
            raise _unverified(proof.verdict)
        kept = replace(proof.verdict, compared_with=told.compared_with, distance=told.distance)
        return result, replace(proof, verdict=kept)

    def _last(
        self,
        result: PipelineResult,
        prover: Prover,
        plan: DimPlan | None,
        log: ChangeLog,
        other: Model | None,
    ) -> tuple[PipelineResult, Proof]:
        """Prove the last segment, without the optional pass where that fails or cannot be compared."""
        try:
            result, proof = _prove(result, prover, plan, log, other=other)
        except (VerificationFailed, CannotMigrate) as error:
            if not result.can_leave_out:
                raise
            return _prove(result.without_optional(str(error)), prover, plan, log, other=other)
        verdict = proof.verdict
        if verdict.kind is not Kind.UNVERIFIED or (self.required and not verdict.comparable):
            return result, proof
        reason = f"the numbers could not be compared: {verdict.reason}"
        if self.simplified and "simplify" in self.pipeline.names:
            raise PassError(
                f"simplification is required, but {reason}",
                code="not-simplified",
                hint="--simplify=auto writes the model without it, --verify=off writes it without a comparison",
            )
        if not result.can_leave_out:
            return result, proof
        result = result.without_optional(reason)
        if verdict.comparable:
            return _prove(result, prover, plan, log, unproved=proof.dynamic, other=other)
        return result, replace(proof, verdict=prover.require_loadable(result.model, verdict))

    def _blame(self, error: VerificationFailed, original: Model, segment: Segment, prover: Prover) -> None:
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
        if segment.start is not original:
            places = [place for place, (_, model) in enumerate(stages) if model.proto == segment.start.proto]
            stages = stages[places[-1] + 1 :] if places else []
        names = [name for name, _ in stages]
        if segment.ended_by in names:
            stages = stages[: names.index(segment.ended_by)]
        for _, model in stages:
            settle_ir_version(model, original, ChangeLog())
        claimed = error.verification.exact is False and not error.verification.own_rounding
        found = first_difference(prover, segment.start, stages, claimed=claimed)
        if found is not None:
            error.first_difference = found
            error.reason = f"{found}: {error.reason}"

    def _largest_request(self, original: Model, plan: DimPlan, prover: Prover) -> Collection[str]:
        """Return symbols of a refused plan that can be dynamic together, the most that were found in time.

        The passes are run, and the result proved, for each part that is tried. Optional ones are left out.
        """
        start, works, symbols = time.perf_counter(), list[str](), list(plan.frozen_sizes)
        for symbol in sorted(symbols, key=lambda name: name not in plan.batch):
            part = plan.only({*works, symbol})
            if part == plan.only(symbols) or time.perf_counter() - start > _PATIENCE:
                break
            smaller = Pipeline(tuple(_with_dims(item, part) for item in self.pipeline if not item.optional))
            log = ChangeLog()
            try:
                last = smaller.run(original, log).segments[-1]
                prover.prove(last.end, last.exact, log.fact(DimPlan, "", ""), last.lifted)
            except (CannotMigrate, VerificationFailed):
                continue
            works.append(symbol)
        return works

    def _newest_loadable(self, original: Model, failed: Model, prover: Prover) -> int | None:
        """Return the newest opset below the result's at which the migrated model loads; None if none was found in time.

        Optional passes are left out.
        """
        start = time.perf_counter()
        target, own = (
            onnx_opset(m.proto.opset_import, ir_version=m.proto.ir_version) for m in (failed, original)
        )
        if target is None or own is None or "migrate_opset" not in self.pipeline.names:
            return None
        for opset in range(target - 1, own - 1, -1):
            if time.perf_counter() - start > min(_PATIENCE, prover.limits.seconds or _PATIENCE):
                return None
            older = Pipeline(tuple(_with_opset(item, opset) for item in self.pipeline if not item.optional))
            try:
                candidate = older.run(original, ChangeLog()).model
            except MigrateError:
                continue  # not every opset can be reached
            if prover.loads(candidate):
                return opset
        return None


@dataclass(frozen=True)
class ProvingElsewhere:
    """Runs original and result in other runtimes, and decides whether the result may be written.

    `prove` runs an original and a result, and takes the model whose numbers the result shall have. `again` verifies a
    result without the optional pass. `simplified` says that the caller requires the optional passes.
    """

    prove: Callable[[Model, Model, Model], tuple[RuntimeProof, ...]]
    again: Callable[[PipelineResult, Proof], tuple[PipelineResult, Proof]]
    simplified: bool

    def __call__(
        self, original: Model, result: PipelineResult, proof: Proof | None
    ) -> tuple[PipelineResult, Proof | None, tuple[RuntimeProof, ...]]:
        """Return the result, what it was verified with, and what came of it in each runtime.

        Where it fails in one, an optional pass is left out. Raises VerificationFailed where it fails without that too.
        """
        found = self.prove(original, result.model, result.segments[-1].start)
        failing = [item for item in found if not item.passed]
        if failing and result.can_leave_out and not self.simplified:
            result = result.without_optional(proofs_text(failing))
            if proof is not None:
                result, proof = self.again(result, proof)
            found = self.prove(original, result.model, result.segments[-1].start)
            failing = [item for item in found if not item.passed]
        if not failing:
            return result, proof, found
        nothing_compared = all(item.outcome == "unknown" for item in failing)
        error = VerificationFailed(
            proofs_text(failing),
            code="unverified"
            if nothing_compared
            else "runtime-fails"
            if any(item.result.failed for item in failing)
            else "runtime-differs",
            hint=_what_helps(failing[0]),
        )
        error.verification = proof.verdict if proof else None
        error.proved_in = found
        raise error


def _what_helps(failing: RuntimeProof) -> str:
    name = failing.asked.partition("@")[0].partition("==")[0]
    target = f"--for {name} makes a model for it, " if find(name) else ""
    return f"{target}without --prove-in {failing.asked} the result is written all the same"


def _prove(
    result: PipelineResult,
    prover: Prover,
    plan: DimPlan | None,
    log: ChangeLog,
    unproved: DynamicProof | None = None,
    other: Model | None = None,
) -> tuple[PipelineResult, Proof]:
    """Prove the last segment, with pairs of QuantizeLinear and DequantizeLinear where it does not load without them."""
    last = result.segments[-1]
    if differ_in_header_alone(last.start, last.end):
        raised = last.end.proto.ir_version > last.start.proto.ir_version
        return result, Proof(prover.require_loadable(last.end, _SAME_GRAPH_LOADED) if raised else _SAME_GRAPH)
    try:
        return result, prover.prove(last.end, last.exact, plan, last.lifted, unproved, other)
    except VerificationFailed as error:
        load = error.verification.load if error.verification else None
        if load is None or not load.unoptimised:
            raise
        with log.trial():
            first = len(log.changes)
            respelled = make_pass("quantized_pairs").run(last.end.copy(), log)
            if respelled.proto == last.end.proto:
                raise
            counts = operator_counts(last.end.proto), operator_counts(respelled.proto)
            record_effect(log, "quantized_pairs", *counts, first)
            proof = prover.prove(respelled, last.exact, plan, last.lifted, unproved, other)
    segments = (*result.segments[:-1], replace(last, end=respelled))
    return replace(result, segments=segments), proof


def _with_dims(item: Pass, plan: DimPlan) -> Pass:
    given: dict[str, Any] = {"dynamic_dims": {"batch": ""}, "resize_form": {}}
    changed: Any = item
    return replace(changed, dynamic=plan.texts(), **given[item.name]) if item.name in given else item


def _with_opset(item: Pass, opset: int) -> Pass:
    changed: Any = item
    return replace(changed, opset=opset, newer="refuse") if item.name == "migrate_opset" else item


def _hint(known: str, opset: int | None) -> str:
    """Return what a user can do about a result that does not load."""
    newest = "" if opset is None else f"opset {opset} is the newest at which it loads"
    return "; ".join(
        filter(None, (newest, known, "--verify=off writes it all the same, for runtimes that load it"))
    )


def _unverified(verdict: Verdict) -> VerificationFailed:
    error = VerificationFailed(
        f"the numbers could not be compared: {verdict.reason}",
        code="unverified",
        hint="--verify=auto writes the result all the same, and says so",
    )
    error.verification = verdict
    return error
