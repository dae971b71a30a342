"""Mends the constants inside a model that hold on to the sizes its dims had."""

from __future__ import annotations

from .search import repair

__all__ = ["repair"]
