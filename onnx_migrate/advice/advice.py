"""What is to be said of one model and one release of a runtime."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from onnx_migrate.engine.objections import Objection
from onnx_migrate.errors import MigrateError
from onnx_migrate.spec.targets import Target

__all__ = ["Advice", "Standing"]


class Standing(str, Enum):
    """How a model stands with a runtime, by what is known of that."""

    AS_IS = "as it is"
    AFTER = "after migration"
    UNSURE = "perhaps"
    """The runtime tries models of newer opsets than it is known to run, and this one cannot be brought lower."""
    NO = "no"

    @property
    def rank(self) -> int:
        """A number that is higher for what is better."""
        return {Standing.AS_IS: 3, Standing.AFTER: 2, Standing.UNSURE: 1, Standing.NO: 0}[self]


@dataclass(frozen=True)
class Advice:
    """How a model stands with a release of a runtime.

    `objections` are why it does not take the model as it is. If a migration can help, `opset` and `ir_version` are those of its
    result, and `changes` the operators that change, as in "Clip-6 → Clip-13", with the number of nodes. If it cannot, `obstacles`
    are the reasons: what the migration refuses, or what the runtime computes wrongly in its result too. `warnings` hold for the
    result, and `helps` are what would help where the answer is no.
    """

    target: Target
    standing: Standing
    objections: tuple[Objection, ...] = ()
    opset: int | None = None
    ir_version: int | None = None
    changes: tuple[tuple[str, int], ...] = ()
    obstacles: tuple[Objection, ...] = ()
    warnings: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    refusal: MigrateError | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "runtime": self.target.as_dict(),
            "standing": self.standing.value,
            "objections": [item.as_dict() for item in self.objections],
            "opset": self.opset,
            "ir_version": self.ir_version,
            "changes": [{"operators": name, "nodes": count} for name, count in self.changes],
            "obstacles": [item.as_dict() for item in self.obstacles],
            "code": self.refusal.code if self.refusal else "",
            "warnings": list(self.warnings),
            "helps": list(self.helps),
        }
