"""Gives inputs and dims fixed values."""
