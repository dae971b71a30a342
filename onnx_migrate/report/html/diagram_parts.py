"""The drawing of a changed node as values: boxes with slots, and the texts in them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Attribute", "Box", "Drawing", "Slot", "Texts"]


@dataclass(frozen=True)
class Slot:
    """An input or output: its formal name (`label`), its text, and the tooltip (`title`).

    `text` and `title` are indices into the drawing's `Texts`. `mark` is "removed", "new", "inner" if a node of the same
    drawing reads the value, or "".
    """

    label: str
    text: int
    title: int
    mark: str = ""


@dataclass(frozen=True)
class Attribute:
    """An attribute; `value` is an index into the drawing's `Texts`, `mark` is "removed", "new" or ""."""

    name: str
    value: int
    mark: str = ""


@dataclass(frozen=True)
class Box:
    """A node. `constants` are inputs that are constants of the model, `more` counts inputs and outputs not drawn.

    `version` is 0 if unknown, as for operators of other domains. `mark` is "removed", "new", "blocked" or "".
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
    """A node before and after; `after` has rows from top to bottom, whose boxes read values of the rows above.

    Drawings compare equal if they differ only in texts: names, and values of constants and attributes.
    """

    before: Box
    after: tuple[tuple[Box, ...], ...]


class Texts:
    """The texts of a drawing. A value, or an attribute that is kept, has one text, however often it is drawn."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.labels: list[str] = []
        """The label of each text: the formal name of a slot, or the name of an attribute."""
        self._indices: dict[tuple[str, ...], int] = {}

    def index(self, key: tuple[str, ...], text: str, label: str) -> int:
        """Return the index of the text with this key; it is added if it is new."""
        if key not in self._indices:
            self._indices[key] = len(self.texts)
            self.texts.append(text)
            self.labels.append(label)
        return self._indices[key]
