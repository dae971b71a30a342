"""The contents of a page about operators: how many nodes before and after, and what changed them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["OperatorLine", "OperatorView"]


@dataclass(frozen=True)
class OperatorLine:
    """An operator with its numbers of nodes; `steps` is what changed these nodes, as text, and `passes` of which pass."""

    operator: str
    before: str
    after: str
    changed: bool
    steps: str
    passes: str


@dataclass(frozen=True)
class OperatorView:
    """The operators that changed, and those that did not."""

    changed: tuple[OperatorLine, ...] = ()
    others: tuple[OperatorLine, ...] = ()

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> OperatorView:
        """Prepare the rows of a report; without content for a failure, and for the report of an older version."""
        rows = report.get("operators") or ()
        lines = [(_line(row), row) for row in rows]
        changed = [line for line, row in lines if line.changed or any(step["nodes"] for step in row["steps"])]
        kept = [line for line, _ in lines if line not in changed]
        return cls(tuple(changed), tuple(kept))


def _line(row: Mapping[str, Any]) -> OperatorLine:
    counted = sum(1 for step in row["steps"] if step["difference"])
    texts = [
        f"{step['step'] or step['pass']}"
        + (f" ({step['difference']:+,})" if counted > 1 and step["difference"] else "")
        for step in row["steps"]
    ]
    return OperatorLine(
        row["operator"],
        f"{row['before']:,}",
        f"{row['after']:,}",
        row["before"] != row["after"],
        ", ".join(texts),
        ", ".join(dict.fromkeys(step["pass"] for step in row["steps"])),
    )
