"""Loop below 11: one that carries no value."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down

EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


@pytest.mark.parametrize("count", [0, 1, 4])
def test_nothing_carried(count: int) -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[2] x, int64 n) => (float[] y, int64[] z)
        <bool on = {1}> {
        y, z = Loop (n, on) <body = b (int64 i, bool c) => (bool d, float[2] s, int64 t) {
            d = Identity (c)  f = Cast <to = 1> (i)  s = Add (x, f)  t = Identity (i) }> }"""
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(count)}
    check_down(source, 10, 9, 7, feeds=feeds)


def test_a_condition_and_no_count() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (int64 last, bool on) => (int64[] z) {
        z = Loop ("", on) <body = b (int64 i, bool c) => (bool d, int64 t) { d = Less (i, last)  t = Identity (i) }> }"""
    feeds = {"last": np.array(3), "on": np.array(True)}
    check_down(source, 10, 9, feeds=feeds)


def test_a_carried_value() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[2] x, int64 n) => (float[] y) {
        y = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] s) {
            d = Identity (c)  s = Add (a, a) }> }"""
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(3)}
    check_down(source, 10, 7, feeds=feeds)
