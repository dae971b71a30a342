"""Migrates nodes of domains other than ai.onnx, each domain to an opset of its own."""

from __future__ import annotations

from .custom_domains import CustomOpset, LowerDomains, MigrateDomains, check_opset

__all__ = ["CustomOpset", "LowerDomains", "MigrateDomains", "check_opset"]
