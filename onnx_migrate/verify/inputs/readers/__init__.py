"""Readers of inputs, one file for each format; registry.py lists them."""
