"""Strings that a regular expression matches whole, and some that it does not: made from its text, without a matcher."""

from __future__ import annotations

__all__ = ["samples"]

_KINDS = {"d": "7", "w": "a", "s": " ", "D": "x", "W": "-", "S": "x", "n": "\n", "t": "\t", "r": "\r"}
"""A letter behind a backslash, and one character of its class."""

_EMPTY = frozenset("bBAzZ")
"""Letters behind a backslash that stand between characters."""

_VARIANTS = 3
"""Strings that are made of one pattern: each takes other alternatives, and repeats more."""

_MOST_REPEATS = 40
"""How often one part is repeated at most."""

_LONGEST = 400
"""Characters of a string at most: groups that are repeated may stand in each other."""

_DEEPEST = 50
"""Groups in each other that are read."""


def samples(pattern: str) -> list[str]:
    """Return strings that the pattern probably matches, these with one character more or less, and its text."""
    texts: list[str] = []
    for variant in range(_VARIANTS):
        text = _Reader(pattern, variant).alternatives()
        texts += [text, text + "x", "x" + text, text[:-1]] if not variant else [text]
    return list(dict.fromkeys([*texts, pattern]))


class _Reader:
    """Reads a pattern from left to right; `variant` decides on the alternative, and on the number of repeats of a part."""

    def __init__(self, pattern: str, variant: int) -> None:
        self._rest = list(reversed(pattern))
        self._variant, self._depth = variant, 0

    def _next(self) -> str:
        return self._rest[-1] if self._rest else ""

    def _take(self) -> str:
        return self._rest.pop() if self._rest else ""

    def _until(self, end: str) -> str:
        """Return the text before a character, and consume both."""
        text = ""
        while self._rest and self._next() != end:
            text += self._take()
        self._take()
        return text

    def alternatives(self) -> str:
        """Return a string of one of the alternatives up to a closing bracket."""
        branches = [self._sequence()]
        while self._next() == "|":
            self._take()
            branches.append(self._sequence())
        return branches[self._variant % len(branches)]

    def _sequence(self) -> str:
        text = ""
        while self._rest and self._next() not in ("|", ")"):
            part = self._part()
            text += part * min(self._count(), max(1, _LONGEST // max(1, len(part))))
        return text[:_LONGEST]

    def _part(self) -> str:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escaped()
        return {".": "a", "^": "", "$": ""}.get(character, character)

    def _group(self) -> str:
        if self._next() == "?":
            self._take()
            kind = self._take()
            if kind == "P":
                self._until(">")
            elif kind != ":":
                self._until(")")  # flags, which hold for what follows
                return ""
        self._depth += 1
        text = self.alternatives() if self._depth < _DEEPEST else self._until(")")
        self._depth -= 1
        self._take()
        return text

    def _escaped(self) -> str:
        letter = self._take()
        if letter in ("p", "P") and self._next() == "{":
            self._until("}")
            return "a"
        return "" if letter in _EMPTY else _KINDS.get(letter, letter)

    def _class(self) -> str:
        negated = self._next() == "^"
        if negated:
            self._take()
        members = ""
        # A bracket in the first place is a member.
        while self._rest and (self._next() != "]" or not members):
            character = self._take()
            members += self._escaped() if character == "\\" else character
        self._take()
        # Any character outside the class matches.
        if negated:
            return next((other for other in "a-7 x" if other not in members), "~")
        letters = members.replace("-", "") or members
        return letters[self._variant % len(letters)] if letters else ""

    def _count(self) -> int:
        """Return how often the part before is repeated: as often as it must be, and more by the variant."""
        mark = self._next()
        if mark not in ("*", "+", "?", "{"):
            return 1
        self._take()
        low, high = {"*": (0, _MOST_REPEATS), "+": (1, _MOST_REPEATS), "?": (0, 1)}.get(
            mark
        ) or self._bounds()
        # Marks of greed change no match.
        if self._next() in ("?", "+"):
            self._take()
        return min(low + self._variant, high, _MOST_REPEATS)

    def _bounds(self) -> tuple[int, int]:
        low, comma, high = self._until("}").partition(",")
        least = int(low) if low.isdigit() else 0
        return least, int(high) if high.isdigit() else _MOST_REPEATS if comma else least
