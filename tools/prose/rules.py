"""The rules: what makes a sentence hard to read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tools.prose.sentences import Sentence

__all__ = ["LONGEST", "Finding", "findings"]

LONGEST = 25
"""Words in the longest sentence without a finding. A code span counts as one word."""

_START = r"(?:^|[.;:,(] |\b(?:and|but|or|so|because|since|that) )"
_NOUNLESS = re.compile(
    rf"(?i:{_START}" + r"(?:what|whatever|whoever|of what|that which|those which|where that)\b"
    r"(?! about | happens| does | do | to | you | we | if | changes:))"
    r"|^Where (?!to\b)|; where\b"
)
_OF_WHICH = re.compile(r"\b(?:of|from|by|behind|with|beside|above|below|that) which\b", re.IGNORECASE)
_QUESTION = re.compile(r"\?\W*$")


@dataclass(frozen=True)
class Finding:
    """One reason why a sentence is hard to read, and the advice."""

    rule: str
    advice: str


def findings(sentence: Sentence) -> Iterator[Finding]:
    """Yield the findings of a sentence. A fragment, such as a cell of a table, needs no verb."""
    text = sentence.text
    count = len([word for word in text.split() if re.search(r"\w", word)])
    if count > LONGEST:
        yield Finding("long", f"{count} words; write at most {LONGEST}")
    if _NOUNLESS.search(text) and not _QUESTION.search(text) and (count > 5 or not sentence.fragment):
        yield Finding("what", "start the clause with a noun")
    if _OF_WHICH.search(text):
        yield Finding("of-which", "repeat the noun")
    if text.count(";") > 1:
        yield Finding("semicolons", "write one fact a sentence, or a list")
    if _any_word().search(text):
        for pattern, plain in _words():
            if match := pattern.search(text):
                yield Finding("word", f"{match[0]!r}: {plain}")
    if (match := _passive().search(text)) and not re.search(r"\bby\b", text[match.end() :]):
        yield Finding("passive", f"{match[0]!r}: say who does it")
    if not sentence.fragment and not has_verb(text):
        yield Finding("verb", "the sentence has no verb")


def has_verb(text: str) -> bool:
    """Return whether a sentence has a word that is a verb, or may be one."""
    words = re.findall(r"[a-z']+", text.lower())
    return any(word in _verbs() or word.endswith(("n't", "ize", "izes", "ise", "ises")) for word in words)


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))


@cache
def _words() -> list[tuple[re.Pattern[str], str]]:
    return [
        (re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), plain)
        for pattern, plain in _table()["replace"].items()
    ]


@cache
def _any_word() -> re.Pattern[str]:
    return re.compile("|".join(pattern.pattern for pattern, _ in _words()), re.IGNORECASE)


@cache
def _passive() -> re.Pattern[str]:
    participles = "|".join(_table()["passive"]["participles"])
    return re.compile(
        rf"\b(?:is|are|was|were|be|been|being)(?: \w+ly| not| also){{0,2}} (?:{participles})\b", re.IGNORECASE
    )


@cache
def _verbs() -> frozenset[str]:
    """Return the forms of the verbs of the table."""
    table = _table()["verbs"]
    forms = set(table["forms"])
    for base in table["base"]:
        stem = base.removesuffix("e")
        doubled = base + base[-1]
        forms |= {base, f"{base}s", f"{base}es", f"{stem}ed", f"{stem}ing", f"{doubled}ed", f"{doubled}ing"}
        if base.endswith("y"):
            forms |= {f"{base[:-1]}ies", f"{base[:-1]}ied"}
    return frozenset(forms)
