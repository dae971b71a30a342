"""Which opsets a model can reach, and all that stands in the way: lifts that go on where one would stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from typing import Any

import onnx

from onnx_migrate.analysis.scope import Scope, scopes
from onnx_migrate.engine.lift import Lift
from onnx_migrate.errors import CannotMigrate, MigrateError, Where
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.opsets import minimal_ir_version, onnx_opset
from onnx_migrate.spec.schema import newest_opset

__all__ = ["Refusal", "Survey", "survey"]

Place = tuple[str, str]
"""A node: the path of its body and its first output."""


@dataclass(frozen=True)
class Refusal:
    """What is refused, and the opsets that it stands in the way of."""

    error: MigrateError
    opsets: tuple[int, ...]


@dataclass(frozen=True)
class Survey:
    """The opsets that a model can be brought to, rising, and the refusals of those that it cannot."""

    reachable: tuple[int, ...]
    refusals: tuple[Refusal, ...]


def survey(model: Model) -> Survey:
    """Find out by lifting copies of the model to every opset from its own on that the installed onnx knows.

    To the newest all nodes are lifted; a node's step is the same for another target unless its adapter asks what
    the target is, so to the others only those nodes are lifted whose adapters did.
    """
    proto, newest = model.proto, newest_opset()
    own = max(filter(None, _versions(proto)), default=None)
    if own is None:
        return Survey((), ())
    if own > newest:
        future = CannotMigrate(
            f"the model is of opset {own}, and the installed onnx knows up to {newest}",
            code="too-new",
            hint="install a newer onnx",
        )
        return Survey((), (Refusal(future, ()),))
    targets = range(own, newest + 1)
    blocked: dict[str, tuple[MigrateError, set[int]]] = {}

    def block(error: MigrateError, opsets: Iterable[int]) -> None:
        blocked.setdefault(str(error), (error, set()))[1].update(opsets)

    try:
        lift = _lift(model, newest, None)
        for place, error in lift.refusals.items():
            start = (error.where.to_version if error.where else None) or own
            block(error, [newest] if place in lift.asked else range(start, newest + 1))
        for target in targets[:-1] if lift.asked else ():
            for error in _lift(model, target, lift.asked).refusals.values():
                block(error, [target])
    except MigrateError as error:
        return Survey((), (Refusal(error, tuple(targets)),))
    refusals = tuple(Refusal(error, tuple(sorted(opsets))) for error, opsets in blocked.values())
    stopped = {opset for refusal in refusals for opset in refusal.opsets}
    return Survey(tuple(target for target in targets if target not in stopped), refusals)


def _versions(proto: onnx.ModelProto) -> list[int | None]:
    owners: list[onnx.ModelProto | onnx.FunctionProto] = [proto, *proto.functions]
    return [onnx_opset(owner.opset_import, ir_version=proto.ir_version) for owner in owners]


def _lift(model: Model, target: int, only: Set[Place] | None) -> _Onward:
    """Lift a copy of the model, of which nothing is kept; raises what is refused before a node is looked at."""
    copy = model.copy()
    sort_model(copy.proto)
    ir_version = max(copy.proto.ir_version, minimal_ir_version(target))
    lift = _Onward(copy.proto, target, ChangeLog(), only=only)
    driver = Driver(lift)
    bodies = scopes(copy.proto, copy.weights, result_ir_version=ir_version)
    for scope, version in zip(bodies, _versions(copy.proto), strict=True):
        if version is not None and version < target:
            driver.body(scope, version)
    return lift


class _Watched(Rewriter):
    """A rewriter that tells when its adapter asks for the target."""

    def __init__(self, asked: Callable[[], None], *arguments: Any) -> None:
        self._asked = asked
        super().__init__(*arguments)

    @property
    def target(self) -> int:
        """The opset the model is brought to."""
        self._asked()
        return self._target

    @target.setter
    def target(self, value: int) -> None:
        self._target = value


@dataclass
class _Onward(Lift):
    """A lift of all nodes, or of `only` some, that notes what is refused and goes on with the next node."""

    only: Set[Place] | None = None
    refusals: dict[Place, MigrateError] = field(default_factory=dict)
    asked: set[Place] = field(default_factory=set)
    """The nodes whose rewriting depends on the target."""

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return what `Lift` does; None for a node that is refused or is none of `only`."""
        self._place = scope.path, _output(node)
        if self.only is not None and self._place not in self.only:
            return None
        try:
            return super().start(node, scope, opset)
        except MigrateError as error:
            self.refuse(error)
            return None

    def refuse(self, error: MigrateError) -> None:
        """Record the error, so that the lift goes on with the next node."""
        self.refusals[self._place] = error

    def _rewriter(self, node: onnx.NodeProto, scope: Scope, to: int, where: Where) -> Rewriter:
        place = self._place
        return _Watched(lambda: self.asked.add(place), node, scope, to, self.target, where, self.keep)


def _output(node: onnx.NodeProto) -> str:
    return next((name for name in node.output if name), node.name)
