"""Finds the known names and texts that are most similar to an unrecognised one."""

from __future__ import annotations

import math
from collections import Counter
from difflib import get_close_matches
from functools import cache

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.explanation.operator_facts import operator_names
from onnx_migrate.report.codes import CODES
from onnx_migrate.standard.error_texts import ErrorText, error_texts, words_of
from onnx_migrate.standard.error_texts.pasted import lower, plain
from onnx_migrate.standard.error_texts.tools import named_tools, owners
from onnx_migrate.standard.targets import known_names
from onnx_migrate.standard.targets.read import spellings

__all__ = ["names", "near_error_texts", "near_names", "operators_in"]

_ENOUGH = 0.45
"""A text is similar to an error text if it has at least this share of the weight of that text's words."""

_SHORTEST_PART, _LONGEST_PART = 10, 300
"""Characters of a text that may be a part of an error text."""

_MOST = 3

_LONGEST_NAME = 60


def near_error_texts(text: str) -> tuple[ErrorText, ...]:
    """Return the error texts that share most words with a text, words that few of them have counting more."""
    text_words = set(words_of(text[:2_000_000]))
    if not text_words:
        return ()
    scored = []
    # A short text may be a part of a message.
    part = lower(plain(text)).strip() if len(text) <= _LONGEST_PART else ""
    tools = named_tools(lower(text[:2_000_000]))
    for entry in error_texts():
        if tools and not tools & owners(entry.tool):
            continue  # the text says who printed it
        # The few words of a text that any tool may say are in every other one.
        best = 0.0 if entry.general else max(_share(words, text_words) for words in _words()[entry.name])
        if len(part) >= _SHORTEST_PART and any(part in lower(pattern.words) for pattern in entry.patterns):
            best = 1.0  # a text that was cut off, perhaps within a word
        if best >= _ENOUGH:
            scored.append((best, entry))
    scored.sort(key=lambda item: -item[0])
    return tuple(entry for _, entry in scored[:_MOST])


@cache
def names() -> tuple[str, ...]:
    """Return the names of all that can be explained: codes, steps, operators, runtimes and error texts."""
    operators = (keys[0][1] for keys in operator_names().values())
    texts = (entry.name for entry in error_texts())
    return tuple(sorted({*CODES, *(step.code for step in steps()), *operators, *known_names(), *texts}))


def near_names(text: str) -> tuple[str, ...]:
    """Return the codes, steps, operators and runtimes whose names are nearest to a short text."""
    wanted = text.strip().lower()
    # A longer text is a message, and not a misspelt name.
    if not wanted or len(wanted) > _LONGEST_NAME or len(wanted.split()) > 3:
        return ()
    step_codes = [step.code for step in steps()]
    of_operator = [
        code for code in step_codes if code.rpartition("-")[0].partition("-")[0] == wanted.partition("-")[0]
    ]
    # A wrong version of a step is best answered by the steps of its operator.
    if of_operator and "-" in wanted:
        return tuple(of_operator)
    # The search ignores case, but the answer shows the usual spelling.
    operators = {name: keys[0][1] for name, keys in operator_names().items()}
    runtimes = {**spellings(), **{name: name for name in known_names()}}
    names = {**{code: code for code in (*CODES, *step_codes)}, **runtimes, **operators}
    close = get_close_matches(wanted, list(names), 5, 0.75)
    return tuple(dict.fromkeys(names[name] for name in close))


def operators_in(text: str) -> tuple[str, ...]:
    """Return the operators of ai.onnx that a text names as they are spelled, the most frequent first."""
    # Other domains use ordinary words as names.
    onnx_names = {keys[0][1] for keys in operator_names().values() if not keys[0][0]} - _WORDS
    counts = Counter(
        word
        for word in text[:200_000].replace("_", " ").replace(":", " ").replace("/", " ").split()
        for word in [word.strip(".,;()[]{}<>'\"`")]
        if word in onnx_names
    )
    return tuple(name for name, _ in counts.most_common(3))


_WORDS = {
    "And",
    "Or",
    "Not",
    "If",
    "Where",
    "Max",
    "Min",
    "Less",
    "Loop",
    "Scan",
    "Size",
    "Shape",
    "Identity",
    "Constant",
    "Scale",
}
"""Operators whose names are words that begin sentences."""


def _share(words: frozenset[str], known: set[str]) -> float:
    weights = _weights()
    whole = sum(weights[word] for word in words)
    return sum(weights[word] for word in words & known) / whole if whole else 0.0


@cache
def _words() -> dict[str, tuple[frozenset[str], ...]]:
    return {
        entry.name: tuple(frozenset(words_of(pattern.words)) for pattern in entry.patterns)
        for entry in error_texts()
    }


@cache
def _weights() -> dict[str, float]:
    count = Counter(word for every in _words().values() for word in frozenset().union(*every))
    total = len(_words())
    return {word: math.log(1 + total / number) for word, number in count.items()}
