"""What the two pages of operators share: operators' names, adapters with their steps, and cells of tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

from onnx_migrate.engine.steps.step import Step
from onnx_migrate.explanation.step_examples import step_example

__all__ = ["adapters_section", "by_adapter", "cell", "kind_cell", "operator_of", "slug"]


def operator_of(step: Step) -> str:
    """Return the name of a step's operator, with its domain unless that is ai.onnx."""
    return f"{step.domain}.{step.operator}" if step.domain else step.operator


def by_adapter(ordered: Iterable[Step]) -> list[list[Step]]:
    """Return the steps of each adapter, in the order of its first step."""
    found: dict[object, list[Step]] = defaultdict(list)
    for step in ordered:
        if step.adapt:
            found[step.adapt].append(step)
    return list(found.values())


def adapters_section(ordered: Iterable[Step], way: Callable[[Step], str]) -> str:
    """Return the section with the docstring of each adapter; `way` says what a step leads from and to."""
    parts = ["## Adapters\n"]
    for own in by_adapter(ordered):
        first = own[0]
        names = ", ".join(f"{operator_of(step)} {way(step)}" for step in own)
        parts.append(f"### {first.code}\n\n{names}; {first.exactness.value}\n\n{_escaped(first.doc)}\n")
        example = next(filter(None, (step_example(step.code) for step in own)), "")
        if example:
            before, _, after = example.partition("becomes\n")
            parts.append(f"Example:\n\n{before}\nbecomes\n\n{after}\n")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    """Return text without Markdown's references: `a[i][j]` is no link to `j`."""
    return text.replace("][", "]\\[")


def kind_cell(step: Step, homes: dict[object, str]) -> str:
    """Return what a step is, with a link to its adapter, whose section is called by `homes`."""
    kind = f"[adapted](#{slug(homes[step.adapt])})" if step.adapt else step.kind
    return kind if step.exactness.value == "exact" else f"{kind}, {step.exactness.value}"


def slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def cell(text: str) -> str:
    """Return text for one cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")
