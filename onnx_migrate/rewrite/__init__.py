"""Editing nodes in place, and the log of what was edited."""
