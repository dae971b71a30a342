"""Gemm below 11: a left out third input."""

from __future__ import annotations

import pytest

from tests.lowering import check_down


@pytest.mark.parametrize("attributes", ["", "<alpha = 0.5>", "<transA = 1, beta = 3.0>"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_two_inputs(attributes: str, dtype: str) -> None:
    shape = "3, 2" if "transA" in attributes else "2, 3"
    source = f"""<ir_version: 6, opset_import: ["": 11]> graph ({dtype}[{shape}] a, {dtype}[3, 4] b) => ({dtype}[] y)
        {{ y = Gemm {attributes} (a, b) }}"""
    check_down(source, 10, 9, 7)


def test_three_inputs() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[2, 3] a, float[3, 4] b, float[4] c) => (float[] y)
        { y = Gemm <beta = 0.5> (a, b, c) }"""
    check_down(source, 10, 7)
