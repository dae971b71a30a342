"""The passes that make a model fit the runtimes it is for."""

from __future__ import annotations

from .fit_forms import FitForms
from .fit_operators import FitOperators
from .runtime_limits import RuntimeLimits

__all__ = ["FitForms", "FitOperators", "RuntimeLimits"]
