"""What a pass did to one place of a model, kept as values for the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from onnx_migrate.errors import Where

__all__ = ["Change", "ChangeLog", "Exactness", "Note"]


class Exactness(str, Enum):
    """How near the new form is to the old: bit for bit, other rounding, or right under an assumption."""

    EXACT = "exact"
    EQUIVALENT = "equivalent"
    ASSUMED = "assumed"


@dataclass(frozen=True)
class Change:
    """One node, before and after: operators, versions, inputs and the attributes that differ.

    `inputs_*` are value names in order, "" for one left out. `attributes_*` hold only what differs, as text.
    `emitted` names the operators of the helper nodes written beside it.
    """

    step: str
    where: Where
    operator_before: str
    version_before: int
    inputs_before: tuple[str, ...]
    attributes_before: tuple[tuple[str, str], ...]
    operator_after: str
    version_after: int
    inputs_after: tuple[str, ...]
    attributes_after: tuple[tuple[str, str], ...]
    emitted: tuple[str, ...]
    reason: str
    exactness: Exactness = Exactness.EXACT


@dataclass(frozen=True)
class Note:
    """A change that is not one node's: an initializer unlisted, a shape corrected, a pass left out.

    `code` is a stable slug, `severity` one of "info" and "warning".
    """

    step: str
    code: str
    message: str
    subject: str = ""
    severity: str = "info"


@dataclass
class ChangeLog:
    """Collects, in order, what the passes of one migration did."""

    changes: list[Change] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def note(
        self, step: str, code: str, message: str, *, subject: str = "", severity: str = "info"
    ) -> None:
        """Add a `Note`."""
        self.notes.append(Note(step, code, message, subject, severity))
