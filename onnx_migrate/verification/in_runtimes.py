"""Runs original and result in other runtimes, and decides whether onnx-migrate may write the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx_migrate.engine.pipeline_run import PipelineResult
from onnx_migrate.errors import VerificationFailed
from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import RuntimeProof, proofs_text
from onnx_migrate.verification.chain import Verifying
from onnx_migrate.verify.other_runtimes.places import RuntimeRequest, asked_for
from onnx_migrate.verify.prover import Proof

__all__ = ["ProvingInRuntimes"]


@dataclass(frozen=True)
class ProvingInRuntimes:
    """Runs original and result in other runtimes, and decides whether the result may be written."""

    asked: tuple[RuntimeRequest, ...]

    @classmethod
    def of(cls, texts: str | Iterable[str]) -> ProvingInRuntimes:
        """Return the runs in the runtimes that texts name. Raises UsageError as `places.place_of` does."""
        return cls(asked_for(texts))

    def __call__(
        self, verifying: Verifying, original: Model, result: PipelineResult, proof: Proof | None
    ) -> tuple[PipelineResult, Proof | None, tuple[RuntimeProof, ...]]:
        """Return the result, its proof, and the outcome in each runtime.

        If it fails in one, the method drops an optional pass, unless the caller requires those. Raises VerificationFailed if the
        result still fails.
        """
        outcomes, failing = self._proofs(verifying, original, result)
        if failing and result.can_leave_out and not verifying.simplified:
            result = result.without_optional(proofs_text(failing))
            if proof is not None:
                # Another result needs another proof.
                result, proof = verifying.again(original, result, proof)
            outcomes, failing = self._proofs(verifying, original, result)
        if not failing:
            return result, proof, outcomes
        code = (
            "runtime-fails"
            if any(runtime_proof.result.failed for runtime_proof in failing)
            else "runtime-differs"
        )
        # Nothing was compared, so no difference is known.
        if all(runtime_proof.outcome == "unknown" for runtime_proof in failing):
            code = "unverified"
        from onnx_migrate.verify.other_runtimes.ways_out import ways_out

        error = VerificationFailed(proofs_text(failing), code=code, hint=ways_out(failing[0]))
        error.verification = proof.verdict if proof else None
        error.proved_in = outcomes
        raise error

    def _proofs(
        self, verifying: Verifying, original: Model, result: PipelineResult
    ) -> tuple[tuple[RuntimeProof, ...], list[RuntimeProof]]:
        """Return the outcome in each runtime, and the outcomes that are failures."""
        from onnx_migrate.verify.other_runtimes.proof import prove_models

        settings, intended = verifying.prover.settings, result.segments[-1].original
        if intended.as_given is original.proto:
            intended = original
        outcomes = prove_models(self.asked, original, result.model, settings, intended)
        return outcomes, [outcome for outcome in outcomes if not outcome.passed]
