"""Whether a result runs right in the runtime that it is for: both models are run there, and compared with ONNX Runtime."""

from __future__ import annotations

from onnx_migrate.verdicts.runtime_proof import RuntimeProof, Side
from onnx_migrate.verify.other_runtimes.places import Asked, asked_for, place_of
from onnx_migrate.verify.other_runtimes.proof import prove_in, prove_models

__all__ = ["Asked", "RuntimeProof", "Side", "asked_for", "place_of", "prove_in", "prove_models"]
