"""Brings the nodes of the domain ai.onnx.ml to another opset, newer or older."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import newest_opset

from .domains.domain_steps import lift_domain, lower_domain, newest_import
from .migrate_opset import Newer

__all__ = ["DOMAIN", "LowerMl", "MigrateMl"]

DOMAIN = "ai.onnx.ml"


@register_pass
@dataclass(frozen=True)
class MigrateMl(Pass):
    """Migrate the ai.onnx.ml nodes of the main graph, all sub-graphs and local functions to an opset, each from its own.

    What they become in ai.onnx is written in forms that no opset from 13 on has changed. Raises CannotMigrate for
    a model that is newer than the target, unless `newer` says otherwise, and for every node that has no equal there.
    """

    name: ClassVar[str] = "migrate_ml"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    opset: int
    newer: Newer = "refuse"
    """What happens to a model of a newer opset: it is refused, stays at its opset, or waits for the pass lower_ml."""
    beside: int = 21
    """The ai.onnx opset for a body that imports none and gets ai.onnx nodes; 21 was released with ai.onnx.ml 5."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Migrate `model` in place."""
        newest = newest_opset(DOMAIN)
        if not 1 <= self.opset <= newest:
            raise UsageError(
                f"there is no opset {self.opset} of {DOMAIN}",
                code="no-such-opset",
                hint=f"give one from 1 to {newest}, the newest that the installed onnx supports",
            )
        lift_domain(
            model, DOMAIN, self.opset, log, self.name, newer=self.newer, beside=self.beside, code="ml-opset"
        )
        return model


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
