"""DynamicQuantizeLinear below opset 11, with its rounding and the scale of zeros."""

from __future__ import annotations

import numpy as np

from tests.lowering import check_down


def test_dynamic_quantize_linear() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[3,4] x) => (uint8[3,4] y, float s, uint8 z)
        { y, s, z = DynamicQuantizeLinear(x) }"""
    for x in (
        None,
        np.zeros((3, 4)),
        np.full((3, 4), 2.5),
        -np.arange(12).reshape(3, 4),
        np.arange(12).reshape(3, 4) + 0.5,
    ):
        feeds = None if x is None else {"x": x.astype(np.float32)}
        check_down(source, 10, 9, feeds=feeds, specials=False)
        check_down(source, 7, feeds=feeds, variants=("plain", "if"), specials=False)
