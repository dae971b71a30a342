"""What the form of a node has, and which nodes have the same one."""

from __future__ import annotations

import pytest

from onnx_migrate.facts.node_form import node_forms
from onnx_migrate.files import load
from onnx_migrate.standard.targets import NodeForm
from tests.harness import model

WEIGHTS = f"{{{', '.join(['1'] * 108)}}}"


def forms(text: str) -> list[NodeForm]:
    return list(node_forms(load(model(text))))


def form(text: str) -> dict[str, str]:
    return dict(forms(text)[-1].facts)


def test_the_facts_of_a_convolution() -> None:
    found = form(
        """17 (float[1,3,8,8] x) => (float[1,4,4,4] y) <float[4,3,3,3] w = {0}> {
          y = Conv <strides = [2, 2], pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (x, w) }""".replace(
            "{0}", WEIGHTS
        )
    )

    assert found == {
        "version": "11", "types": "float,float", "inputs": "x,c", "ranks": "4,4>4", "rank": "4", "outputs": "y",
        "dims": "1nn", "size": "3", "after": "", "behind": "", "auto_pad": "~NOTSET", "group": "~1", "kernel_shape": "equal",
        "pads": "equal pp", "strides": "equal", "last": "yes",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "same", "other"),
    [
        ("ReduceMean <axes = [2, 3]>", "ReduceMean <axes = [2, 3]>", "ReduceMean <axes = [1, 2]>"),
        ("Softmax <axis = 3>", "Softmax <axis = 3>", "Softmax <axis = -1>"),
        ("Softmax <axis = 1>", "Softmax <axis = 1>", "Softmax <axis = 2>"),
        ("LeakyRelu <alpha = 0.2>", "LeakyRelu <alpha = 0.3>", "LeakyRelu"),
        ("Transpose <perm = [0, 2, 3, 1]>", "Transpose <perm = [0, 2, 3, 1]>", "Transpose <perm = [0, 3, 1, 2]>"),
    ],
)  # fmt: skip
def test_what_an_importer_reads_alike_is_one_form(operator: str, same: str, other: str) -> None:
    def of(node: str) -> dict[str, str]:
        name, _, attributes = node.partition(" ")
        return form(f"13 (float[1,3,4,5] x) => (float[a,b,c,d] y) {{ y = {name} {attributes} (x) }}")

    assert of(operator) == of(same)
    assert of(operator) != of(other)


def test_lengths_do_not_count_but_1_and_their_magnitude() -> None:
    first = form("13 (float[1,3,4,5] x, float[3,1,1] b) => (float[a,b,c,d] y) { y = Add (x, b) }")
    second = form("13 (float[1,4,3,4] x, float[4,1,1] b) => (float[a,b,c,d] y) { y = Add (x, b) }")
    other = form("13 (float[1,3,4,5] x, float[5] b) => (float[a,b,c,d] y) { y = Add (x, b) }")

    assert first == second
    assert first["broadcast"] == "- a 0"
    assert other["broadcast"] == "- 0 a"


def test_inputs_are_constants_of_shapes_or_data() -> None:
    found = forms(
        """17 (float[2,3] x, float[2] z) => (float[a,b] y, int64[c] s)
          <int64[1] at = {0}, int64[1] rest = {-1}, float[1] w = {1.0}> {
          s = Shape (x) f = Gather (s, at) t = Concat <axis = 0> (f, rest) r = Reshape (x, t)
          v = Identity (w) m = Mul (r, v) y = Clip (m, , w) }"""
    )
    inputs = {one.operator: one.facts["inputs"] for one in found}

    assert inputs == {
        "Shape": "x", "Gather": "s,c", "Concat": "s,c", "Reshape": "x,s", "Identity": "c", "Mul": "x,i", "Clip": "x,-,c",
    }  # fmt: skip
    assert found[0].facts["end"] == "shape"
    assert "end" not in found[-1].facts
    assert found[-1].facts["after"] == "Mul"


def test_before_inputs_of_data_stand_operators_by_their_places() -> None:
    text = """13 (float[1,4] x, float[1,4] z, bool c) => (float[n,m] y) <int64[1] k = {2}> {
        a = Relu (x) b = Exp (z) s = Shape (a) t = Concat <axis = 0> (k, k)
        e = Expand (b, s) y = Concat <axis = 0> (a, x, b, e, a) }"""
    found = {item.operator: item.facts["behind"] for item in forms(text)}
    assert found == {
        "Relu": "",
        "Exp": "",
        "Shape": "0Relu",
        "Concat": "0Relu,2Exp,3Expand,3Relu",
        "Expand": "0Exp",
    }


def test_of_many_inputs_counts_which_there_are() -> None:
    two = form("13 (float[2] x, float[2] z) => (float[a] y) { y = Concat <axis = 0> (x, z) }")
    five = form("13 (float[2] x) => (float[a] y) { y = Concat <axis = 0> (x, x, x, x, x) }")
    six = form("13 (float[2] x) => (float[a] y) { y = Concat <axis = 0> (x, x, x, x, x, x) }")

    assert two["types"] == "float,float"
    assert five == six


def test_what_is_not_known_is_said() -> None:
    found = forms(
        "13 (float[N,3] x, int64[K] s) => (float y) { r = Reshape (x, s) v = Relu (r) y = Squeeze (v) }"
    )[1].facts

    assert found["ranks"] == "?>?"
    assert found["dims"] == "?"
    assert form("13 (float[N,3] x) => (float[a,b] y) { y = Relu (x) }")["dims"] == "?n"


def test_of_the_nodes_of_trees_counts_which_modes_there_are() -> None:
    def of(modes: list[str]) -> dict[str, str]:
        written = ", ".join(f'"{mode}"' for mode in modes)
        return form(
            '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[1,3] x) => (float[1,1] y)'
            f" {{ y = ai.onnx.ml.TreeEnsembleRegressor <nodes_modes = [{written}]> (x) }}"
        )

    assert of(["LEAF", "BRANCH_LEQ"] * 9) == of(["BRANCH_LEQ", "LEAF", "LEAF"] * 7)
    assert of(["LEAF", "BRANCH_LEQ"] * 9) != of(["LEAF", "BRANCH_LT"] * 9)
