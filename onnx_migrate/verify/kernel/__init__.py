"""The part of the proof that decides: it takes evidence and returns a verdict. It imports numpy and the verdicts only.

Everything else in `verify` proposes evidence. A fault there can lose a proof. A fault here can create a wrong one, so the
kernel stays below 600 lines. docs/maintainers/proof-kernel.md has its eight rules.
"""

from __future__ import annotations

from onnx_migrate.verify.kernel.decision import decide
from onnx_migrate.verify.kernel.evidence import Explanation, Measurement, Observation, Tolerance
from onnx_migrate.verify.kernel.rules import judge

__all__ = ["Explanation", "Measurement", "Observation", "Tolerance", "decide", "judge"]
