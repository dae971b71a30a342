"""Steps that are rows of a table; each row holds in both directions."""

from __future__ import annotations

from onnx_migrate.engine.steps.lowering_registry import LostTypes, unchanged
from onnx_migrate.engine.steps.registry import compatible

__all__ = ["types_only"]


def types_only(operators: str, *versions: int, lost: LostTypes) -> None:
    """Claim that each of these versions of the operators (one text with all names) differs from the one before in its types.

    Upward more types are allowed; downward, `lost` says how to handle a node whose types the older version does not support.
    """
    compatible(operators, *versions, reason="more types are allowed")
    unchanged(operators, *versions, reason="the version before takes fewer element types", types=lost)
