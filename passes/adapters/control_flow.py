"""If and Loop: their bodies are lifted on their own, and the nodes around them stay as they are."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

for _name in ("If", "Loop"):
    compatible(_name, 13, 16, 19, 21, 23, 24, 25, reason="more types are allowed")
compatible("If", 11, reason="the two branches may give different shapes")
compatible("Loop", 11, reason="trip count and condition may both be left out, and no carried value is needed")
