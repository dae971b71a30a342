"""Nodes with sub-graphs: loop-carried values, and branches that depend on the batch."""
