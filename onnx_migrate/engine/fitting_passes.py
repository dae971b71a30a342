"""Passes for runtimes, which say without a run whether a model needs them, so that `inspect` answers for many in a second."""

from __future__ import annotations

from typing import ClassVar

from onnx_migrate.engine.incompatibility import Incompatibility, objections_by_trial
from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.model.model import Model

__all__ = ["FittingPass", "PredictablePass"]


class PredictablePass(Pass):
    """A pass that declares which models it leaves unchanged, and says what runtimes would want of it."""

    operators: ClassVar[frozenset[str]] = frozenset()
    """The pass does nothing for a model without any of these operators; empty if it may change any model."""
    producer: ClassVar[str] = ""
    """The pass does nothing for models of other producers than this; "" if it may change any model."""

    def preferences(self, model: Model) -> tuple[Incompatibility, ...]:
        """Return the parts of a sorted model that runtimes want in another form, with reasons like "takes Resize by sizes"."""
        return ()


class FittingPass(PredictablePass):
    """A pass that makes the model fit the runtimes it is for. Passes of the user's own come before it."""

    def objections(self, model: Model) -> tuple[Incompatibility, ...]:
        """Return the parts of a sorted model that the runtimes of this pass do not support.

        The model stays unchanged. By default these parts are the changes that the pass would make.
        """
        return objections_by_trial(self, model)
