"""Finds the opsets to which a model can be migrated, and every node that prevents the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Any

import onnx

from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.steps.lift import Lift
from onnx_migrate.engine.steps.lower import OLDEST
from onnx_migrate.engine.steps.lower_model import lower_model
from onnx_migrate.engine.steps.step_modules import load_plugins
from onnx_migrate.engine.steps.step_visitor import LoweringRefusal
from onnx_migrate.engine.validity import accepted
from onnx_migrate.errors import CannotMigrate, MigrateError, Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.opsets import body_opsets, imported, newest_onnx_opset, owners
from onnx_migrate.standard.schema import newest_opset

__all__ = [
    "Reachability",
    "ReachableDomain",
    "Refusal",
    "find_reachable_domains",
    "find_reachable_opsets",
]

NodeKey = tuple[str, str]
"""Identifies a node: the path of its body and its first output, or its name if it has none."""


@dataclass(frozen=True)
class Refusal:
    """The error for a node, and the opsets that it makes unreachable, rising."""

    error: MigrateError
    opsets: tuple[int, ...]


@dataclass(frozen=True)
class Reachability:
    """The opsets to which a model can be migrated, rising, and the refusals that prevent the others."""

    opsets: tuple[int, ...]
    refusals: tuple[Refusal, ...]

    @classmethod
    def of(cls, opsets: Iterable[int], refused: Iterable[tuple[MigrateError, set[int]]]) -> Reachability:
        """Return the opsets that no error prevents, and each error with the opsets that it prevents."""
        refusals = tuple(Refusal(error, tuple(sorted(prevented))) for error, prevented in refused)
        stopped = {opset for refusal in refusals for opset in refusal.opsets}
        return cls(tuple(opset for opset in opsets if opset not in stopped), refusals)


@dataclass(frozen=True)
class ReachableDomain:
    """A custom domain that a plug-in knows, the newest of its opsets that the model imports, and the reachable opsets."""

    domain: str
    opset: int
    reachability: Reachability


def find_reachable_domains(
    model: Model, pipeline_to: Callable[[dict[str, int]], Pipeline]
) -> tuple[ReachableDomain, ...]:
    """Try to convert a copy of the model to every opset of each custom domain that it imports and a plug-in knows.

    `pipeline_to` returns the default pipeline for opsets by domain.

    Raises UsageError for a plug-in that cannot be loaded.
    """
    load_plugins()
    domains = {entry.domain for owner in owners(model.proto) for entry in owner.opset_import} - {
        "",
        "ai.onnx",
        "ai.onnx.ml",
    }
    reachable = []
    for domain in sorted(domains):
        # Each function imports domains at a version of its own.
        own = max(imported(owner.opset_import, domain) or 0 for owner in owners(model.proto))
        refused: dict[str, tuple[MigrateError, set[int]]] = {}
        opsets = range(1, newest_opset(domain) + 1) if not domain.startswith("ai.onnx.") else ()
        for opset in opsets:
            try:
                # A trial tells more than the registry, because a step may refuse a node of this model.
                migrations = pipeline_to({domain: opset})
                Pipeline(tuple(entry for entry in migrations if entry.name in _DOMAIN_PASSES)).run(
                    model, ChangeLog()
                )
            except MigrateError as error:  # noqa: PERF203
                refused.setdefault(error.reason, (error, set()))[1].add(opset)
        if opsets:
            reachable.append(ReachableDomain(domain, own, Reachability.of(opsets, refused.values())))
    return tuple(reachable)


_DOMAIN_PASSES = ("migrate_domains", "lower_domains")


def find_reachable_opsets(model: Model) -> Reachability:
    """Try a lift of a copy of the model to every newer opset, and a lowering of a copy to every older one.

    Upward, this function lifts all nodes to the newest opset that the installed onnx supports. A node takes the same steps
    for another target, unless one of its adapters reads `Rewriter.target`. So only nodes of such adapters are lifted to each
    of the other opsets. Downward, one lowering to `OLDEST` is enough: a node that refuses a step stops there, and blocks all
    older opsets.
    """
    invalid: MigrateError | None = None
    try:
        # An invalid model reaches no opset, and the report gives the reason.
        model = accepted(model)
    except MigrateError as failure:
        invalid = failure
    proto, newest = model.proto, newest_opset()
    own = newest_onnx_opset(proto) or None
    if own is None:
        return Reachability((), ())
    if own > newest:
        future = CannotMigrate(
            f"the model imports opset {own}, but the installed onnx supports opsets up to {newest}",
            code="too-new",
            hint="install a newer onnx",
        )
        return Reachability((), (Refusal(future, ()),))
    # A version below 1 is invalid, and the ranges below must not contain it.
    own = max(own, 1)  # the checks below refuse opsets lower than 1
    targets = range(own, newest + 1)
    older = range(OLDEST, own)
    if invalid is not None:
        return Reachability((), (Refusal(invalid, (*older, *targets)),))
    blocked: dict[str, tuple[MigrateError, set[int]]] = {}

    def block(error: MigrateError, opsets: Iterable[int]) -> None:
        blocked.setdefault(str(error), (error, set()))[1].update(opsets)

    try:
        lift = _lift(model, newest, None)
        # A node that refuses a step blocks that step's opset and all later ones.
        for key, error in lift.refusals.items():
            start = (error.where.to_version if error.where else None) or own
            # A refusal of such a node holds for this target only.
            block(error, [newest] if key in lift.target_dependent else range(start, newest + 1))
        for target in targets[:-1] if lift.target_dependent else ():
            for error in _lift(model, target, lift.target_dependent).refusals.values():
                block(error, [target])
        for refusal in _lower(model) if older else ():
            # A node that refuses a step down blocks all opsets below it.
            block(refusal.error, range(OLDEST, refusal.nearest))
    except MigrateError as error:
        return Reachability((), (Refusal(error, (*older, *targets)),))
    return Reachability.of((*older, *targets), blocked.values())


def _lift(model: Model, target: int, only: Set[NodeKey] | None) -> _LiftPastRefusals:
    """Lift a copy of the model and discard it; raises the errors that do not belong to one node."""
    copy = model.copy()
    sort_model(copy.proto)
    ir_version = max(copy.proto.ir_version, minimal_ir_version(target))
    lift = _LiftPastRefusals(copy.proto, target, ChangeLog(), only=only)
    driver = Driver(lift)
    bodies = scopes(copy.proto, copy.weights, result_ir_version=ir_version)
    for scope, (_, version) in zip(bodies, body_opsets(copy.proto), strict=True):
        if version is not None and version < target:
            driver.body(scope, version)
    return lift


def _lower(model: Model) -> tuple[LoweringRefusal, ...]:
    """Lower a copy of the model to the oldest opset, and return the refusals of its nodes."""
    copy = model.copy()
    sort_model(copy.proto)
    return lower_model(copy, OLDEST, ChangeLog(), "lower_opset").refusals


class _TargetRecorder(Rewriter):
    """A rewriter that calls `on_read` when its adapter reads the target."""

    def __init__(self, on_read: Callable[[], None], *arguments: Any) -> None:
        self._on_read = on_read
        super().__init__(*arguments)

    @property
    def target(self) -> int:
        """The opset that the model has in the end."""
        self._on_read()
        return self._target

    @target.setter
    def target(self, value: int) -> None:
        self._target = value


@dataclass
class _LiftPastRefusals(Lift):
    """A lift of all nodes, or of those in `only`, that records refusals and goes on with the next node."""

    only: Set[NodeKey] | None = None
    refusals: dict[NodeKey, MigrateError] = field(default_factory=dict)
    target_dependent: set[NodeKey] = field(default_factory=set)
    """The nodes with an adapter that read the target."""

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return what `Lift` returns; None also for a node that refuses, or one outside `only`."""
        self._key = scope.path, _output(node)
        if self.only is not None and self._key not in self.only:
            return None
        try:
            return super().start(node, scope, opset)
        except MigrateError as error:
            self.handle_refusal(error)
            return None

    def handle_refusal(self, error: MigrateError) -> None:
        """Record the error, so that the lift goes on with the next node."""
        self.refusals[self._key] = error

    def _rewriter(self, node: onnx.NodeProto, scope: Scope, to: int, where: Where) -> Rewriter:
        key = self._key
        return _TargetRecorder(
            lambda: self.target_dependent.add(key), node, scope, to, self.target, where, self.keep
        )


def _output(node: onnx.NodeProto) -> str:
    return next((name for name in node.output if name), node.name)
