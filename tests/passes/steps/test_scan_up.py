"""Scan: the batch axis of version 8 becomes an outer Scan."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.harness import check, lift

SUM = """body = b (float[2] s, float[2] x) => (float[2] t, float[2] z) {
    t = Add (s, x)
    n = ReduceSum <axes = [0], keepdims = 1> (t)
    z = Mul (t, n)
}"""


def text(lengths: str = '""', declared: str = "", initial: str = "") -> str:
    return f"""<ir_version: 4, opset_import: ["": 8]>
        graph (float[3, 2] start, float[3, 4, 2] x{declared})
            => (float[3, 2] last, float[3, 4, 2] all) {initial}
        {{ last, all = Scan <num_scan_inputs = 1, {SUM}> ({lengths}, start, x) }}"""


def test_batch() -> None:
    result = check(text(), to=9)
    assert [node.op_type for node in result.graph.node] == ["Scan"]


def test_directions_and_no_output_of_a_state() -> None:
    body = """body = b (float[2] s, float[2] x, float w) => (float[2] t, float[2] z, float q) {
        t = Add (s, x)
        z = Mul (t, w)
        q = Identity (w)
    }"""
    source = f"""<ir_version: 4, opset_import: ["": 8]>
        graph (float[3, 2] start, float[3, 4, 2] x, float[3, 4] w)
            => (float[3, 2] last, float[3, 4, 2] all, float[3, 4] same)
        {{ last, all, same = Scan <num_scan_inputs = 2, directions = [1, 0], {body}> ("", start, x, w) }}"""
    check(source, to=9)


def test_no_states_and_an_outer_value() -> None:
    source = """<ir_version: 4, opset_import: ["": 8]>
        graph (float[3, 4, 2] x, float[2] w) => (float[3, 4, 2] all) {
            all = Scan <num_scan_inputs = 1, body = b (float[2] a) => (float[2] z) { z = Mul (a, w) }> ("", x)
        }"""
    check(source, to=9)


def test_a_scan_in_a_scan() -> None:
    inner = """body = c (float[1] p, float[1] e)
        => (float[1] q, float[1] r) { q = Add (p, e)  r = Identity (q) }"""
    source = f"""<ir_version: 4, opset_import: ["": 8]>
        graph (float[2, 3, 1] start, float[2, 4, 3, 5, 1] x)
            => (float[2, 3, 1] last, float[2, 4, 3, 5, 1] all) {{
            last, all = Scan <num_scan_inputs = 1, body = b (float[3, 1] s, float[3, 5, 1] y)
                => (float[3, 1] t, float[3, 5, 1] z)
                {{ t, z = Scan <num_scan_inputs = 1, {inner}> ("", s, y) }}> ("", start, x)
        }}"""
    check(source, to=9)


def test_sequence_lens_of_the_whole_length_are_dropped() -> None:
    source = text("lengths", initial="<int64[3] lengths = {4, 4, 4}>")
    check(source, to=9, refused={"symbolic": "sequence-lens", "unranked": "sequence-lens"})


@pytest.mark.parametrize(
    "source",
    [text("lengths", initial="<int64[3] lengths = {4, 2, 4}>"), text("lengths", ", int64[3] lengths")],
)
def test_other_sequence_lens_are_refused(source: str) -> None:
    feeds = {"start": np.ones((3, 2), np.float32), "x": np.ones((3, 4, 2), np.float32)}
    if ", int64" in source:
        feeds["lengths"] = np.array([4, 2, 4])
    variants = ("plain", "symbolic", "unranked", "if", "function")
    check(source, to=9, feeds=feeds, refused=dict.fromkeys(variants, "sequence-lens"))


@pytest.mark.parametrize("axes", [[0], [1], [-1]])
def test_from_9(axes: list[int]) -> None:
    opset = 11 if axes[0] < 0 else 9
    source = f"""<ir_version: 4, opset_import: ["": {opset}]>
        graph (float[3] start, float[3, 3] x) => (float[3] last, float[3, 3] all)
        {{ last, all = Scan <num_scan_inputs = 1, scan_input_axes = {axes}, scan_output_axes = {axes},
           body = b (float[3] s, float[3] e)
               => (float[3] t, float[3] z) {{ t = Add (s, e)  z = Identity (t) }}> (start, x) }}"""
    check(source, to=16)


def test_names_are_deterministic() -> None:
    first, second = (lift(parser.parse_model(text()), 26)[0] for _ in range(2))
    assert first.SerializeToString() == second.SerializeToString()
