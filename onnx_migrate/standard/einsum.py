"""The grammar of Einsum's equations (onnx/docs/Operators.md, "Einsum"): labels of axes, by operand, and of the result."""

from __future__ import annotations

import string
from collections import Counter
from dataclasses import dataclass

__all__ = ["ELLIPSIS", "Equation", "NotAnEquation", "parsed", "shown"]

ELLIPSIS = "..."
"""The label of the axes that an equation does not name."""

_LETTERS = frozenset(string.ascii_letters)

_SHOWN = 80
"""Characters of an equation that a message shows."""


class NotAnEquation(ValueError):
    """A text is no equation; the message gives the reason, without the text."""


@dataclass(frozen=True)
class Equation:
    """The labels of each operand's axes, and of the result's. An ellipsis is one label that stands for several axes."""

    operands: tuple[tuple[str, ...], ...]
    result: tuple[str, ...]

    def fits_rank(self, operand: int, rank: int) -> bool:
        """Return whether an operand may have this number of axes."""
        labels = self.operands[operand]
        return rank >= len(labels) - 1 if ELLIPSIS in labels else rank == len(labels)


def parsed(text: str) -> Equation:
    """Return the equation in a text. Raises NotAnEquation."""
    compact = text.replace(" ", "")
    operand_terms, arrow, right = compact.partition("->")
    operands = tuple([_labels(term, repeated=True) for term in operand_terms.split(",")])
    # Without an arrow, the result has the labels that occur once.
    if not arrow:
        return Equation(operands, _implicit(operands))
    if "," in right:
        raise NotAnEquation("it has a comma behind '->'")
    result = _labels(right, repeated=False)
    operand_labels = {label for labels in operands for label in labels}
    unknown = next((label for label in result if label not in operand_labels and label != ELLIPSIS), "")
    if unknown:
        raise NotAnEquation(f"its result has the label {unknown!r}, which no operand has")
    return Equation(operands, result)


def shown(text: str) -> str:
    """Return an equation as messages quote it, without its middle if it is long."""
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}")


def _labels(term: str, *, repeated: bool) -> tuple[str, ...]:
    """Return the labels of one operand, in which they may be `repeated`, or of the result."""
    before, dots, after = term.partition(ELLIPSIS)
    for letter in (*before, *after):
        if letter not in _LETTERS:
            raise NotAnEquation(_reason(letter, term))
    labels = (*before, *([ELLIPSIS] if dots else []), *after)
    twice = next((label for label, count in Counter(labels).items() if count > 1), "")
    if twice and not repeated:
        raise NotAnEquation(f"its result has the label {twice!r} twice")
    return labels


def _reason(letter: str, term: str) -> str:
    if letter == ".":
        return (
            "it has two ellipses in one term"
            if term.count(ELLIPSIS) > 1
            else "it has a dot outside an ellipsis"
        )
    if letter in "->":
        return "it has '-' or '>' outside its one '->'"
    return f"it has {letter!r}, and labels are the letters a-z and A-Z"


def _implicit(operands: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """Return the labels of a result that the equation leaves out: those that occur once, in the order of the alphabet."""
    counts = Counter(label for labels in operands for label in labels)
    named = sorted(label for label, count in counts.items() if count == 1 and label != ELLIPSIS)
    return (ELLIPSIS, *named) if ELLIPSIS in counts else tuple(named)
