"""Brings the nodes of the domain ai.onnx.ml down to an older opset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .domains.domain_steps import lower_domain, newest_import
from .migrate_ml import DOMAIN

__all__ = ["LowerMl"]


@register_pass
@dataclass(frozen=True)
class LowerMl(Pass):
    """Lower the ai.onnx.ml nodes of the main graph, all sub-graphs and local functions to an older opset; older bodies stay.

    What they become in ai.onnx has forms that no opset from 9 to the newest has changed. Raises CannotMigrate, naming the
    nearest opset that can be reached, if a node has no equal at the target.
    """

    name: ClassVar[str] = "lower_ml"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    opset: int
    beside: int = 13
    """The ai.onnx opset for a body that imports none and gets ai.onnx nodes."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Lower `model` in place."""
        if self.opset < 1 and newest_import(model.proto, DOMAIN) is not None:
            raise UsageError(f"there is no opset {self.opset} of {DOMAIN}", code="no-such-opset")
        lower_domain(model, DOMAIN, self.opset, log, self.name, beside=self.beside, code="ml-opset")
        return model
