"""Attention: more inputs and windows, which are optional."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

compatible("Attention", 24, reason="nonpad_kv_seqlen was added, and a mask may be shorter than the keys")
compatible(
    "Attention", 25, reason="left_window_size and right_window_size were added; -1, the default, is no window"
)
