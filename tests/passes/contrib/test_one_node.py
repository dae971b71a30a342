"""Every operator of ONNX Runtime that has a form in ai.onnx: one node, written so, computes the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.passes.contrib import level_1, level_2, level_3, level_4
from tests.passes.contrib.one_node import Case, check_case
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import RUNTIME

WHOLE, SAMPLE = 2, 6
"""Cases of each operator in a grid that run in all variants, and that run at all by default, with every fifth of the others."""

LEVELS = (level_1, level_2, level_3, level_4)

pytestmark = skip_if(
    RUNTIME < (1, 32), "ONNX Runtime 1.32 is the one whose operators are written", Elsewhere.NEWEST
)


def cases() -> Iterator[Any]:
    """Yield all cases with their opsets, and the variants to run."""
    for level in LEVELS:
        for grid in level.GRIDS:
            seen: dict[str, int] = {}
            for case in grid():
                seen[case.operator] = count = seen.get(case.operator, 0) + 1
                others = ("if", "function") if case.fixed else ("symbolic", "if", "function")
                variants = ("plain", *(others if count <= WHOLE else ()))
                marks = [pytest.mark.campaign] if count > SAMPLE and count % 5 else []
                for opset in case.opsets:
                    yield pytest.param(case, opset, variants, id=f"{case}-{opset}", marks=marks)


@pytest.mark.parametrize(("case", "opset", "variants"), list(cases()))
def test_a_node_written_with_the_standard_computes_the_same(
    case: Case, opset: int, variants: tuple[str, ...]
) -> None:
    check_case(case, opset, variants)
