"""Estimates of the time and memory that a run of a model needs, before anything runs."""
