"""Text for terminals and logs: names come from models, and may hold anything."""

from __future__ import annotations

import re

__all__ = ["markup_of", "printable", "shortened"]

_LONGEST = 1000
"""Characters without a space that are printed of one name; a path has up to 4,096, rarely above 200."""

_RUN = re.compile(rf"\S{{{_LONGEST + 1},}}")

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters: terminals obey them, and a line feed makes a line of a name
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that reorder the text around them
    "\u2028\u2029\ud800-\udfff]"  # separators of lines, and bytes of names that are not UTF-8
)


def printable(text: str) -> str:
    """Return text on one line, with control characters as escapes, and names of more than 1,000 characters cut in the middle."""
    return _UNPRINTABLE.sub(_escape, shortened(text))


def shortened(text: str) -> str:
    """Return text with names of more than 1,000 characters cut in the middle."""
    return _RUN.sub(_cut, text) if len(text) > _LONGEST else text


def without_middle(text: str, first: int, last: int) -> str:
    """Return so many first and last characters of a text that is longer, and how many it has."""
    return f"{text[:first]}…{text[-last:]} ({len(text):,} characters)"


def markup_of(text: str) -> str:
    """Return text as rich's markup for just these characters, made printable."""
    from rich.markup import escape

    return escape(printable(text))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def _cut(found: re.Match[str]) -> str:
    return without_middle(found[0], 200, 50)
