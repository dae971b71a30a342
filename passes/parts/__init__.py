"""Extracts a part of a model."""
