"""Brings the nodes of the domain ai.onnx.ml down to an older opset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.lower import Lower
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.spec.opsets import imported, onnx_opset, set_onnx_opset
from onnx_migrate.spec.schema import is_onnx

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
        proto = model.proto
        owners: list[onnx.ModelProto | onnx.FunctionProto] = [proto, *proto.functions]
        versions = [imported(owner.opset_import, DOMAIN) for owner in owners]
        newest = max((version for version in versions if version is not None), default=0)
        if newest <= self.opset:
            return model
        if self.opset < 1:
            raise UsageError(f"there is no opset {self.opset} of {DOMAIN}", code="no-such-opset")
        driver = Driver(lower := Lower(proto, self.opset, log, domain=DOMAIN, pass_name=self.name))
        bodies = scopes(proto, model.weights, result_ir_version=max(4, proto.ir_version))
        for scope, owner, version in zip(bodies, owners, versions, strict=True):
            if version is None or version <= self.opset:
                continue
            driver.body(scope, version)
            for entry in owner.opset_import:
                if entry.domain == DOMAIN:
                    entry.version = self.opset
            none = onnx_opset(owner.opset_import, ir_version=proto.ir_version) is None
            if none and any(is_onnx(node.domain) for node in scope.body.node):
                set_onnx_opset(owner, self.beside)
        if lower.refusals:
            nearest = max(item.nearest for item in lower.refusals)
            first = next(item.error for item in lower.refusals if item.nearest == nearest)
            hint = f"{first.hint}; " if first.hint else ""
            raise CannotMigrate(
                first.reason,
                code=first.code,
                where=first.where,
                hint=f"{hint}opset {nearest} of {DOMAIN} can be reached",
            )
        log.note(self.name, "ml-opset", f"{DOMAIN} {newest} became {self.opset}", subject="model")
        remove_dead_values(proto, driver.dead_values)
        check_legal(proto, DOMAIN)
        return model
