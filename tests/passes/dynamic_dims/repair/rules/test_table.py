"""The table names operators that there are."""

from __future__ import annotations

from onnx import defs
from onnx_migrate.passes.dynamic_dims.repair.rules.table import MENDERS, OF_CONSTANTS


def test_operators() -> None:
    assert {name for name in MENDERS if not defs.has(name)} == set()
    assert MENDERS.keys() >= OF_CONSTANTS
