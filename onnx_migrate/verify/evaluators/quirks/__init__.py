"""Nodes that are written in another way before ONNX Runtime loads a model, since its kernels do not compute what operators say.

Each file with a `QUIRK` is one of them; the others in this folder are its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from onnx_migrate.installed import objects_in
from onnx_migrate.verify.evaluators.interface import Runnable

__all__ = ["Quirk", "Rewritten", "quirks", "without_quirks"]


@dataclass(frozen=True)
class Rewritten:
    """A model to load in place of another, with notes on what was written, and entries of the session's configuration."""

    runnable: Runnable
    notes: tuple[str, ...] = ()
    entries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Quirk:
    """A difference between kernels of ONNX Runtime and the standard.

    `write` gets a model and whether it is loaded with optimisation, and returns what to load. `stand_ins` has sentences by the
    notes of `write`. A verdict says with such a sentence what ran instead of nodes of the user's.
    """

    write: Callable[[Runnable, bool], Rewritten]
    stand_ins: Mapping[str, str]


@cache
def quirks() -> tuple[Quirk, ...]:
    """Return the quirks of all files in this folder, in the order of the files' names."""
    return objects_in(__name__, "QUIRK")


def without_quirks(runnable: Runnable, *, optimize: bool) -> Rewritten:
    """Return the model to load so that ONNX Runtime computes what the operators say; the given one if it has no such node."""
    notes: tuple[str, ...] = ()
    entries: dict[str, str] = {}
    for quirk in quirks():
        rewritten = quirk.write(runnable, optimize)
        runnable, notes = rewritten.runnable, (*notes, *rewritten.notes)
        entries |= rewritten.entries
    return Rewritten(runnable, notes, entries)
