"""What of a model a runtime does not take as it is, one value for each reason."""

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
    """Why a runtime does not take a model: `reason` in one clause, the first node that it holds for, and how many nodes.

    `where` is None for what is said of the model as a whole, its opset for example; then `nodes` is 0. `wrong` says that the
    runtime loads the node and computes wrong numbers.
    """

    reason: str
    where: Where | None = None
    nodes: int = 0
    wrong: bool = False

    @classmethod
    def of(cls, error: MigrateError) -> Incompatibility:
        """Return what an error says of a model, or of its node."""
        return cls(error.reason, error.where, int(error.where is not None))


def counted(found: Iterable[Incompatibility]) -> tuple[Incompatibility, ...]:
    """Return one objection for each reason, at its first node, with the nodes added up."""
    kept: dict[str, Incompatibility] = {}
    for item in found:
        known = kept.get(item.reason)
        kept[item.reason] = item if known is None else replace(known, nodes=known.nodes + item.nodes)
    return tuple(kept.values())


def objections_by_trial(item: Any, model: Model) -> tuple[Incompatibility, ...]:
    """Return what a pass would change in a model, which stays as it is; `item` is the pass."""
    copy, log = model.copy(), ChangeLog()
    try:
        result = item.run(copy, log)
    except MigrateError as error:
        return (Incompatibility.of(error),)
    if result.proto == model.proto:
        return ()
    changes = [Incompatibility(change.reason, change.where, 1) for change in log.changes]
    return counted(changes or [Incompatibility(note.message) for note in log.notes])
