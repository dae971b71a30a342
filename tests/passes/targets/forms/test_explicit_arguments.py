"""Writes what importers want to find in a node: attributes and lengths that may be left out, and constant scales."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import helper

from tests.passes.targets.test_fit_forms import fit
from tests.steps import operators, refuses


def attributes(call: str, result: str = "a,b,c,d", opset: int = 17) -> dict[str, Any]:
    proto, _ = fit(
        f"""{opset} (float[1,2,5,5] x) => (float[{result}] y)
        <float[2,2,3,3] w = {{{", ".join(["0.5"] * 36)}}}> {{ y = {call} }}""",
        "default_attributes",
    )
    return {item.name: helper.get_attribute_value(item) for item in proto.graph.node[0].attribute}


def test_defaults_of_the_schema() -> None:
    assert attributes("LeakyRelu (x)")["alpha"] == helper.make_attribute("a", 0.01).f
    assert attributes("ReduceMean (x)") == {"keepdims": 1}  # no axes: all of them
    assert attributes("Transpose (x)") == {}
    assert attributes("Softmax <axis = 2> (x)") == {"axis": 2}


def test_windows() -> None:
    found = attributes("Conv <kernel_shape = [3, 3]> (x, w)")
    assert found == {
        "auto_pad": b"NOTSET", "group": 1, "kernel_shape": [3, 3], "strides": [1, 1], "dilations": [1, 1], "pads": [0, 0, 0, 0]
    }  # fmt: skip
    found = attributes('MaxPool <kernel_shape = [2, 2], auto_pad = "SAME_UPPER", strides = [2, 2]> (x)')
    assert "pads" not in found
    assert found["strides"] == [2, 2]
    assert "strides" not in attributes("Conv (x, w)")


def test_transposed_and_one_dimensional_kernels() -> None:
    result, _ = fit(
        """17 (float[1,2,5] x, float[2,1,4] w) => (float[1,1,8] y, float[1,1,5] z)
        <float[1,2,1] v = {1.0, 2.0}> { y = ConvTranspose (x, w)  z = Conv <kernel_shape = [1]> (x, v) }""",
        "kernel_shape",
    )
    assert [list(node.attribute[0].ints) for node in result.graph.node] == [[4], [1]]


@pytest.mark.parametrize(("opset", "attributes"), [(11, ""), (13, ""), (18, ", num_outputs = 2")])
def test_lengths(opset: int, attributes: str) -> None:
    length = 5 if opset == 18 else 6
    parts = (3, 2) if opset == 18 else (3, 3)
    proto, _ = fit(
        f"""{opset} (float[2,{length}] x) => (float[2,{parts[0]}] y, float[2,{parts[1]}] z)
        {{ y, z = Split <axis = -1{attributes}> (x) }}""",
        "split_lengths",
    )
    (node,) = proto.graph.node
    if opset < 13:
        assert [list(item.ints) for item in node.attribute if item.name == "split"] == [list(parts)]
    else:
        assert len(node.input) == 2
        assert [item.name for item in node.attribute] == ["axis"]


def test_an_unknown_length_is_warned_of() -> None:
    source = "13 (float[2,N] x) => (float[2,M] y, float[2,M] z) { y, z = Split <axis = 1> (x) }"
    proto, log = fit(source, "split_lengths")
    assert [note.code for note in log.notes] == ["form-kept"]
    assert len(proto.graph.node[0].input) == 1


UP = """<ir_version: 8, opset_import: ["": %d]> g (float[1,2,%s,4] x) => (float[a,b,c,d] y) {
    s = Constant <value = float[4] {1.0, 1.0, 2.0, 2.0}> () t = Identity (s) y = %s }"""


@pytest.mark.parametrize(
    ("opset", "call"), [(9, "Upsample (x, t)"), (10, "Resize (x, t)"), (17, "Resize (x, , t)")]
)
def test_constants_and_copies_of_them_become_initializers(opset: int, call: str) -> None:
    proto, _ = fit(UP % (opset, 3, call), "constant_scales")
    (node,) = proto.graph.node
    assert {name for name in node.input[1:] if name} == {tensor.name for tensor in proto.graph.initializer}


def test_sizes_that_follow_from_a_known_shape() -> None:
    source = """17 (float[1,2,3,4] x) => (float[a,b,c,d] y) <int64[4] m = {1, 1, 2, 2}> {
        l = Shape (x) n = Mul (l, m) y = Resize (x, , , n) }"""
    proto, _ = fit(source, "constant_scales")
    assert operators(proto) == ["Resize"]
    assert len(proto.graph.initializer) == 1
    refuses(
        "target-form",
        fit,
        source.replace("[1,2,3,4] x", "[1,2,H,W] x"),
        "constant_scales",
        match=r"'y' \(Resize-13\): its sizes \('n'\) are computed at run time",
    )
