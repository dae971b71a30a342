"""An error text of another tool, as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from onnx_migrate.standard.error_texts.patterns import Pattern, placeholders_of

__all__ = ["Check", "ErrorText", "Mend", "Sentence"]

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Sentence:
    """Words with placeholders, said where the facts `needs` are known and true and none of `unless` is."""

    text: str
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The facts that the words need."""
        return placeholders_of(self.text)


@dataclass(frozen=True)
class Mend:
    """What to do: a command of onnx-migrate, or words alone for what it cannot do."""

    sentence: Sentence
    command: str = ""

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The facts that the command and the words need."""
        return self.sentence.placeholders | placeholders_of(self.command)


@dataclass(frozen=True)
class Check:
    """How a model is asked whether it would raise the error: the name of a question, and what it is asked with."""

    question: str
    given: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class ErrorText:
    """A text by which a tool refuses a model, or warns of it."""

    name: str
    """The slug by which it is found, and the name of its page."""
    tool: str
    """Who says it."""
    stage: str
    """When it is said."""
    example: str
    """The text as it was met."""
    patterns: tuple[Pattern, ...]
    meaning: tuple[Sentence, ...]
    causes: tuple[Sentence, ...]
    mends: tuple[Mend, ...]
    sources: tuple[str, ...]
    title: str = ""
    """The sentence that people search for; "" is the example."""
    versions: str = ""
    """The releases that say it, if that is known."""
    runtime: str = ""
    """The name of the tool's table of what it takes, as `--for` has it."""
    severity: Severity = "error"
    general: bool = False
    """Whether it says so little that it is told only where nothing more particular was found."""
    facts: Mapping[str, str] | None = None
    """What is known beside what the text says, by the name of the placeholder."""
    checks: tuple[Check, ...] = ()

    @property
    def sentences(self) -> Iterator[Sentence]:
        """All that may be said."""
        yield from self.meaning
        yield from self.causes
        yield from (mend.sentence for mend in self.mends)
