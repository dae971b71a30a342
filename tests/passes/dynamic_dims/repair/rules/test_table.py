"""The table of repair rules."""

from __future__ import annotations

import pytest
from onnx import defs
from onnx_migrate.passes.dynamic_dims.repair.rule_table import _OF_CONSTANTS, RULES

from tests.harness import ONNX_NEWEST, SUPPORTED


@pytest.mark.skipif(ONNX_NEWEST < SUPPORTED, reason="an older onnx does not know all operators")
def test_every_operator_of_the_table_exists() -> None:
    assert {name for domain, name in RULES if not domain and not defs.has(name)} == set()
    assert RULES.keys() >= _OF_CONSTANTS
