"""Repair of the nodes and constants that hold a model at the sizes it was exported with; `search` explains how."""

from __future__ import annotations

from .search import RepairResult, repair

__all__ = ["RepairResult", "repair"]
