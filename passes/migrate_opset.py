"""Migrates every node of a model to the target opset."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.helping_passes import AdvisingPass, Retry
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.opset_bounds import OpsetBounds
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.engine.steps.lift import Lift
from onnx_migrate.errors import CannotMigrate, MigrateError, UsageError
from onnx_migrate.facts.scope import scopes
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import bodies as bodies_of
from onnx_migrate.model.graphs import function_path, nested_nodes, node_label
from onnx_migrate.model.interface import lists_some_initializers, unlist_initializers
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.rewrite.annotations import set_ir_version
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.opsets import (
    body_opsets,
    newest_onnx_opset,
    onnx_opset,
    owners,
    remove_repeated_imports,
    set_onnx_opset,
)
from onnx_migrate.standard.schema import is_onnx, newest_opset, signature_at
from onnx_migrate.standard.unlisted_operators import is_runtime_operator

if TYPE_CHECKING:
    from .target_opsets import Newer

__all__ = ["KEEPABLE", "MigrateOpset"]

KEEPABLE = frozenset({"tf_half_pixel_for_nn"})
"""Attribute values that the standard has removed and ONNX Runtime still accepts at any opset."""


@register_pass
@dataclass(frozen=True)
class MigrateOpset(AdvisingPass):
    """Migrate the main graph, all sub-graphs and local functions to an ai.onnx opset, each from its own.

    Raises CannotMigrate for a model that is newer than the target, unless `newer` says otherwise, and for every node
    that has no equal there.
    """

    name: ClassVar[str] = "migrate_opset"
    title: ClassVar[str] = "raising the opset"
    ensures: ClassVar[frozenset[ModelProperty]] = frozenset(
        {ModelProperty.SORTED, ModelProperty.TARGET_OPSET}
    )
    opset: int
    newer: Newer = "refuse"
    """What to do with a model of a newer opset: raise an error, keep its opset, or leave it to the pass lower_opset."""
    unlist: bool = True
    """Whether initializers are removed from the graph's inputs, which is allowed from IR version 4 on."""
    keep: frozenset[str] = frozenset()
    """The values of `KEEPABLE` that stay in the model. Nodes with other such values get standard values, or are an error."""
    keep_ir: bool = False
    """Whether the IR version stays; else it becomes at least the one that was released with the opset."""
    bounds: OpsetBounds | None = None
    """Reasons that may keep the model below `opset`, or demand a newer one."""
    noted: bool = False
    """Whether to note that the model keeps its opset, since the user did not give one."""

    def advice_on(self, error: MigrateError, retry: Retry) -> tuple[Advice, ...]:
        """Return the advice on an error; on a result that does not load, with the newest opset at which it does."""
        opset = self._newest_loadable(retry) if error.code == "does-not-load" else None
        if opset is None:
            return error.advice
        return (Advice(f"opset {opset} is the newest at which it loads", tried=True), *error.advice)

    def _newest_loadable(self, retry: Retry) -> int | None:
        """Return the newest opset below the result's at which it loads as the original does; None if none is found in time."""
        target, own = (
            onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version)
            for model in (retry.failed, retry.original)
        )
        for opset in range((target or 0) - 1, (own or 0) - 1, -1) if target and own else ():
            # Each try loads a model, which takes time.
            if retry.is_over:
                return None
            if retry.loads({self.name: replace(self, opset=opset, newer="refuse")}):
                return opset
        return None

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Migrate `model` in place.

        The bounds may demand a newer opset. If a node then has no equivalent at the first opset that they allow, the pass tries
        the next ones, and returns another model.
        """
        self._check_options()
        self._one_import_each(model.proto, log)
        newest = newest_onnx_opset(model.proto) or None
        if self.noted and newest is not None:
            log.note(self.name, "opset-kept", f"the model keeps its opset, {newest}; --opset N changes it")
        target = self._target(newest, model, log)
        last = self._last(target, newest, model)
        for opset in range(target, last):
            # A failed try must leave the model unchanged.
            whole, trial = model.copy(), log.trial()
            try:
                return self._reach(whole, opset, log)
            except CannotMigrate:
                trial.roll_back()
        return self._reach(model, last, log)

    def _last(self, target: int, newest: int | None, model: Model) -> int:
        """Return the newest opset that may be reached instead of the target, which the bounds raised, else the target."""
        if self.bounds is None or target <= max(self.opset, newest or 0):
            return target
        return max(target, self.bounds.newest(model, self.name))

    def _reach(self, model: Model, target: int, log: ChangeLog) -> Model:
        """Migrate `model` in place to an opset."""
        proto = model.proto
        overridable = lists_some_initializers(proto)
        bodies = body_opsets(proto)
        newest = newest_onnx_opset(proto) or None
        for path in sort_model(proto):
            log.note(self.name, "sorted", f"sorted the nodes of {path} topologically", subject=path)
        ir_version = proto.ir_version
        if newest is not None and newest < target:
            ir_version = ir_version if self.keep_ir else max(ir_version, minimal_ir_version(target))
        driver = Driver(Lift(proto, target, log, keep=self.keep))
        types = TypeTable(proto)
        for scope, (owner, version) in zip(
            scopes(proto, model.weights, result_ir_version=ir_version, types=types), bodies, strict=True
        ):
            if version is not None:
                # At the target too: a node may have the form of an older version than its body imports.
                driver.body(scope, version)
                if version < target:
                    set_onnx_opset(owner, target)
        if types.outputs is not None:
            log.record_fact("", "", types.outputs)
        set_ir_version(proto, ir_version, log, self.name)
        if self.unlist and overridable:
            log.note(
                self.name,
                "overridable",
                "some initializers are also inputs and stay so, because callers can override them",
            )
        elif self.unlist and ir_version >= 4:
            gone = unlist_initializers(proto.graph)
            if gone:
                log.note(
                    self.name,
                    "unlisted",
                    f"removed {count_of(len(gone), 'initializer')} from the inputs",
                    subject=gone[0],
                )
        remove_dead_values(proto, driver.dead_values)
        self._note_runtime_operators(proto, log)
        return model

    def _note_runtime_operators(self, proto: onnx.ModelProto, log: ChangeLog) -> None:
        """Write a note on operators that only ONNX Runtime has in ai.onnx: no opset of the standard gives them a meaning."""
        counts: dict[str, int] = {}
        for located in bodies_of(proto):
            opset = onnx_opset(located.owner.opset_import, ir_version=proto.ir_version)
            for (domain, operator), count in located.operators.items():
                node = onnx.NodeProto(domain=domain, op_type=operator)
                # An operator of the same name may be standard at another opset.
                if opset is not None and is_runtime_operator(node, opset):
                    counts[operator] = counts.get(operator, 0) + count
        for operator, count in sorted(counts.items()):
            log.note(
                self.name,
                "runtime-operator",
                f"kept {count_of(count, 'node')} of {operator}, which ONNX Runtime has in ai.onnx and the standard has not",
                subject=operator,
            )

    def _one_import_each(self, proto: onnx.ModelProto, log: ChangeLog) -> None:
        """Keep one import of each domain. If the versions differ for a node, the last import wins, like in ONNX Runtime."""
        for owner in owners(proto):
            name = "the model" if isinstance(owner, onnx.ModelProto) else function_path(owner)
            for domain, imported_versions in remove_repeated_imports(owner):
                nodes = nested_nodes(owner.graph.node if isinstance(owner, onnx.ModelProto) else owner.node)
                unlike = next((node for node in nodes if _differs(node, domain, imported_versions)), None)
                text = f"{name} imports {domain or 'ai.onnx'} more than once, as {' and '.join(map(str, imported_versions))}"
                if unlike is None:
                    log.note(
                        self.name, "repeated-import", f"{text}: all nodes mean the same by each", subject=name
                    )
                else:
                    log.note(
                        self.name,
                        "ambiguous-opset",
                        f"{text}, and {node_label(unlike)!r} ({unlike.op_type}) differs between them; like ONNX Runtime, we use"
                        f" the last one, {imported_versions[-1]}",
                        subject=node_label(unlike),
                        severity="warning",
                    )

    def _check_options(self) -> None:
        if not self.keep <= KEEPABLE:
            raise UsageError(
                f"{', '.join(sorted(self.keep - KEEPABLE))} cannot be kept",
                hint=f"only {', '.join(sorted(KEEPABLE))} can be kept",
            )
        if not 1 <= self.opset <= newest_opset():
            raise UsageError(
                f"there is no opset {self.opset}",
                code="no-such-opset",
                hint=f"give one from 1 to {newest_opset()}, the newest that the installed onnx supports",
            )

    def _target(self, newest: int | None, model: Model, log: ChangeLog) -> int:
        """Return the opset to reach; `newest` is the newest that a body imports. Raises CannotMigrate for an older target."""
        # The installed onnx has no schemas of such a model.
        if newest is not None and newest > newest_opset():
            raise CannotMigrate(
                f"the model has opset {newest}, but the installed onnx supports only up to {newest_opset()}",
                code="too-new",
                hint="install a newer onnx",
            )
        # The target is never below the model's own opset here.
        target = max(self.opset, newest or 0) if self.newer == "keep" else self.opset
        if self.bounds is not None:
            target = self.bounds.to_raise(model, target, log, self.name, lowered_later=self.newer == "lower")
        if newest is not None and newest > target and self.newer == "refuse":
            raise CannotMigrate(
                f"the model has opset {newest}, which is newer than the target {target}, and --no-lower forbids an older one",
                code="downgrade",
                hint=(
                    Advice("remove --no-lower", options={"lower": True}),
                    Advice(f"use {target}+ to keep newer models unchanged", options={"opset": f"{target}+"}),
                ),
            )
        return target


def _differs(node: onnx.NodeProto, domain: str, opsets: list[int]) -> bool:
    """Return whether a node of `domain` is of another version of its operator by some of these opsets."""
    if not (is_onnx(node.domain) if not domain else node.domain == domain):
        return False
    forms = [signature_at(node.domain, node.op_type, opset) for opset in opsets]
    return len({form.since_version if form else None for form in forms}) > 1
