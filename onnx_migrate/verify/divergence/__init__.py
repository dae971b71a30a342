"""Finds the place where two models part: the nodes between the last values that agree and the first that do not."""
