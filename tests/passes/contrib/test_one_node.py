"""Every operator of ONNX Runtime that has a form in ai.onnx: one node, written so, computes the same numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.passes.contrib import level_1
from tests.passes.contrib.one_node import Case, check_case

SAMPLE = 3
"""Cases of each grid and operator that are run in all variants; the others run as they are."""


def cases() -> Iterator[tuple[Case, int, bool]]:
    """Yield all cases with their opsets, and whether all variants are run."""
    for level in (level_1,):
        for grid in level.GRIDS:
            seen: dict[str, int] = {}
            for case in grid():
                seen[case.operator] = seen.get(case.operator, 0) + 1
                for opset in case.opsets:
                    yield case, opset, seen[case.operator] <= SAMPLE and not case.fixed


@pytest.mark.parametrize(
    ("case", "opset", "whole"), [pytest.param(*item, id=f"{item[0]}-{item[1]}") for item in cases()]
)
def test_a_node_written_with_the_standard_computes_the_same(case: Case, opset: int, whole: bool) -> None:
    check_case(case, opset, ("plain", "symbolic", "if", "function") if whole else ("plain",))
