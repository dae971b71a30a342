"""The passes that choose the form of each Resize, and what they need to know of it: lengths, scales, the exporter's intent."""

from __future__ import annotations

from .intent_note import IntentNote
from .resize_form import ResizeForm
from .resize_intent import ResizeIntent

__all__ = ["IntentNote", "ResizeForm", "ResizeIntent"]
