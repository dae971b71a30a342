"""Recognises error texts in any text that a user pastes: one sentence, a traceback, or a log of many megabytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from onnx_migrate.standard.error_texts.pasted import joined, lower, plain
from onnx_migrate.standard.error_texts.patterns import Pattern
from onnx_migrate.standard.error_texts.rows import ErrorText
from onnx_migrate.standard.error_texts.tools import named_tools, owners

__all__ = ["RecognisedText", "find"]


_Hit = tuple[int, int, ErrorText, dict[str, str], Pattern]


_MOST = 100
"""Different findings of one error text."""

_LONGEST_CUT = 100_000
"""Characters of a text that is read again with the lines put together that a terminal cut within words."""

_AROUND = 120
"""Characters before and after a finding in which a message names the tool that says it."""


@dataclass(frozen=True)
class RecognisedText:
    """A recognised error text, with the values of its placeholders at each place where they differ."""

    entry: ErrorText
    captures: tuple[dict[str, str], ...]
    start: int
    """The first position of the text in the user's text after `plain`."""
    said: str
    """The recognised words, in the spelling of the entry."""


def find(text: str, entries: Iterable[ErrorText]) -> tuple[RecognisedText, ...]:
    """Return the error texts that stand in a text: errors before warnings, in the order of the text.

    Many tools use the same words. So an error text of one tool does not count if the words around it name another tool.
    If one error text contains another, only the outer one counts. A general entry counts only if no particular one
    matches.
    """
    entries = tuple(entries)
    hits = _hits(text, entries)
    # A terminal may have cut the lines of a message, so the text is tried with its lines joined.
    if not _particular(hits) and "\n" in text[:_LONGEST_CUT]:
        hits = _hits(joined(text[:_LONGEST_CUT]), entries) or hits
    hits = _particular(hits) or hits
    grouped: dict[str, list[_Hit]] = {}
    # One message may match a short pattern inside a longer one.
    for hit in _outermost(hits):
        grouped.setdefault(hit[2].name, []).append(hit)
    recognised = [
        RecognisedText(
            group[0][2],
            tuple(_distinct(hit[3] for hit in group)),
            group[0][0],
            group[0][4].filled(group[0][3]),
        )
        for group in grouped.values()
    ]
    return tuple(sorted(recognised, key=lambda item: (item.entry.severity != "error", item.start)))


def _hits(text: str, entries: Iterable[ErrorText]) -> list[_Hit]:
    whole = plain(text)
    lowered = lower(whole)
    hits = (
        (start, end, entry, captured, pattern)
        for entry in entries
        for pattern in entry.patterns
        for start, end, captured in pattern.find(whole, lowered)
    )
    return [hit for hit in hits if not _is_of_another_tool(hit, lowered)]


def _particular(hits: list[_Hit]) -> list[_Hit]:
    return [hit for hit in hits if not hit[2].general]


def _is_of_another_tool(hit: _Hit, lowered: str) -> bool:
    """Return whether the words around a finding name tools, and not the one whose text was found."""
    own = owners(hit[2].tool)
    named = named_tools(lowered[max(0, hit[0] - _AROUND) : hit[1] + _AROUND]) if own else frozenset()
    return bool(named) and not own & (named | named_tools(lowered))


def _outermost(hits: list[_Hit]) -> Iterator[_Hit]:
    """Yield the hits that lie in no other, in the order of the text; of equal ones that with most fixed words, then values."""
    end = -1
    for hit in sorted(hits, key=lambda hit: (hit[0], -hit[1], -len(hit[4].words), -len(hit[3]))):
        if hit[1] > end:
            end = hit[1]
            yield hit


def _distinct(captures: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    """Return the captures that say something, each once, those with most values first; of none, an empty one."""
    seen: dict[frozenset[tuple[str, str]], dict[str, str]] = {}
    for captured in captures:
        # Punctuation belongs to the sentence around the value.
        filled_values = {name: value.rstrip(".,:;") for name, value in captured.items() if value}
        seen.setdefault(frozenset(filled_values.items()), filled_values)
    distinct_keys = sorted(seen, key=len, reverse=True)[:_MOST]
    # A capture whose values all stand in a larger one adds nothing.
    return [
        seen[key]
        for at, key in enumerate(distinct_keys)
        if not any(key < other for other in distinct_keys[:at])
    ]
