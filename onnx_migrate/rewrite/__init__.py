"""Rewriting the nodes of a model in place, and the log of the changes."""
