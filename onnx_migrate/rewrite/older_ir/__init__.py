"""Writes what an older IR version lacks in a form that it has."""
