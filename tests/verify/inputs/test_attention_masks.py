"""A mask of an attention has as many columns as there are keys, those of the past and those of the query."""

from __future__ import annotations

import pytest

import onnx_migrate
from onnx_migrate.verify.inputs.sizes import input_shapes, size_choices
from tests.harness import model

HEAD = (
    '<ir_version: 11, opset_import: ["": 23, "com.microsoft": 1]>'
    " g (float[B,S,16] x, {mask} m, float[B,2,P,8] k, float[B,2,P,8] v)"
)
ATTENTION = "y, a, b = Attention <kv_num_heads = 2, q_num_heads = 2> (x, x, x, {mask}, k, v) }}"
CONTRIB = 'y, a, b = com.microsoft.MultiHeadAttention <num_heads = 2> (x, x, x, "", "", {mask}, k, v) }}'
OUT = " => (float[B,S,16] y, float[B,2,T,8] a, float[B,2,T,8] b) {{ "

MODELS = {
    "Attention": HEAD.format(mask="float[B,1,S,T]") + OUT.format() + ATTENTION.format(mask="m"),
    "a mask of three axes": HEAD.format(mask="bool[1,S,T]") + OUT.format() + ATTENTION.format(mask="m"),
    "behind a Cast": HEAD.format(mask="int64[B,1,S,T]") + OUT.format() + "c = Cast <to = 9> (m) " + ATTENTION.format(mask="c"),
    "without a name": HEAD.format(mask="float[B,1,S,?]").replace("?", "unk") + OUT.format() + ATTENTION.format(mask="m"),
    "MultiHeadAttention": HEAD.format(mask="float[B,2,S,T]") + OUT.format() + CONTRIB.format(mask="m"),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_the_last_axis_counts_all_keys(name: str) -> None:
    proto = model(MODELS[name])
    for choice in size_choices(proto)[:8]:
        shapes = input_shapes(proto, None, choice)
        assert shapes["m"][-1] == shapes["k"][2] + shapes["x"][1]


@pytest.mark.parametrize("name", ["Attention", "behind a Cast"])
def test_a_decoder_with_a_past_is_verified(name: str) -> None:
    found = onnx_migrate.migrate(model(MODELS[name]), verify="require", isolated=False, simplify=False)
    assert found.report.verified


def test_sizes_that_are_given_stay() -> None:
    proto = model(MODELS["Attention"])
    shapes = input_shapes(proto, None, size_choices(proto)[0], {"T": 5})
    assert shapes["m"][-1] == 5
