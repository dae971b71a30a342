"""Lists the operators and opsets that a runtime supports: all its releases in a line each, or one release in full."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.errors import UsageError
from onnx_migrate.json_form import selects
from onnx_migrate.standard.targets import Table, Target, resolve
from onnx_migrate.standard.targets.rows import FaultRow, ReleaseRow
from onnx_migrate.standard.targets.wording import understand

__all__ = ["RuntimeRelease", "runtime_rows"]


@dataclass(frozen=True)
class RuntimeRelease:
    """One release of a runtime."""

    target: Target

    @property
    def lacking(self) -> tuple[str, ...]:
        """The operators that the release is known to lack, where the table does not list those that it has."""
        table = self.target.table
        if table.listed:
            return ()
        names = {name for row in table.operators if row.lacking for name in row.names if not row.domain}
        return tuple(sorted(name for name in names if not self.target.has("", name)))

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of ai.onnx that the release is known to have, unless it has all but those that it lacks."""
        table = self.target.table
        if table.extent == "any":
            return ()
        names = {name for row in table.operators for name in row.names if not row.domain}
        return tuple(sorted(name for name in names if self.target.has("", name)))

    @property
    def others(self) -> str:
        """The state of the operators that the table does not name: not supported, supported, or not known."""
        return {"listed": "not supported", "any": "supported", "unknown": "not known"}[
            self.target.table.extent
        ]


def runtime_rows(text: str) -> Table | RuntimeRelease | None:
    """Return the table of a runtime that a text names, or the release of it; None if the text names none.

    A sentence that names a runtime without a release does not ask about the runtime: most are error texts.
    Raises UsageError for a known runtime with a release that is not.
    """
    try:
        meant = understand(text)
    except UsageError:
        return None
    if meant.among_words and not meant.release:
        return None
    # Only a release has an answer of its own.
    if meant.release or meant.among_words:
        return RuntimeRelease(resolve(text).members[0])
    table = meant.table
    # A table without releases has only one answer.
    if table.releases[0].since:
        return table
    return RuntimeRelease(Target(table, table.releases[0], request=table.name))


def _newest(table: Table) -> str | None:
    return table.newest


selects(ReleaseRow, "from=since opset oldest_opset=oldest ir_version measured source")
selects(FaultRow, "operators=names text help")
selects(Table, "name title newest releases notes", newest=_newest)
selects(
    RuntimeRelease,
    """request=target.request name=target.name title=target.table.title release=target.release? opset=target.opset
    oldest_opset=target.oldest ir_version=target.ir_version measured=target.measured later_than_table=target.later
    release_assumed=target.assumed source=target.row.source table=target.table.file table_sha256=target.table.digest
    operators? lacking other_operators=others faults=target.faults notes=target.notes""",
)  # fmt: skip
