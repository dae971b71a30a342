"""Where in a migration the numbers first differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["FirstDifference"]


@dataclass(frozen=True)
class FirstDifference:
    """The pass after which the model first computes other numbers, and the node at which it does.

    `passes` are several where a model between them could not be compared. `node` and `operator` are "" where the values
    of the model before and after could not be compared one by one; `value` is the one that differs, and `problem` by how
    much, both models computing it from the same values of the nodes before.
    """

    passes: tuple[str, ...]
    node: str = ""
    operator: str = ""
    value: str = ""
    problem: str = ""

    def __str__(self) -> str:
        node = f", at node {self.node!r} ({self.operator})" if self.node else ""
        return f"the numbers first differ after pass {' or '.join(map(repr, self.passes))}{node}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**asdict(self), "passes": list(self.passes)}
