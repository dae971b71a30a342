"""Inputs at which models that agree on random numbers may differ: ties, thresholds, large numbers, empty masks, other sizes."""
