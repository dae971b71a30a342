"""OneHot and Range."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

compatible(
    "OneHot", 11,
    reason="negative indices count from the end, as in ONNX Runtime before, though not allowed by the words",
)  # fmt: skip
compatible("OneHot", 28, reason="more types are allowed")
compatible("Range", 27, reason="half floats are allowed, and stash_type says how those are added up")
