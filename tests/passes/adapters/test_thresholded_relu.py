"""ThresholdedRelu 10 → 22 computes the same."""

from __future__ import annotations

import pytest

from tests.harness import check


@pytest.mark.parametrize("alpha", ["", "<alpha = 2.0>", "<alpha = -1.0>"])
def test_from_10(alpha: str) -> None:
    source = f"""<ir_version: 5, opset_import: ["": 10]>
        graph (float[2, 3, 4] x) => (float[2, 3, 4] y) {{ y = ThresholdedRelu {alpha} (x) }}"""
    check(source, to=22)
