"""The passes that make a model fit the targets it is brought to, by the tables of `spec.targets`."""

from .fit_operators import FitOperators

__all__ = ["FitOperators"]
