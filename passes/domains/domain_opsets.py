"""The passes that migrate the nodes of ai.onnx.ml, and of custom domains by the steps of plug-ins (docs/library.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.schema import ML, newest_opset

from ..target_opsets import Newer, check_opset
from .domain_steps import lift_domain, lower_domain, newest_import

__all__ = ["CustomOpset", "LowerDomains", "LowerMl", "MigrateDomains", "MigrateMl"]


@register_pass
@dataclass(frozen=True)
class MigrateMl(Pass):
    """Migrate the ai.onnx.ml nodes of the main graph, all sub-graphs and local functions to an opset, each from its own.

    The ai.onnx nodes that replace them have the same form in opset 13 and every later one. Raises CannotMigrate for
    a model that is newer than the target, unless `newer` says otherwise. Also raises it for a node without an equivalent there.
    """

    name: ClassVar[str] = "migrate_ml"
    title: ClassVar[str] = "raising the ai.onnx.ml opset"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    opset: int
    newer: Newer = "refuse"
    """What to do with a model of a newer opset: raise an error, keep its opset, or leave it to the pass lower_ml."""
    beside: int = 21
    """The ai.onnx opset for a body that imports none and gets ai.onnx nodes; 21 was released with ai.onnx.ml 5."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Migrate `model` in place."""
        newest = newest_opset(ML)
        if not 1 <= self.opset <= newest:
            raise UsageError(
                f"there is no opset {self.opset} of {ML}",
                code="no-such-opset",
                hint=f"give one from 1 to {newest}, the newest that the installed onnx supports",
            )
        lift_domain(model, ML, self.opset, log, self.name, newer=self.newer, beside=self.beside)
        return model


@register_pass
@dataclass(frozen=True)
class LowerMl(Pass):
    """Lower the ai.onnx.ml nodes of the main graph, all sub-graphs and local functions to an older opset; older bodies stay.

    The ai.onnx nodes that replace them have the same form in opset 9 and every later one. Raises CannotMigrate if a node
    has no equivalent at the target. The error names the nearest opset that can be reached.
    """

    name: ClassVar[str] = "lower_ml"
    title: ClassVar[str] = "lowering the ai.onnx.ml opset"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    opset: int
    beside: int = 13
    """The ai.onnx opset for a body that imports none and gets ai.onnx nodes."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Lower `model` in place."""
        if self.opset < 1 and newest_import(model.proto, ML) is not None:
            raise UsageError(f"there is no opset {self.opset} of {ML}", code="no-such-opset")
        lower_domain(model, ML, self.opset, log, self.name, beside=self.beside)
        return model


@dataclass(frozen=True)
class CustomOpset:
    """The opset of a custom domain to reach, and the policy for a model of a newer one."""

    opset: int
    newer: Newer = "refuse"


@register_pass
@dataclass(frozen=True)
class MigrateDomains(Pass):
    """Migrate the nodes of custom domains in the main graph, all sub-graphs and local functions, each from its own opset.

    The ai.onnx nodes that replace them need forms of the model's opset, or of the target if that is newer. Raises
    CannotMigrate for a model that is newer than the target, unless the pass lower_domains handles it. Also raises it for a
    node without an equivalent there.
    """

    name: ClassVar[str] = "migrate_domains"
    title: ClassVar[str] = "raising the opsets of custom domains"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    opsets: Mapping[str, CustomOpset] = field(default_factory=dict)
    """By domain."""
    beside: int = 17
    """The ai.onnx opset for a body that imports none and gets ai.onnx nodes."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Migrate `model` in place."""
        for domain, wanted_opset in sorted(self.opsets.items()):
            check_opset(domain, wanted_opset.opset)
            lift_domain(
                model,
                domain,
                wanted_opset.opset,
                log,
                self.name,
                newer=wanted_opset.newer,
                beside=self.beside,
            )
        return model


@register_pass
@dataclass(frozen=True)
class LowerDomains(Pass):
    """Lower the nodes of custom domains to older opsets; older bodies stay.

    The pass lower_opset converts the resulting ai.onnx nodes to an older opset. Raises CannotMigrate if a node has no
    equivalent at the target. The error names the nearest opset that can be reached.
    """

    name: ClassVar[str] = "lower_domains"
    title: ClassVar[str] = "lowering the opsets of custom domains"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    opsets: Mapping[str, CustomOpset] = field(default_factory=dict)
    beside: int = 17

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Lower `model` in place."""
        for domain, wanted_opset in sorted(self.opsets.items()):
            if wanted_opset.newer == "lower":
                lower_domain(model, domain, wanted_opset.opset, log, self.name, beside=self.beside)
        return model
