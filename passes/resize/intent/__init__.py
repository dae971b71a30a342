"""What the exporter of a Resize meant, where the file says something else: restored on request, and else told."""

from __future__ import annotations

from .intent_note import IntentNote
from .resize_intent import ResizeIntent

__all__ = ["IntentNote", "ResizeIntent"]
