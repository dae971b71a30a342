"""OneHot and Range."""

from __future__ import annotations

from onnx_migrate.engine.steps.registry import compatible

compatible(
    "OneHot", 11,
    reason="negative indices are allowed and count from the end, as ONNX Runtime already computed them",
)  # fmt: skip
compatible("OneHot", 28, reason="more types are allowed")
compatible("Range", 27, reason="half floats are allowed, with stash_type for the precision of their sums")
