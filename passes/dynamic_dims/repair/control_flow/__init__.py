"""Nodes with sub-graphs: what iterations carry on, and branches that the batch decides on."""
