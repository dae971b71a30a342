"""All that can be explained, in groups."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from onnx_migrate.json_form import selects
from onnx_migrate.report.codes import CODES, GROUPS
from onnx_migrate.standard.error_texts import error_texts
from onnx_migrate.standard.targets import known_names, shipped

__all__ = ["Group", "Known", "first_sentence", "groups_of_codes", "overview"]


class Known(NamedTuple):
    """Something that can be explained, and a line that says what it is."""

    name: str
    text: str


@dataclass(frozen=True)
class Group:
    """Things of one kind, each with a line that says what it is."""

    title: str
    lines: tuple[Known, ...]


def groups_of_codes() -> tuple[Group, ...]:
    """Return the codes in their groups, each with its first sentence."""
    codes = list(CODES)
    starts = [*(codes.index(first) for first in GROUPS.values()), len(codes)]
    return tuple(
        Group(title, tuple(Known(code, first_sentence(CODES[code])) for code in codes[start:end]))
        for title, start, end in zip(GROUPS, starts, starts[1:], strict=False)
    )


def overview() -> tuple[Group, ...]:
    """Return the codes in their groups, the error texts of other tools by the tool, and the runtimes."""
    tools: dict[str, list[Known]] = {}
    for entry in error_texts():
        tools.setdefault(entry.tool, []).append(Known(entry.name, entry.title or entry.example))
    runtimes = tuple(Known(table.name, table.title) for table in map(shipped, known_names()))
    return (
        *groups_of_codes(),
        *(Group(tool, tuple(lines)) for tool, lines in tools.items()),
        Group("Runtimes", runtimes),
    )


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    sentence = re.match(r".+?[.!?](?=\s+[A-Z]|\s*$)", text, re.S)
    return sentence[0] if sentence else text


selects(Group, "title known=lines")
