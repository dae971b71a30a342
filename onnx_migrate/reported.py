"""Declares the values that a feature adds to a report, and how the text, the JSON and the page show each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Outline", "Section", "reported", "sections"]

T = TypeVar("T")
Default = TypeVar("Default")


@dataclass(frozen=True)
class Outline:
    """Nodes of the result that a page draws with a yellow border.

    `nodes` are their names, `legend` is a sentence on them, and `word` stands behind their number in a box of several nodes.
    """

    nodes: frozenset[str]
    legend: str
    word: str


@dataclass(frozen=True)
class Section:
    """How a report shows one value, which the passes of a feature record with `ChangeLog.record_fact("", "", value)`.

    The report has the value as its attribute `name`. JSON has under this key the attribute `json` of the value, or for "" the
    whole value. `fact` is the type of the value. `summary` returns the line of the short report beside `title`, "" for none.
    `details` returns the lines of `--verbose` and of the page below `title`, as plain text. `page` returns the variables of the
    template NAME.html.jinja, which lies beside the declaring module. With it, the page shows the template instead of `details`.
    `outline` returns nodes that the page marks in the graph of the result. All of them get the value.
    """

    name: str
    fact: type
    title: str
    json: str
    summary: Callable[[Any], str]
    details: Callable[[Any], Iterable[str]]
    page: Callable[[Any], Mapping[str, Any]] | None
    outline: Callable[[Any], Outline] | None
    module: str

    @property
    def template(self) -> Path | None:
        """The path of the template, None for a value without one."""
        folder = Path(sys.modules[self.module].__file__ or "").parent
        return folder / f"{self.name}.html.jinja" if self.page else None


def reported(
    fact: type[T], default: Default, /, title: str = "", *, json: str = "",
    summary: Callable[[T], str] = lambda value: "", details: Callable[[T], Iterable[str]] = lambda value: (),
    page: Callable[[T], Mapping[str, Any]] | None = None, outline: Callable[[T], Outline] | None = None,
) -> T | Default:  # fmt: skip
    """Declare a value of a report as a field of a dataclass; `default` is its value if no pass recorded one. See `Section`."""
    metadata = {
        "fact": fact,
        "title": title,
        "json": json,
        "summary": summary,
        "details": details,
        "page": page,
        "outline": outline,
    }
    declaration: T | Default = field(default=default, metadata=metadata)
    return declaration


@cache
def sections(of: Any) -> tuple[Section, ...]:
    """Return the sections that a dataclass and its bases declare, in the order of the fields."""
    modules = {name: base.__module__ for base in of.__mro__ for name in vars(base).get("__annotations__", ())}
    return tuple(
        Section(value.name, module=modules[value.name], **value.metadata)
        for value in fields(of)
        if "fact" in value.metadata
    )
