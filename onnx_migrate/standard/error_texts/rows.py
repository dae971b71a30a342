"""An error text of another tool as a value, and the tables of error texts in this package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from onnx_migrate.cached import cached_property
from onnx_migrate.standard.error_texts.patterns import Pattern, placeholders_of
from onnx_migrate.standard.toml_rows import WrongRow, parsed, read_row, toml_key

__all__ = ["Check", "ErrorTable", "ErrorText", "Mend", "Sentence", "error_texts", "parse_table"]

Severity = Literal["error", "warning"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


@dataclass(frozen=True)
class Sentence:
    """Words with placeholders, for cases in which the facts in `needs` are known and true, and no fact in `unless` is."""

    text: str = ""
    needs: tuple[str, ...] = toml_key(of=str, default=(), read=_words)
    unless: tuple[str, ...] = toml_key(of=str, default=(), read=_words)

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The facts that the words need."""
        return placeholders_of(self.text)


@dataclass(frozen=True)
class Mend(Sentence):
    """A remedy: a command of onnx-migrate, or words alone if onnx-migrate cannot do it."""

    command: str = ""

    @cached_property
    def placeholders(self) -> frozenset[str]:
        """The facts that the command and the words need."""
        return placeholders_of(self.text) | placeholders_of(self.command)


@dataclass(frozen=True)
class Check:
    """A check whether a model would raise the error: the name of a question, and its arguments."""

    question: str
    given: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, row: Mapping[str, str | list[str]]) -> Check:
        """Return the question that a table of a file asks."""
        lists_by_key = {
            key: (value,) if isinstance(value, str) else tuple(value) for key, value in row.items()
        }
        if "ask" not in lists_by_key:
            raise WrongRow(": the key ask is missing")
        (question,) = lists_by_key.pop("ask")
        return cls(question, lists_by_key)


def _slug(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise WrongRow(f" {name!r} is not of lower case letters, digits and single dashes")
    return name


def _patterns(texts: tuple[str, ...]) -> tuple[Pattern, ...]:
    return tuple(map(Pattern, texts))


def _checks(rows: list[Any]) -> tuple[Check, ...]:
    return tuple(map(Check.of, rows))


@dataclass(frozen=True)
class ErrorText:
    """The text of an error or a warning that a tool prints about a model."""

    name: str = toml_key(label="", read=_slug)
    """A short name in lower case that identifies the text, and names its page."""
    tool: str = toml_key()
    """The tool that prints the text."""
    stage: str = toml_key()
    """The stage of the tool's work at which it prints the text."""
    example: str = toml_key()
    """The text as a user saw it."""
    patterns: tuple[Pattern, ...] = toml_key(of=tuple[str, ...], read=_patterns)
    meaning: tuple[Sentence, ...] = toml_key(or_text=True)
    mends: tuple[Mend, ...] = toml_key(or_text=True)
    sources: tuple[str, ...] = toml_key()
    causes: tuple[Sentence, ...] = toml_key(or_text=True, default=())
    title: str = ""
    """The sentence that people search for; "" means the example."""
    versions: str = ""
    """The releases that say it, if that is known."""
    runtime: str = ""
    """The name of the table that describes the tool's support, as in `--for`."""
    severity: Severity = "error"
    general: bool = False
    """Whether the text says so little that onnx-migrate reports it only if no particular text matches."""
    facts: Mapping[str, str] = toml_key(default_factory=dict)
    """Facts that the text does not contain, by the name of the placeholder."""
    checks: tuple[Check, ...] = toml_key(of=list, default=(), read=_checks)

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """All sentences that onnx-migrate may print about the text."""
        return (*self.meaning, *self.causes, *self.mends)


@dataclass(frozen=True)
class ErrorTable:
    """A file of error texts."""

    entries: tuple[ErrorText, ...] = toml_key(name="error")


def parse_table(data: bytes, file: str) -> tuple[ErrorText, ...]:
    """Return the error texts that the bytes of a TOML file hold. Raises ValueError, naming file, entry and key."""
    return read_row(ErrorTable, parsed(data, file), file).entries


@cache
def error_texts() -> tuple[ErrorText, ...]:
    """Return all error texts, by table and in its order. Raises ValueError if two have one name."""
    folder = files("onnx_migrate.standard.error_texts").joinpath("tables")
    names = sorted(table_file.name for table_file in folder.iterdir() if table_file.name.endswith(".toml"))
    entries = [entry for name in names for entry in parse_table(folder.joinpath(name).read_bytes(), name)]
    repeated = [name for name, number in Counter(entry.name for entry in entries).items() if number > 1]
    if repeated:
        raise ValueError(f"two error texts have the name {', '.join(sorted(repeated))}")
    return tuple(entries)
