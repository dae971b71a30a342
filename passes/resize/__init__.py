"""The passes that choose the form of each Resize, and the facts they need: lengths, scales, the exporter's intent."""

from __future__ import annotations

from .resize_form import ResizeForm
from .resize_intent import IntentNote, ResizeIntent

__all__ = ["IntentNote", "ResizeForm", "ResizeIntent"]
