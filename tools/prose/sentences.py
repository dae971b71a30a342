"""Sentences of a text, each with the line on which it begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Block", "Sentence", "sentences"]

FEWEST = 4
"""Words in the shortest text that counts as a sentence."""

_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[A-Z0-9`*\"'(\[])|(?<=[.!?])\s+(?=onnx)")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|No|approx)\.$")


@dataclass(frozen=True)
class Block:
    """Text without a paragraph break: its first line in the file, and whether it may be a fragment."""

    line: int
    text: str
    fragment: bool = False


@dataclass(frozen=True)
class Sentence:
    """One sentence in plain words, with the line on which it begins."""

    line: int
    text: str
    fragment: bool = False


def sentences(blocks: Iterable[Block]) -> Iterator[Sentence]:
    """Yield the sentences of blocks, without markup."""
    for block in blocks:
        start = 0
        for end in _ends(block.text):
            yield from _sentence(block, start, end)
            start = end


def _ends(text: str) -> Iterator[int]:
    for match in _END.finditer(text):
        if not _ABBREVIATION.search(text[: match.start()]):
            yield match.end()
    yield len(text)


def _sentence(block: Block, start: int, end: int) -> Iterator[Sentence]:
    plain = " ".join(_without_markup(block.text[start:end]).split())
    if len(plain.split()) >= FEWEST and re.search(r"[a-z]{2}", plain):
        closed = plain.rstrip("\"')*_ ").endswith((".", "!", "?"))
        label = re.fullmatch(r"\s*\*\*[^*]*\*\*\s*", block.text[start:end])
        fragment = block.fragment or not closed or bool(label)
        yield Sentence(block.line + block.text[:start].count("\n"), plain, fragment)


def _without_markup(text: str) -> str:
    """Return text with a word for each code span, and without links and HTML."""
    text = re.sub(r"``.+?``|`[^`]*`", "X", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^<>]*>", " ", text)
    return re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)", "", text)
