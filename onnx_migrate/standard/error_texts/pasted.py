"""Makes pasted text comparable: logs of terminals, of web pages and of shells, with their colours, quotes and line breaks."""

from __future__ import annotations

import html
import re

__all__ = ["decoded", "joined", "lower", "plain", "unquoted", "words_of"]

_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)")
_QUOTES = {
    **dict.fromkeys(map(ord, "\"'`´‘’‚“”„«»\\*>|"), None),
    **dict.fromkeys(map(ord, "│┃║"), " "),
}
"""Quotes, which shells drop, the backslashes before them, the marks of Markdown and of quoted mail; lines of boxes are spaces."""
_ENTITY = re.compile(r"&(?:[a-z]{2,6}|#x?[0-9a-fA-F]{1,5});")
_NARROWEST = 40
"""Columns that a terminal has at least: shorter lines were not cut."""
_UPPER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def decoded(data: bytes) -> str:
    """Return the text of a file or a pipe, also as PowerShell writes it."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def plain(text: str) -> str:
    """Return text without colours, quotes and marks of quotation, in which all white space is one space."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if "&" in text:
        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    if "\\" in text:
        text = text.replace("\\n", " ").replace("\\r", " ")
    return " ".join(unquoted(text).split())


def joined(text: str) -> str:
    """Return text whose lines a terminal cut at its width, within words too, with these lines put together again."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    width = max(map(len, lines))
    if width < _NARROWEST:
        return text
    # A terminal drops the space at which it cuts a line, which is one character shorter then.
    ends = {width: "", width - 1: " "}
    return "".join(line + ends.get(len(line), "\n") for line in lines)


def unquoted(text: str) -> str:
    """Return text without the marks that do not count."""
    return text.translate(_QUOTES)


def lower(text: str) -> str:
    """Return text in lower case with the same number of characters."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_UPPER)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, as texts are compared that are not the same."""
    return re.findall(r"[a-z_][a-z_]{2,}", text.lower())
