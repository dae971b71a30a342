"""Inputs of a verification: the user's files, or random values in the ranges that the model can take."""
