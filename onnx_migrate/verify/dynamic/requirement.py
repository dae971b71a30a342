"""The error of a run at other sizes that does not do what a model with dynamic dims must do."""

from __future__ import annotations

from collections.abc import Mapping, Set

__all__ = ["RequirementViolated"]


class RequirementViolated(Exception):
    """A model with dynamic dims violates a requirement at some sizes; the message says which.

    `output` is the output that shows it, `node` the node that a runtime names, each "" if there is none. `varied` are
    the symbols that had another size than the frozen one. `merged_at` are the sizes at which a symbol that is no batch
    changed the length of an output's batch axis, where that is the violation.
    """

    def __init__(
        self,
        reason: str,
        output: str = "",
        node: str = "",
        varied: Set[str] = frozenset(),
        merged_at: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(reason)
        self.output = output
        self.node = node
        self.varied = set(varied)
        self.merged_at = dict(merged_at or {})
