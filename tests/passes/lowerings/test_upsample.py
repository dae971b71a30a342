"""Upsample below 9: scales as an attribute."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales(mode: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 9]> graph (float[1, 2, 3, 4] x) => (float[] y)
        <float[4] s = {{1.0, 1.0, 2.0, 1.5}}> {{ y = Upsample <mode = "{mode}"> (x, s) }}"""
    check_down(source, 8, 7)


def test_scales_at_run_time() -> None:
    source = """<ir_version: 4, opset_import: ["": 9]> graph (float[1, 2, 3, 4] x, float[4] s) => (float[] y)
        { y = Upsample (x, s) }"""
    feeds = {"x": np.ones((1, 2, 3, 4), np.float32), "s": np.array([1, 1, 2, 2], np.float32)}
    codes = dict.fromkeys(("plain", "symbolic", "unranked", "if", "function"), "needs-constant")
    check_down(source, 8, feeds=feeds, refused=codes)
