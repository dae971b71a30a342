"""Texts with placeholders, and a search for them in a long text in time linear to its length.

The search for a pattern begins with its longest run of fixed words, as a substring. Regular expressions run only around
the positions of that substring, each over a bounded number of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnx_migrate.cached import cached_property
from onnx_migrate.standard.error_texts.pasted import plain, unquoted

__all__ = ["KINDS", "Pattern", "placeholders_of"]

_NAME = r"[A-Za-z_][\w.:/@-]{0,200}"

KINDS: Mapping[str, str] = {
    "op": r"[A-Za-z_][\w.]{0,80}",
    "ops": r"[\w.:@/-]{1,100}(?:(?:, ?|; ?)[\w.:@/-]{1,100}){0,60}",
    "prefixed": r"ONNX::\w{1,80}(?:[ ,;]{1,3}ONNX::\w{1,80}){0,60}",
    "number": r"-?\d{1,9}",
    "release": r"\d{1,8}(?:\.\d{1,8}){0,3}",
    "type": r"[\w()]{1,60}",
    "name": _NAME,
    "domain": r"(?:ai\.onnx|com|org)\.[\w.]{1,80}",
    "word": r"\S{1,200}",
    "maybe": r"\S{0,200}",
    "text": r".{0,240}?",
    "long": r".{0,1500}?",
}
"""The regular expression for each kind of placeholder: {op}, {opset:number}, {node:word}. Each is bounded."""

_PLACEHOLDER = re.compile(r"\{(\w+)(?::(\w+))?\}")

_DEFAULT_KINDS = {
    "opset": "number", "max_opset": "number", "ir": "number", "max_ir": "number", "version": "number", "op": "op",
    "ops": "ops", "attribute": "op", "dtype": "type", "node": "maybe", "domain": "maybe", "other_op": "op",
}  # fmt: skip

_BEFORE = 250
"""The number of characters before the fixed words in which the search looks for the rest of the pattern."""

_MOST_PLACES = 5_000
"""The most positions of the fixed words that the search checks; a log with more repeats itself."""

_MOST_FOUND = 200
"""The most different findings of one pattern."""


def placeholders_of(text: str) -> frozenset[str]:
    """Return the names of the placeholders in a text, without those that say what stands there otherwise, {opset|OPSET}."""
    return frozenset(placeholder[1] for placeholder in _PLACEHOLDER.finditer(text))


@dataclass(frozen=True)
class Pattern:
    """A text with placeholders, such as "No Op registered for {op} with domain_version of {opset}".

    Case, quotes and the width of white space do not count. Raises ValueError for an unknown kind of placeholder, and where
    there are no fixed words to look for.
    """

    text: str

    def __post_init__(self) -> None:
        if len(self.anchor) < 5:
            raise ValueError(f"{self.text!r} has no words to look for")

    @cached_property
    def _pieces(self) -> list[str]:
        """The text in pieces: fixed words at even places, regular expressions of placeholders at odd ones."""
        pieces, end, seen = [], 0, set()
        for placeholder in _PLACEHOLDER.finditer(self.text):
            name, kind = placeholder[1], placeholder[2] or _DEFAULT_KINDS.get(placeholder[1], "word")
            if kind not in KINDS:
                raise ValueError(f"{self.text!r}: a placeholder of kind {kind!r}")
            pieces += [_fixed(self.text[end : placeholder.start()]), f"(?P<{name}>{KINDS[kind]})"]
            # A group name may occur once in an expression, so the second occurrence has none.
            if name in seen:
                pieces[-1] = f"(?:{KINDS[kind]})"
            seen.add(name)
            end = placeholder.end()
        return [*pieces, _fixed(self.text[end:])]

    @cached_property
    def _at(self) -> int:
        far = next((at for at, piece in enumerate(self._pieces) if at % 2 and KINDS["long"] in piece), None)
        return max(range(0, len(self._pieces[:far]), 2), key=lambda place: len(self._pieces[place]))

    @cached_property
    def anchor(self) -> str:
        """The longest run of fixed words, in lower case, of those that no long placeholder comes before."""
        return self._pieces[self._at].lower()

    @cached_property
    def _regexes(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """The expression for the text before the anchor, which must end there, and that for the anchor and the text after it."""
        parts = [piece if index % 2 else re.escape(piece) for index, piece in enumerate(self._pieces)]
        before, after = "".join(parts[: self._at]), "".join(parts[self._at :])
        tail = r"(?!\w)" if self._pieces[-1] == "" and len(self._pieces) > 1 else ""
        return re.compile(rf"(?:{before})\Z", re.I), re.compile(after + tail, re.I)

    def filled(self, captured: Mapping[str, str]) -> str:
        """Return the text with the values of the placeholders; an ellipsis stands for a placeholder that can be any text."""

        def value(found: re.Match[str]) -> str:
            return "…" if found[2] in ("text", "long") else captured.get(found[1], "")

        return " ".join(_PLACEHOLDER.sub(value, self.text).split())

    @property
    def words(self) -> str:
        """The fixed words."""
        return " ".join(piece.strip() for piece in self._pieces[::2])

    def find(self, text: str, lowered: str) -> Iterator[tuple[int, int, dict[str, str]]]:
        """Yield each position of the pattern in a text made `plain`, and the values of its placeholders.

        Each finding is yielded once. `lowered` is the text in lower case, of the same length.
        """
        before, after = self._regexes
        seen_captures: set[tuple[str, ...]] = set()
        # A search for a fixed text is much faster than an expression.
        anchor_start, end = lowered.find(self.anchor), 0
        # A log of many megabytes may repeat the anchor.
        for _ in range(_MOST_PLACES):
            if anchor_start < 0 or len(seen_captures) >= _MOST_FOUND:
                return
            tail = after.match(text, anchor_start)
            # Only text behind the last finding counts, so that findings do not overlap.
            head = (
                before.search(text[max(end, anchor_start - _BEFORE) : anchor_start])
                if tail and self._at
                else None
            )
            if tail is None or (self._at and head is None):
                anchor_start = lowered.find(self.anchor, anchor_start + 1)
                continue
            start = anchor_start - (len(head[0]) if head else 0)
            captured = {**(head.groupdict() if head else {}), **tail.groupdict()}
            key = tuple(captured.values())
            if key not in seen_captures:
                seen_captures.add(key)
                yield start, tail.end(), captured
            end = max(tail.end(), anchor_start + 1)
            anchor_start = lowered.find(self.anchor, end)


def _fixed(text: str) -> str:
    """Return fixed words in the form for comparisons; a space at either end stays, and none is added."""
    core = plain(text)
    bare = unquoted(text)
    leading_space, right = bare[:1].isspace(), bare[-1:].isspace() and bool(core)
    return f"{' ' if leading_space else ''}{core}{' ' if right else ''}"
