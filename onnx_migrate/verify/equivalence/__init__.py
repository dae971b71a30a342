"""Checks that a result computes the same as the original, at the sizes of the original."""
