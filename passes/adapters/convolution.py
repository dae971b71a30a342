"""Conv, ConvTranspose and DeformConv: other words and more types, no other numbers."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

compatible("Conv", 11, reason="auto_pad and the defaults of strides and dilations are spelt out")
compatible(
    "ConvTranspose", 11,
    reason="the words for which end takes an odd pad were mended; runtimes pad alike at both versions",
)  # fmt: skip
for _name in ("Conv", "ConvTranspose", "DeformConv"):
    compatible(_name, 22, reason="more types are allowed")
