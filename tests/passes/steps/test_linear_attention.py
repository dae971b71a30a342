"""LinearAttention below opset 27, against onnx.reference."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import model, random_feeds, reference
from tests.lowering import check_down


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
    source = f"""<ir_version: 13, opset_import: ["": 27]> graph ({", ".join(inputs)})
        => (float[2,5,{heads * 4}] y, float[2,{own},3,4] s)
        {{ y, s = LinearAttention<update_rule = "{rule}", q_num_heads = {heads}, kv_num_heads = {own}
            {", scale = 0.7" if past else ""}> ({", ".join(names)}) }}"""
    check(source, 26, 17, 11, 9)


def test_half_floats_with_a_state_of_floats() -> None:
    source = """<ir_version: 13, opset_import: ["": 27]>
        graph (float16[1,3,6] q, float16[1,3,6] k, float16[1,3,6] v, float[1,2,3,3] p)
        => (float16[1,3,6] y, float[1,2,3,3] s)
        { y, s = LinearAttention<update_rule = "linear", q_num_heads = 2, kv_num_heads = 2> (q, k, v, p) }"""
    check(source, 26, 13, tolerance=2e-3)
