"""This package replaces control flow, sequences and optionals of a model by plain nodes."""

from __future__ import annotations

from .control_flow import ControlFlow

__all__ = ["ControlFlow"]
