"""Attention: optional inputs and attributes were added."""

from __future__ import annotations

from onnx_migrate.engine.steps.registry import compatible

compatible(
    "Attention",
    24,
    reason="the optional input nonpad_kv_seqlen was added, and attn_mask may be shorter than the keys",
)
compatible(
    "Attention",
    25,
    reason="left_window_size and right_window_size were added; their default -1 means no window",
)
