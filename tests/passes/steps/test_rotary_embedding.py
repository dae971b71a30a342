"""RotaryEmbedding written out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import model, random_feeds
from tests.lowering import check_down


def text(x: str, cache: str, attributes: str = "", dtype: str = "float", positions: str = "") -> str:
    ids = f", int64{positions} p" if positions else ""
    return f"""<ir_version: 11, opset_import: ["": 23]>
        graph ({dtype}{x} x, {dtype}{cache} c, {dtype}{cache} s{ids}) => ({dtype}{x} y)
        {{ y = RotaryEmbedding {attributes} (x, c, s{", p" if positions else ""}) }}"""


def check(source: str, *targets: int, tolerance: float = 1e-6, **more: object) -> None:
    feeds = random_feeds(model(source))
    if "p" in feeds:
        feeds["p"] = np.abs(feeds["p"]) % 5
    check_down(source, *(targets or (22, 17, 13, 11, 9)), feeds=feeds, rtol=tolerance, atol=tolerance, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("interleaved", [0, 1])
def test_four_axes(interleaved: int) -> None:
    check(text("[2,3,4,8]", "[2,4,4]", f"<interleaved = {interleaved}>"))
    check(text("[2,3,4,8]", "[5,4]", f"<interleaved = {interleaved}>", positions="[2,4]"))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_three_axes(interleaved: int) -> None:
    source = text("[2,4,24]", "[5,4]", f"<num_heads = 3, interleaved = {interleaved}>", positions="[2,4]")
    check(source, refused={"unranked": "needs-rank"})


@pytest.mark.parametrize("interleaved", [0, 1])
def test_partial_rotation(interleaved: int) -> None:
    attributes = f"rotary_embedding_dim = 4, interleaved = {interleaved}"
    check(text("[2,3,4,8]", "[5,2]", f"<{attributes}>", positions="[2,4]"))
    source = text("[2,4,24]", "[2,4,2]", f"<num_heads = 3, {attributes}>")
    check(source, refused={"unranked": "needs-rank"})
    check(text("[2,3,4,4]", "[2,4,2]", f"<{attributes}>"))


def test_four_axes_with_a_number_of_heads() -> None:
    check(text("[2,3,4,8]", "[2,4,4]", "<num_heads = 3>"), refused={"unranked": "needs-rank"})


def test_half_floats() -> None:
    check(text("[2,3,4,8]", "[2,4,4]", dtype="float16"), 22, 13, tolerance=2e-2)


def test_no_positions() -> None:
    check(text("[2,3,0,8]", "[2,0,4]"), 22, 13, variants=("plain",))
