"""Advice on an error: words, the options that follow them, and whether onnx-migrate tried them on the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

__all__ = ["FIX_DIMS", "Advice", "Chosen", "Hint", "advice_of", "advice_text", "untried"]

_UNTRIED = "not tried: "


class Chosen(Enum):
    """A value of an option that depends on the model, so that the trial chooses an example."""

    DIMS = "a size for each open dim of the inputs"


@dataclass(frozen=True)
class Advice:
    """One possible solution of an error.

    `options` are the keywords of `migrate` that follow the advice; without any, nobody but the user can follow it.
    """

    text: str
    tried: bool = False
    """Whether the advice works: onnx-migrate tried it on the model, or it only corrects the argument that is wrong."""
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.text

    @property
    def fixes_dims(self) -> bool:
        """Whether the advice is to fix open dims, at sizes that the trial chooses."""
        return Chosen.DIMS in self.options.values()

    def worked(self, example: str = "") -> Advice:
        """Return the advice as one that a trial proved, with the example that the trial used."""
        text = f"{self.text}, for example {example}" if example else self.text
        return replace(self, text=text, tried=True)


Hint = str | Advice | Sequence[Advice]
"""The form in which an error takes advice; a bare text has no options."""

FIX_DIMS = Advice("fix the dims of the model's inputs with --fix-shape", options={"fix_shape": Chosen.DIMS})


def advice_of(hint: Hint, *, tried: bool) -> tuple[Advice, ...]:
    """Return a hint as separate pieces of advice; `tried` marks a bare text as tried."""
    if isinstance(hint, str):
        return (Advice(hint, tried),) if hint else ()
    return (hint,) if isinstance(hint, Advice) else tuple(hint)


def advice_text(advice: Iterable[Advice]) -> str:
    """Return all advice as one text, with a mark in front of untried advice."""
    every = list(advice)
    works = "; ".join(piece.text for piece in every if piece.tried)
    rest = "; ".join(piece.text for piece in every if not piece.tried)
    return "; ".join(filter(None, (works, untried(rest) if rest else "")))


def untried(text: str) -> str:
    """Return advice that nobody tried on the model, with the mark that says so."""
    return f"{_UNTRIED}{text}"
