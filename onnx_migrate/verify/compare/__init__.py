"""Compares two arrays: finds differences, measures rounding, and checks that an output can show a difference at all."""
