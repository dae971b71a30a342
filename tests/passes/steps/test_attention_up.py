"""Attention 23 → 25 computes the same: bit for bit to 24; ONNX Runtime 1.32 has no kernel for 25, and runs the function body."""

from __future__ import annotations

import pytest

from tests.harness import check
from tests.support.versions import RUNTIME


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("past", [False, True])
def test_from_23(causal: int, past: bool) -> None:
    more = ", float[1, 2, 2, 4] pk, float[1, 2, 2, 4] pv" if past else ""
    given = ', "", pk, pv' if past else ""
    outputs = ("y, nk, nv", ", float[1, 2, 5, 4] nk, float[1, 2, 5, 4] nv") if past else ("y", "")
    source = f"""<ir_version: 10, opset_import: ["": 23]>
        graph (float[1, 2, 3, 4] q, float[1, 2, 3, 4] k, float[1, 2, 3, 4] v{more})
            => (float[1, 2, 3, 4] y{outputs[1]})
        {{ {outputs[0]} = Attention <is_causal = {causal}, softcap = 2.0> (q, k, v{given}) }}"""
    check(source, to=24, newest=24)
    check(source, to=25, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mask", ["float[3, 5]", "bool[3, 5]"])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_masks(mask: str, mode: int) -> None:
    source = f"""<ir_version: 10, opset_import: ["": 23]>
        graph (float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v, {mask} m)
            => (float[1, 2, 3, 4] y, float[1, 2, 3, 5] p)
        {{ y, "", "", p = Attention <qk_matmul_output_mode = {mode}> (q, k, v, m) }}"""
    check(source, to=24, newest=24)
    if (mode, mask[:4]) != (2, "bool") or RUNTIME < (
        1,
        32,
    ):  # the body masks by -inf, the kernel by the lowest float
        check(source, to=25, rtol=1e-5, atol=1e-6)
