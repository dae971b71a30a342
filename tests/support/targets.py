"""Targets that exist in tests only."""

from __future__ import annotations

from onnx_migrate.standard.targets import Targets
from onnx_migrate.standard.targets.read import parse_table
from onnx_migrate.standard.targets.target import Target


def targets_of(*texts: str) -> Targets:
    """Return the targets that texts of TOML describe, each at its last row; without a name, it is "chip"."""
    found = []
    for text in texts:
        named = text if text.lstrip().startswith("name") else f'name = "chip"\n{text}'
        table = parse_table(named.encode(), "chip.toml")
        row = table.releases[-1]
        found.append(Target(table, row, row.since, row.since, table.name))
    return Targets(tuple(found))
