"""What a runtime takes: all its releases in a line each, or one release in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx_migrate.errors import UsageError
from onnx_migrate.spec.targets import Table, Target, resolve
from onnx_migrate.spec.targets.wording import understand

__all__ = ["RuntimeRows", "runtime_rows"]


@dataclass(frozen=True)
class RuntimeRows:
    """A runtime, and the release that was asked for; None if none was."""

    table: Table
    target: Target | None

    @property
    def lacking(self) -> tuple[str, ...]:
        """The operators that the release is known to lack, where the table does not list those that it has."""
        if self.target is None or self.table.listed:
            return ()
        names = {name for row in self.table.operators if row.lacking for name in row.names if not row.domain}
        return tuple(sorted(name for name in names if not self.target.has("", name)))

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of ai.onnx that the release has, where the table lists them."""
        if self.target is None or not self.table.listed:
            return ()
        names = {name for row in self.table.operators for name in row.names if not row.domain}
        return tuple(sorted(name for name in names if self.target.has("", name)))

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        if self.target is not None:
            return {
                **self.target.as_dict(),
                "operators": list(self.operators) or None,
                "lacking": list(self.lacking),
                "faults": [
                    {"operator": fault.operator, "text": fault.text, "help": fault.help}
                    for fault in self.target.faults
                ],
                "notes": list(self.table.notes),
            }
        return {
            "name": self.table.name,
            "title": self.table.title,
            "newest": self.table.newest,
            "releases": [
                {
                    "from": row.since,
                    "opset": row.opset,
                    "oldest_opset": row.oldest,
                    "ir_version": row.ir_version,
                    "measured": row.measured,
                    "source": row.source,
                }
                for row in self.table.releases
            ],
            "notes": list(self.table.notes),
        }


def runtime_rows(text: str) -> RuntimeRows | None:
    """Return what a runtime takes, by its name with or without a release; None if the text names none.

    Raises UsageError for a known runtime with a release that is not.
    """
    try:
        meant = understand(text)
    except UsageError:
        return None
    if not meant.release and not meant.among_words:
        return RuntimeRows(meant.table, _only(meant.table))
    return RuntimeRows(meant.table, resolve(text).members[0])


def _only(table: Table) -> Target | None:
    """Return the target of a runtime without releases."""
    return None if table.releases[0].since else Target(table, table.releases[0], request=table.name)
