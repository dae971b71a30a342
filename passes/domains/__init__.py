"""Migrates nodes of domains other than ai.onnx, each domain to an opset of its own."""

from __future__ import annotations

from .domain_opsets import CustomOpset, LowerDomains, LowerMl, MigrateDomains, MigrateMl, check_opset

__all__ = ["CustomOpset", "LowerDomains", "LowerMl", "MigrateDomains", "MigrateMl", "check_opset"]
