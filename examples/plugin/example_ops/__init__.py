"""Operators of the domain com.example, opsets 1 and 2: what they are, how models move between them, and a pass."""

DOMAIN = "com.example"
