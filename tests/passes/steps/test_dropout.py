"""Dropout below 12 and 10: training mode, the ratio, and masks that are read."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down

EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


def text(given: str, constants: str, mask: bool = False, inputs: str = "") -> str:
    outputs = "(float[] y, bool[] m)" if mask else "(float[] y)"
    return f"""<ir_version: 8, opset_import: ["": 12]> graph (float[2, 3] x{inputs}) => {outputs} <{constants}>
        {{ y{", m" if mask else ""} = Dropout <seed = 3> (x{given}) }}"""


@pytest.mark.parametrize(
    ("given", "constants"),
    [
        (", r", "float r = {0.25}"),
        (", r, t", "float r = {0.25}, bool t = {0}"),
        (", , t", "bool t = {0}"),
        (", r, t", "float r = {0}, bool t = {1}"),
    ],
)
def test_nothing_is_dropped(given: str, constants: str) -> None:
    check_down(text(given, constants), 11, 10, 9, 7)
    check_down(text(given, constants, mask=True), 11, 10, 9)


def test_a_ratio_at_run_time_is_not_read() -> None:
    feeds = {"x": np.eye(2, 3, dtype=np.float32), "r": np.array(0.3, np.float32)}
    check_down(text(", r", "", inputs=", float r"), 11, 7, feeds=feeds)


def test_training_is_refused() -> None:
    source = text(", r, t", "float r = {0.25}, bool t = {1}")
    check_down(
        source, 11, refused=dict.fromkeys(EVERYWHERE, "no-equal"), expected=[], feeds={"x": np.eye(2, 3)}
    )


def test_training_at_run_time_is_refused() -> None:
    source = text(", r, t", "float r = {0.25}", inputs=", bool t")
    feeds = {"x": np.eye(2, 3, dtype=np.float32), "t": np.array(False)}
    check_down(source, 11, feeds=feeds, refused=dict.fromkeys(EVERYWHERE, "needs-constant"))


@pytest.mark.parametrize("mask", [True, False])
def test_the_mask_of_version_10(mask: bool) -> None:
    outputs = "(float[] y, bool[] m)" if mask else "(float[] y)"
    source = f"""<ir_version: 5, opset_import: ["": 10]> graph (float[2, 3] x) => {outputs}
        {{ y, m = Dropout <ratio = 0.2> (x) }}"""
    check_down(source, 9, 7)


def test_training_without_dropping_has_a_mask() -> None:
    source = text(", r, t", "float r = {0}, bool t = {1}", mask=True)
    check_down(source, 11, feeds={"x": np.eye(2, 3, dtype=np.float32)})


def test_training_with_a_ratio_at_run_time_needs_the_ratio() -> None:
    feeds = {"x": np.eye(2, 3, dtype=np.float32), "r": np.array(0, np.float32)}
    source = text(", r, t", "bool t = {1}", inputs=", float r")
    check_down(source, 11, feeds=feeds, expected=[], refused=dict.fromkeys(EVERYWHERE, "needs-constant"))
