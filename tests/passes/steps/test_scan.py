"""Scan below 11, 9 and 8: axes, directions, states and outer values."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down

SUM = """body = b (float[2] s, float[2] x) => (float[2] t, float[2] z) { t = Add (s, x)  z = Mul (t, x) }"""


def text(attributes: str = "", x: str = "[4, 2]", z: str = "[4, 2]", opset: int = 11) -> str:
    return f"""<ir_version: 6, opset_import: ["": {opset}]>
        graph (float[2] start, float{x} x) => (float[2] last, float{z} all)
        {{ last, all = Scan <num_scan_inputs = 1, {SUM}{attributes}> (start, x) }}"""


@pytest.mark.parametrize(
    ("attributes", "x", "z"),
    [
        ("", "[4, 2]", "[4, 2]"),
        (", scan_input_directions = [1]", "[4, 2]", "[4, 2]"),
        (", scan_output_directions = [1]", "[4, 2]", "[4, 2]"),
        (", scan_output_directions = [1], scan_input_directions = [1]", "[4, 2]", "[4, 2]"),
        (", scan_input_axes = [1]", "[2, 4]", "[4, 2]"),
        (", scan_output_axes = [1]", "[4, 2]", "[2, 4]"),
        (
            ", scan_input_axes = [-1], scan_output_axes = [-1], scan_output_directions = [1]",
            "[2, 4]",
            "[2, 4]",
        ),
    ],
)
def test_axes_and_directions(attributes: str, x: str, z: str) -> None:
    check_down(text(attributes, x, z), 10, 9)
    needs = {"unranked": "needs-rank"} if "_input_axes" in attributes else None
    check_down(text(attributes, x, z), 8, 7, refused=needs)


def test_two_scans_and_two_states() -> None:
    source = """<ir_version: 4, opset_import: ["": 9]>
        graph (float[2] a, float b, float[2, 5, 3] x, float[5] w)
            => (float[2] a_last, float b_last, float[2, 3, 5] first, float[5] second) {
            a_last, b_last, first, second = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0],
                scan_output_axes = [2, 0], scan_input_directions = [0, 1], scan_output_directions = [1, 0],
                body = c (float[2] p, float q, float[2, 3] e, float f)
                    => (float[2] pp, float qq, float[2, 3] g, float h)
                { pp = Mul (p, f)  qq = Add (q, f)  g = Mul (e, qq)  h = Identity (qq) }> (a, b, x, w)
        }"""
    check_down(source, 8, 7, refused={"unranked": "needs-rank"})


def test_no_states_and_an_outer_value() -> None:
    source = """<ir_version: 4, opset_import: ["": 9]>
        graph (float[4, 2] x, float[2] w) => (float[4, 2] all) {
            all = Scan <num_scan_inputs = 1, body = b (float[2] a) => (float[2] z) { z = Mul (a, w) }> (x)
        }"""
    check_down(source, 8, 7)


def test_a_scan_in_a_scan() -> None:
    source = """<ir_version: 4, opset_import: ["": 9]>
        graph (float[2] start, float[4, 3, 2] x) => (float[2] last, float[4, 3, 2] all) {
            last, all = Scan <num_scan_inputs = 1, body = b (float[2] s, float[3, 2] y) => (float[2] t, float[3, 2] z) {
                t, z = Scan <num_scan_inputs = 1, body = c (float[2] p, float[2] e) => (float[2] q, float[2] r)
                    { q = Add (p, e)  r = Mul (q, e) }> (s, y)
            }> (start, x)
        }"""
    check_down(source, 8, 7)


def test_the_batch_of_version_8_is_refused() -> None:
    source = f"""<ir_version: 4, opset_import: ["": 8]>
        graph (float[3, 2] start, float[3, 4, 2] x) => (float[3, 2] last, float[3, 4, 2] all)
        {{ last, all = Scan <num_scan_inputs = 1, {SUM}> ("", start, x) }}"""
    check_down(source, 7, refused={"plain": "no-equal"}, variants=("plain",))


def test_one_step() -> None:
    feeds = {"start": np.ones(2, np.float32), "x": np.ones((1, 2), np.float32)}
    check_down(text("", "[1, 2]", "[1, 2]"), 8, 7, feeds=feeds)
