"""Optional, OptionalGetElement, OptionalHasElement and SplitToSequence: more types and inputs are allowed."""

from __future__ import annotations

from onnx_migrate.engine.steps.registry import compatible

compatible("OptionalHasElement", 18, reason="the input may be omitted, or be a tensor or sequence")
compatible("OptionalGetElement", 18, reason="the input may be a tensor or sequence")
for _name in ("Optional", "OptionalGetElement", "OptionalHasElement"):
    compatible(_name, 28, reason="more types are allowed")
compatible("SplitToSequence", 24, reason="more types are allowed")
