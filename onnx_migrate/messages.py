"""Texts for people: numbers with their nouns, text that is safe to print, and remarks on what went wrong beside a result."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = [
    "collected_remarks",
    "count_and_verb",
    "count_of",
    "did_you_mean",
    "first_of",
    "listed",
    "markup_of",
    "printable",
    "remark",
    "share_text",
    "shortened",
    "size_text",
]

_IRREGULAR = {"axis": "axes", "index": "indices"}


def count_of(number: int, noun: str) -> str:
    """Return a number and its noun, as in "1 node", "2 nodes" and "3 axes"; before "of" where there is one."""
    if number == 1:
        return f"{number} {noun}"
    head, of, rest = noun.partition(" of ")
    return f"{number} {_IRREGULAR.get(head, f'{head}s')}{of}{rest}"


_SINGULAR = {"are": "is", "do": "does", "have": "has", "were": "was"}


def count_and_verb(number: int, noun: str, verb: str) -> str:
    """Return a number, its noun and a verb, as in "1 node computes" and "2 nodes compute"; give the verb in the plural."""
    head, space, rest = verb.partition(" ")
    singular = _SINGULAR.get(head, f"{head}s") + space + rest
    return f"{count_of(number, noun)} {singular if number == 1 else verb}"


def listed(names: Iterable[str]) -> str:
    """Return names as a list in a sentence, as in "N, H and W"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def first_of(texts: Sequence[str], most: int) -> str:
    """Return the first texts, at most so many, and how many more there are, as in "a, b and 3 more"."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the most similar known name, ignoring case; "" if no name is similar."""
    by_case = {known_name.lower(): known_name for known_name in sorted(known)}
    from difflib import get_close_matches  # only errors need it

    close = get_close_matches(name.lower(), list(by_case), 1)
    return f"did you mean {by_case[close[0]]}?" if close else ""


def size_text(size: int) -> str:
    """Return a number of bytes, in MB from a million on and in GB from a billion on."""
    if size >= 2**63:  # of a tensor whose dims are not valid
        return "more than 2^63 B"
    if size < 10**6:
        return f"{size:,} B"
    return f"{size / 10**6:,.1f} MB" if size < 10**9 else f"{size / 10**9:,.1f} GB"


def share_text(share: float) -> str:
    """Return a share in percent, with two digits; a share below 0.01 % as a number, as in "2e-07"."""
    if share < 1e-4:
        return f"{share:.1g}"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


_LONGEST = 1000
"""Maximum number of characters of a name without spaces that are printed; a path has up to 4,096, rarely above 200."""

_RUN = re.compile(rf"\S{{{_LONGEST + 1},}}")

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # Terminals obey control characters, and a line feed splits a name.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # These marks reorder the text around them.
    "\u2028\u2029\ud800-\udfff"  # These separate lines, or stand for bytes of names that are not UTF-8.
    "\ufffe\uffff]"  # XML 1.0 does not allow these.
)


def printable(text: str) -> str:
    """Return text on one line, with control characters as escapes, and names of more than 1,000 characters cut in the middle."""
    return _UNPRINTABLE.sub(_escape, shortened(text))


def shortened(text: str) -> str:
    """Return text with names of more than 1,000 characters cut in the middle."""
    return _RUN.sub(_cut, text) if len(text) > _LONGEST else text


def without_middle(text: str, first: int, last: int) -> str:
    """Return so many first and last characters of a longer text, and its length."""
    return f"{text[:first]}…{text[-last:]} ({len(text):,} characters)"


def markup_of(text: str) -> str:
    """Return rich's markup that shows exactly this text, made printable."""
    from rich.markup import escape

    return escape(printable(text))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def _cut(found: re.Match[str]) -> str:
    return without_middle(found[0], 200, 50)


_collected: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


def remark(text: str) -> None:
    """Add a remark to those that the caller collects; without such a caller, issue a RuntimeWarning."""
    collected = _collected.get()
    if collected is None:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    else:
        collected.append(text)


@contextmanager
def collected_remarks() -> Iterator[list[str]]:
    """Yield the list to which the remarks of the block, in this thread, are added."""
    collected: list[str] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)
