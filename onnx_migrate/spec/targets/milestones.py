"""The releases of a runtime at which its table says something new."""

from __future__ import annotations

from bisect import bisect_right

from onnx_migrate.spec.targets.releases import key
from onnx_migrate.spec.targets.rows import Table
from onnx_migrate.spec.targets.target import Target

__all__ = ["milestones"]


def milestones(table: Table) -> tuple[Target, ...]:
    """Return a target for each release at which a row of the table begins or ends, oldest first, and for the newest known.

    What is said of one holds for all releases before the next. A runtime without releases is one target.
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
