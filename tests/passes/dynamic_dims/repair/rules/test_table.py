"""The table names operators that there are."""

from __future__ import annotations

from onnx import defs
from onnx_migrate.passes.dynamic_dims.repair.rules.table import APPLIED_TO_CONSTANTS, RULES


def test_operators() -> None:
    assert {name for name in RULES if not defs.has(name)} == set()
    assert RULES.keys() >= APPLIED_TO_CONSTANTS
