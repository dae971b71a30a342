"""Migrates the nodes of the domain ai.onnx.ml, which migrate_opset does not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.lift import Lift
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.legality import check_legal
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.spec.ir_versions import minimal_ir_version
from onnx_migrate.spec.opsets import imported, onnx_opset, set_onnx_opset
from onnx_migrate.spec.schema import is_onnx, newest_opset

from .migrate_opset import Newer

__all__ = ["DOMAIN", "MigrateMl"]

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
        proto = model.proto
        owners: list[onnx.ModelProto | onnx.FunctionProto] = [proto, *proto.functions]
        versions = [imported(owner.opset_import, DOMAIN) for owner in owners]
        own = max((version for version in versions if version is not None), default=None)
        if own is None:
            return model
        target = max(self.opset, own) if self.newer == "keep" else self.opset
        if own > target and self.newer == "refuse":
            raise CannotMigrate(
                f"the model has opset {own} of {DOMAIN}, which is newer than the target {target}, and lowering was not asked"
                " for",
                code="downgrade",
                hint=f"leave --no-lower out, or ask for {target}+ to keep newer models as they are",
            )
        if all(version is None or version >= target for version in versions):
            return model
        for path in sort_model(proto):
            log.note(self.name, "sorted", f"sorted the nodes of {path} topologically", subject=path)
        ir_version = max(proto.ir_version, minimal_ir_version(target, DOMAIN))
        driver = Driver(Lift(proto, target, log, domain=DOMAIN, pass_name=self.name))
        bodies = scopes(proto, model.weights, result_ir_version=ir_version)
        for scope, owner, version in zip(bodies, owners, versions, strict=True):
            if version is None or version >= target:
                continue
            driver.body(scope, version)
            for entry in owner.opset_import:
                if entry.domain == DOMAIN:
                    entry.version = target
            none = onnx_opset(owner.opset_import, ir_version=proto.ir_version) is None
            if none and any(is_onnx(node.domain) for node in scope.body.node):
                set_onnx_opset(owner, self.beside)
                ir_version = max(ir_version, minimal_ir_version(self.beside))
        if own <= target:
            log.note(self.name, "ml-opset", f"{DOMAIN} {own} became {target}", subject="model")
        if ir_version != proto.ir_version:
            log.note(
                self.name, "ir-version", f"IR version {proto.ir_version} became {ir_version}", subject="model"
            )
            proto.ir_version = ir_version
        remove_dead_values(proto, driver.dead_values)
        check_legal(proto, DOMAIN)
        return model
