"""The CSV file of `verify --all-values`: how far every value of one model is from its counterpart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from onnx_migrate.cli.output.side_files import SideFile

if TYPE_CHECKING:
    from onnx_migrate.verdicts import ValueDistance

__all__ = ["values_at", "values_table"]

_HEAD = ("value", "other_value", "node", "operator", "shape", "error")


def values_at(path: str) -> SideFile:
    """Return the table at a path, which may replace another one."""
    head = ",".join(_HEAD).encode()
    return SideFile("--all-values", path, "a table of values", lambda start: start.startswith(head))


def values_table(values: Sequence[ValueDistance]) -> Iterator[bytes]:
    """Yield the table: a row for each value in the order of the original's nodes; errors are shares of the largest value."""
    import csv
    import io

    text = io.StringIO()
    # The table is the same on every system.
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    for distance in values:
        shape = "x".join(map(str, distance.shape))
        writer.writerow(
            [
                distance.value,
                distance.other_value,
                distance.node,
                distance.operator,
                shape,
                f"{distance.error:.6g}",
            ]
        )
    yield text.getvalue().encode("utf-8", "surrogateescape")
