"""One runtime at one release, and the releases of a runtime at which its table says something new."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from onnx_migrate.cached import cached_property
from onnx_migrate.standard.schema import is_onnx, newest_but_for_types, newest_opset, signature_at
from onnx_migrate.standard.targets.measured_forms import FAILING, Box, shipped_forms
from onnx_migrate.standard.targets.releases import key
from onnx_migrate.standard.targets.rows import (
    FaultRow,
    KernelRow,
    Knowledge,
    Lower,
    OperatorSupport,
    ReleaseRow,
    Table,
)

__all__ = ["Target", "milestones"]

_DEFINED = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft")
"""The domains whose operators ONNX or ONNX Runtime defines: an operator of another may be a plugin."""


@dataclass(frozen=True)
class Target:
    """One release of a runtime, with the table that describes its support."""

    table: Table
    row: ReleaseRow
    release: str = ""
    """The release that the user asked for, or the installed one; "" for a runtime without releases."""
    number: str = ""
    """The release number that selects the rows of the table."""
    request: str = ""
    """What the user wrote."""
    later: bool = False
    """Whether the release is newer than the newest one we checked, so that the last row of the table describes it."""
    assumed: bool = False
    """Whether the user named no release and none is installed, so that the table's default applies."""
    installed: bool = False
    """Whether the user named no release, so that the installed one applies."""

    @property
    def name(self) -> str:
        """The name of the runtime for `--for`."""
        return self.table.name

    @property
    def opset(self) -> int | None:
        """The newest opset that the release supports; None if no limit is known."""
        return self.row.opset

    @property
    def oldest(self) -> int | None:
        """The oldest opset that the release supports; None if no limit is known."""
        return self.row.oldest

    @property
    def ir_version(self) -> int | None:
        """The newest IR version that it loads, None if none is known."""
        return self.row.ir_version

    @property
    def measured(self) -> bool:
        """Whether the row was measured by running the release; else it was only read."""
        return self.row.measured

    @cached_property
    def boxes(self) -> Mapping[str, Sequence[Box]] | None:
        """The boxes of the forms that the release computed right, by operator; None if we did not measure forms.

        If we did, only these boxes prove that a node runs. A row that we only read does not cover every form.
        """
        measured = shipped_forms(self._forms_of)
        return measured.of(self.number) if measured else None

    @cached_property
    def failing(self) -> Mapping[str, Sequence[Box]]:
        """The boxes of the forms that failed in it although it has their operators, by operator."""
        measured = shipped_forms(self._forms_of, FAILING)
        return (measured.of(self.number) if measured else None) or {}

    @cached_property
    def pairs(self) -> Mapping[str, Set[str]]:
        """The pairs of an input's place and the operator before it that the release computed right, by operator.

        {} means that pairs do not count.
        """
        measured = shipped_forms(self._forms_of)
        return measured.pairs_of(self.number) if measured else {}

    @property
    def _forms_of(self) -> str:
        """The runtime whose forms are this one's, "" for a user's own."""
        own = self.table.name if self.table.file == f"{self.table.name}.toml" else ""
        return self.table.built_from or own

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the users of the runtime; the note of the release comes last."""
        return (*self.table.notes, *([self.row.note] if self.row.note else []))

    @property
    def lower(self) -> Lower:
        """Whether a newer model must be converted to the supported opset (True), or as near to it as possible ("nearest")."""
        return True if self.table.newer == "refused" else "nearest"

    def __str__(self) -> str:
        return f"{self.table.title} {self.release}".rstrip()

    @property
    def pinned(self) -> str:
        """The request with the release that was found for it, so that it means the same elsewhere."""
        named = not (self.installed or self.assumed)
        return self.request if named else f"{self.request}=={self.release}"

    @property
    def qualified(self) -> str:
        """The title and the release; a remark follows if we only read about its support and did not test it."""
        return str(self) if self.measured else f"{self} (by its documentation, not tested by us)"

    def has(self, domain: str, operator: str) -> bool:
        """Return whether it has an operator, of whatever version. Domain "ai.onnx" is ""."""
        rows = self.rows_of(domain, operator)
        if any(row.lacking for row in rows) or (domain in ("", "ai.onnx") and operator in self.row.without):
            return False
        if rows or not self.table.listed:
            return True
        return self.table.custom_operators and domain not in _DEFINED

    def knowledge(self, domain: str, operator: str) -> Knowledge:
        """Return how well we know that the release supports an operator that no row calls missing.

        A table with operators = "any" covers only the operators of the standard. A measured opset does not mean that
        all its operators are measured.
        """
        rows = self.rows_of(domain, operator)
        if rows:
            return Knowledge.MEASURED if any(row.measured for row in rows) else Knowledge.READ
        of_standard = domain in ("", "ai.onnx", "ai.onnx.ml")
        return Knowledge.READ if self.table.extent == "any" and of_standard else Knowledge.UNKNOWN

    def newest_version(self, domain: str, operator: str) -> int | None:
        """Return the newest version of an operator that the release supports; None if no limit is known."""
        versions = (row.newest for row in self.rows_of(domain, operator))
        if self.table.later_types:
            versions = (last and newest_but_for_types(domain, operator, last) for last in versions)
        return min((version for version in versions if version is not None), default=None)

    def oldest_version(self, domain: str, operator: str) -> int | None:
        """Return the oldest version of an operator that the release supports; None if no limit is known.

        A runtime may try newer opsets. Then a version that its newest opset does not have is no limit, because models of
        that opset have older versions. A release may lack an operator that the standard has removed, such as Upsample.
        Then the result is the opset of the removal, if the release supports that opset.
        """
        newest = self.opset or newest_opset()
        oldest = (row.oldest for row in self.rows_of(domain, operator))
        versions = [since for since in oldest if since is None or since <= newest or self.lower is True]
        if is_onnx(domain) and not self.has(domain, operator):
            last = signature_at("", operator, min(newest, newest_opset()))
            versions.append(last.since_version if last is not None and last.deprecated else None)
        return max((version for version in versions if version is not None), default=None)

    def rows_of(self, domain: str, operator: str) -> tuple[OperatorSupport, ...]:
        """Return the rows on an operator that hold for this release: the measured rows if there are any, else all."""
        rows = self._operators.get(("" if domain == "ai.onnx" else domain, operator), ())
        return tuple(row for row in rows if row.measured) or rows

    @cached_property
    def faults(self) -> tuple[FaultRow, ...]:
        """The faults of this release: operators that it computes wrongly."""
        return tuple(fault for fault in self.table.faults if self._holds(fault.since, fault.until))

    def kernels(self, domain: str, operator: str) -> tuple[KernelRow, ...]:
        """Return for which element types this release has no kernel of an operator."""
        return tuple(
            row
            for row in self.table.kernels
            if operator in row.names and row.domain == domain and self._holds(row.since, row.until)
        )

    def source_of(self, row: OperatorSupport | FaultRow | KernelRow) -> str:
        """Return the source of a row."""
        return row.source or self.row.source

    @cached_property
    def _operators(self) -> dict[tuple[str, str], tuple[OperatorSupport, ...]]:
        rows_by_operator: dict[tuple[str, str], tuple[OperatorSupport, ...]] = {}
        for row in self.table.operators:
            # A row may hold for some releases only.
            if self._holds(row.since, row.until):
                for name in row.names:
                    rows_by_operator[row.domain, name] = (*rows_by_operator.get((row.domain, name), ()), row)
        return rows_by_operator

    def _holds(self, since: str, until: str) -> bool:
        number = key(self.number)
        return (not since or key(since) <= number) and (not until or number < key(until))


def milestones(table: Table) -> tuple[Target, ...]:
    """Return a target for each release at which a row of the table begins or ends, oldest first, and for the newest known.

    Each target describes all releases before the next one. A runtime without releases is one target.
    """
    rows = table.releases
    if not rows[0].since:
        return (Target(table, rows[0], request=table.name),)
    starts = [key(row.since) for row in rows]
    named = {row.since for row in rows} | {table.newest}
    named |= {release for row in table.operators for release in (row.since, row.until)}
    named |= {release for fault in table.faults for release in (fault.since, fault.until)}
    numbers = {key(release): release for release in sorted(named) if release and key(release) >= starts[0]}
    return tuple(
        Target(table, rows[bisect_right(starts, number) - 1], release, release, f"{table.name}=={release}")
        for number, release in sorted(numbers.items())
    )
