"""What a model would compute otherwise with an option that was not given, and the note that tells of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog, Note

__all__ = ["Alternative", "tell_distance"]


@dataclass(frozen=True)
class Alternative:
    """A fact of the model as a whole: the model that an option would have made, which computes other numbers.

    `note` is the note in the log that tells of it, and `option` what a user writes for it.
    """

    model: Model
    note: Note
    option: str


def tell_distance(log: ChangeLog, alternative: Alternative, distance: str) -> None:
    """Add to the note of an alternative how far apart the two are."""
    index = log.notes.index(alternative.note)
    message = f"{alternative.note.message}. With {alternative.option}, {distance}"
    log.notes[index] = replace(alternative.note, message=message)
