"""The picture of a changed node as values: boxes with slots, and the texts in them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Attribute", "Box", "Drawing", "Slot", "Texts"]


@dataclass(frozen=True)
class Slot:
    """An input or output: the operator's name for it, what is written there, and what the pointer tells of it.

    `text` and `title` are places in the drawing's `Texts`. `mark` is "gone", "new", "inner" where a node of the same
    drawing reads it, or "".
    """

    label: str
    text: int
    title: int
    mark: str = ""


@dataclass(frozen=True)
class Attribute:
    """An attribute; `value` is a place in the drawing's `Texts`, `mark` is "gone", "new" or ""."""

    name: str
    value: int
    mark: str = ""


@dataclass(frozen=True)
class Box:
    """A node. `constants` are inputs whose value the model fixes, `more` counts inputs and outputs not drawn.

    `version` is 0 where it is not known, as for operators of other domains. `mark` is "gone", "new", "blocked" or "".
    """

    operator: str
    version: int
    kind: str
    inputs: tuple[Slot, ...]
    constants: tuple[Slot, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Slot, ...]
    more: int
    mark: str


@dataclass(frozen=True)
class Drawing:
    """What stood there, and what stands there now: rows from top to bottom, each of boxes that read from rows above.

    Drawings are equal when they differ in texts alone: in names, and values of constants and attributes.
    """

    before: Box
    after: tuple[tuple[Box, ...], ...]


class Texts:
    """The texts of a drawing. What is one thing (a value, an attribute that stays) is one text, however often drawn."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.labels: list[str] = []
        """What each text is: the name of a slot or an attribute."""
        self._places: dict[tuple[str, ...], int] = {}

    def place(self, thing: tuple[str, ...], text: str, label: str) -> int:
        """Return the place of a thing's text."""
        if thing not in self._places:
            self._places[thing] = len(self.texts)
            self.texts.append(text)
            self.labels.append(label)
        return self._places[thing]
