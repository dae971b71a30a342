"""The results of verifications as frozen values, which pickle and convert to JSON; they know no model and run nothing."""

from __future__ import annotations

from onnx_migrate.verdicts.comparison import Comparison, Element, Histogram, RoundedOutput, beyond_limit
from onnx_migrate.verdicts.metrics import OutputMetrics
from onnx_migrate.verdicts.runtime_proof import PASSING, RuntimeProof, Side, outcome_of, proofs_text
from onnx_migrate.verdicts.verdict import (
    Blocker,
    Distance,
    DynamicProof,
    FeedNote,
    FirstDifference,
    Kind,
    LoadFailure,
    SizeCondition,
    Statement,
    Trial,
    ValueDistance,
    Verdict,
)

__all__ = [
    "PASSING",
    "Blocker",
    "Comparison",
    "Distance",
    "DynamicProof",
    "Element",
    "FeedNote",
    "FirstDifference",
    "Histogram",
    "Kind",
    "LoadFailure",
    "OutputMetrics",
    "RoundedOutput",
    "RuntimeProof",
    "Side",
    "SizeCondition",
    "Statement",
    "Trial",
    "ValueDistance",
    "Verdict",
    "beyond_limit",
    "outcome_of",
    "proofs_text",
]
