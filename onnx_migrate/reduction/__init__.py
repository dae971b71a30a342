"""Finds the smallest model that still fails a check: a command, a runtime, or the difference of two models."""
