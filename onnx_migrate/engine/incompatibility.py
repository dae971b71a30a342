"""The parts of a model that a runtime does not support, one value for each reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from onnx_migrate.errors import MigrateError, Where
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["Incompatibility", "counted", "objections_by_trial"]


@dataclass(frozen=True)
class Incompatibility:
    """Why a runtime does not support a model: `reason` in one clause, its first node, and the number of nodes.

    `where` is None for a reason about the whole model, for example its opset; then `nodes` is 0. `wrong` means that the
    runtime loads the node and computes wrong numbers.
    """

    reason: str
    where: Where | None = None
    nodes: int = 0
    wrong: bool = False

    @classmethod
    def of(cls, error: MigrateError) -> Incompatibility:
        """Return the incompatibility that an error describes, for the model or for its node."""
        return cls(error.reason, error.where, int(error.where is not None))


def counted(found: Iterable[Incompatibility]) -> tuple[Incompatibility, ...]:
    """Return one objection for each reason, at its first node, with the nodes added up."""
    first_by_reason: dict[str, Incompatibility] = {}
    for objection in found:
        first_objection = first_by_reason.get(objection.reason)
        first_by_reason[objection.reason] = (
            objection
            if first_objection is None
            else replace(first_objection, nodes=first_objection.nodes + objection.nodes)
        )
    return tuple(first_by_reason.values())


def objections_by_trial(item: Any, model: Model) -> tuple[Incompatibility, ...]:
    """Return the changes that a pass would make to a model, as reasons; `item` is the pass. The model stays unchanged."""
    copy, log = model.copy(), ChangeLog()
    try:
        result = item.run(copy, log)
    except MigrateError as error:
        return (Incompatibility.of(error),)
    if result.proto == model.proto:
        return ()
    changes = [Incompatibility(change.reason, change.where, 1) for change in log.changes]
    return counted(changes or [Incompatibility(note.message) for note in log.notes])
