"""This package replaces control flow, sequences and optionals of a model by plain nodes."""
