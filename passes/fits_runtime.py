"""Refuses a model that a runtime's release would not load for its IR version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.passes import Pass, register_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.change import ChangeLog
from onnx_migrate.model.model import Model

__all__ = ["FitsRuntime"]


@register_pass
@dataclass(frozen=True)
class FitsRuntime(Pass):
    """Refuse a model of a newer IR version than a runtime's release takes; the opset is chosen so that it fits.

    IR versions are never lowered: a model may hold what only its own version has.
    """

    name: ClassVar[str] = "fits_runtime"
    runtime: str
    ir_version: int

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return `model` as it is. Raises CannotMigrate, code `runtime-ir`."""
        if model.proto.ir_version > self.ir_version:
            raise CannotMigrate(
                f"the model is of IR version {model.proto.ir_version}, and {self.runtime} takes up to {self.ir_version}",
                code="runtime-ir",
                hint="export the model with an older IR version",
            )
        return model
