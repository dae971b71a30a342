"""Migrates nodes of domains other than ai.onnx, each domain to an opset of its own."""
