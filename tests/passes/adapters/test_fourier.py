"""DFT 17 → 20: its axis becomes an input."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check


@pytest.mark.parametrize(
    "attributes",
    [
        "",
        "<axis = 1>",
        "<axis = 2>",
        "<axis = -2>",
        "<axis = -3>",
        "<axis = 2, onesided = 1>",
        "<inverse = 1>",
    ],
)
@pytest.mark.parametrize("length", ["", ", length"])
def test_axes(attributes: str, length: str) -> None:
    parts = 1 if "onesided" in attributes else 2
    source = f"""<ir_version: 8, opset_import: ["": 17]>
        graph (float[2, 6, 8, {parts}] x) => (float[a, b, c, d] y) <int64 length = {{7}}>
        {{ y = DFT {attributes} (x{length}) }}"""
    check(source, to=20)


def test_an_axis_that_is_an_attribute_of_a_function() -> None:
    source = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
        graph (float[2, 6, 8, 2] x) => (float[a, b, c, d] y, float[e, f, g, h] z) {
            y = local.F <at = 1> (x)
            z = local.F <at = 2> (x)
        }
        <domain: "local", opset_import: ["": 17]> F <at> (a) => (b) { b = DFT <axis: int = @at> (a) }"""
    check(source, to=20, variants=["plain", "symbolic", "if"])


def test_version_20_is_unchanged() -> None:
    source = """<ir_version: 9, opset_import: ["": 20]>
        graph (float[2, 6, 8, 2] x) => (float[a, b, c, d] y) { y = DFT (x) }"""
    x = np.random.default_rng(0).standard_normal((2, 6, 8, 2)).astype(np.float32)
    check(source, to=21, feeds={"x": x})
