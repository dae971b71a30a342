"""DepthToSpace and SpaceToDepth downwards: both orders of channels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down


@pytest.mark.parametrize("mode", ["", ', mode = "DCR"', ', mode = "CRD"'])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_depth_to_space(mode: str, dtype: str) -> None:
    source = f"""<ir_version: 6, opset_import: ["": 11]>
        graph ({dtype}[2, 12, 3, 4] x) => ({dtype}[a, b, c, d] y) {{ y = DepthToSpace <blocksize = 2{mode}> (x) }}"""
    check_down(source, 10, 7, variants=("plain", "symbolic", "unranked", "if"))
    check_down(source, 10, 9, variants=("function",))


@pytest.mark.parametrize("mode", ["", ', mode = "DCR"', ', mode = "CRD"'])
def test_space_to_depth(mode: str) -> None:
    source = f"""<ir_version: 13, opset_import: ["": 28]>
        graph (float[2, 3, 4, 6] x) => (float[a, b, c, d] y) {{ y = SpaceToDepth <blocksize = 2{mode}> (x) }}"""
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(np.float32)
    blocks = x.reshape(2, 3, 2, 2, 3, 2)
    perm = (0, 1, 3, 5, 2, 4) if "CRD" in mode else (0, 3, 5, 1, 2, 4)
    expected = blocks.transpose(perm).reshape(2, 12, 2, 3)
    check_down(source, 27, 13, 9, feeds={"x": x}, expected=[expected])
