"""LinearAttention and RotaryEmbedding down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import model, random_feeds, reference
from tests.steps import check_down


def check(source: str, *targets: int, tolerance: float = 1e-5, **more: Any) -> None:
    feeds = {name: (value / 3).astype(value.dtype) for name, value in random_feeds(model(source)).items()}
    expected = reference(model(source), feeds, None)
    check_down(source, *targets, feeds=feeds, expected=expected, rtol=tolerance, atol=tolerance, **more)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize(("heads", "own"), [(2, 2), (4, 2)])
@pytest.mark.parametrize("past", [True, False])
def test_rules(rule: str, heads: int, own: int, past: bool) -> None:
    inputs = [f"float[2,5,{heads * 3}] q", f"float[2,5,{own * 3}] k", f"float[2,5,{own * 4}] v"]
    names = ["q", "k", "v", "p" if past else '""']
    inputs += [f"float[2,{own},3,4] p"] if past else []
    if "gated" in rule:
        inputs.append(f"float[2,5,{own * 3 if past else own}] d")
    names.append("d" if "gated" in rule else '""')
    if "delta" in rule:
        inputs.append(f"float[2,5,{own if past else 1}] b")
        names.append("b")
    source = f"""27 ({", ".join(inputs)}) => (float[2,5,{heads * 4}] y, float[2,{own},3,4] s)
        {{ y, s = LinearAttention<update_rule = "{rule}", q_num_heads = {heads}, kv_num_heads = {own}
            {", scale = 0.7" if past else ""}> ({", ".join(names)}) }}"""
    check(source, 26, 17, 11, 9)


def test_half_floats_with_a_state_of_floats() -> None:
    source = """27 (float16[1,3,6] q, float16[1,3,6] k, float16[1,3,6] v, float[1,2,3,3] p)
        => (float16[1,3,6] y, float[1,2,3,3] s)
        { y, s = LinearAttention<update_rule = "linear", q_num_heads = 2, kv_num_heads = 2> (q, k, v, p) }"""
    check(source, 26, 13, tolerance=2e-3)


def text(x: str, cache: str, attributes: str = "", dtype: str = "float", positions: str = "") -> str:
    ids = f", int64{positions} p" if positions else ""
    return f"""23 ({dtype}{x} x, {dtype}{cache} c, {dtype}{cache} s{ids}) => ({dtype}{x} y)
        {{ y = RotaryEmbedding {attributes} (x, c, s{", p" if positions else ""}) }}"""


def check_rotary(source: str, *targets: int, tolerance: float = 1e-6, **more: object) -> None:
    feeds = random_feeds(model(source))
    if "p" in feeds:
        feeds["p"] = np.abs(feeds["p"]) % 5
    check_down(source, *(targets or (22, 17, 13, 11, 9)), feeds=feeds, rtol=tolerance, atol=tolerance, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("interleaved", [0, 1])
def test_four_axes(interleaved: int) -> None:
    check_rotary(text("[2,3,4,8]", "[2,4,4]", f"<interleaved = {interleaved}>"))
    check_rotary(text("[2,3,4,8]", "[5,4]", f"<interleaved = {interleaved}>", positions="[2,4]"))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_three_axes(interleaved: int) -> None:
    source = text("[2,4,24]", "[5,4]", f"<num_heads = 3, interleaved = {interleaved}>", positions="[2,4]")
    check_rotary(source, refused={"unranked": "needs-rank"})


@pytest.mark.parametrize("interleaved", [0, 1])
def test_partial_rotation(interleaved: int) -> None:
    attributes = f"rotary_embedding_dim = 4, interleaved = {interleaved}"
    check_rotary(text("[2,3,4,8]", "[5,2]", f"<{attributes}>", positions="[2,4]"))
    source = text("[2,4,24]", "[2,4,2]", f"<num_heads = 3, {attributes}>")
    check_rotary(source, refused={"unranked": "needs-rank"})
    check_rotary(text("[2,3,4,4]", "[2,4,2]", f"<{attributes}>"))


def test_four_axes_with_a_number_of_heads() -> None:
    check_rotary(text("[2,3,4,8]", "[2,4,4]", "<num_heads = 3>"), refused={"unranked": "needs-rank"})


def test_half_floats() -> None:
    check_rotary(text("[2,3,4,8]", "[2,4,4]", dtype="float16"), 22, 13, tolerance=2e-2)


def test_no_positions() -> None:
    check_rotary(text("[2,3,0,8]", "[2,0,4]"), 22, 13, variants=("plain",))
