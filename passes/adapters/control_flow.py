"""If and Loop: the nodes are unchanged; their sub-graphs are lifted node by node."""

from __future__ import annotations

from onnx_migrate.engine.steps.registry import compatible

for _name in ("If", "Loop"):
    compatible(_name, 13, 16, 19, 21, 23, 24, 25, reason="more types are allowed")
compatible("If", 11, reason="the branches may output different shapes")
compatible(
    "Loop", 11, reason="trip count and condition may both be omitted, and no loop-carried value is required"
)
