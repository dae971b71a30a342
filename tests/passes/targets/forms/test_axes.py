"""Axes are counted from the front, in attributes, defaults and constant inputs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import make_variant, model
from tests.passes.targets.test_fit_forms import fit


@pytest.mark.parametrize(
    ("opset", "call", "result", "axes"),
    [
        (17, "Softmax <axis = -2> (x)", "2,3,4", 1),
        (17, "Softmax (x)", "2,3,4", 2),
        (11, "Softmax (x)", "2,3,4", None),
        (17, "Concat <axis = -1> (x, x)", "2,3,8", 2),
        (17, "Flatten <axis = -1> (x)", "6,4", 2),
        (11, "Unsqueeze <axes = [-1]> (x)", "2,3,4,1", [3]),
        (17, "ReduceMean <axes = [-1, 0]> (x)", "1,3,1", [2, 0]),
        (17, "LayerNormalization (x, s)", "2,3,4", 2),
        (17, "Gather <axis = -1> (x, i)", "2,3,2", 2),
        (17, "Softmax <axis = 1> (x)", "2,3,4", 1),
    ],
)
def test_an_attribute(opset: int, call: str, result: str, axes: Any) -> None:
    proto, log = fit(
        f"""{opset} (float[2,3,4] x) => (float[{result}] y)
        <float[4] s = {{1.0, 1.0, 1.0, 1.0}}, int64[2] i = {{0, 1}}> {{ y = {call} }}""",
        "non_negative_axes",
    )
    found = {item.name: list(item.ints) or item.i for item in proto.graph.node[0].attribute}
    assert (found.get("axis", found.get("axes"))) == axes
    assert bool(log.changes) == ("-" in call or (opset == 17 and "axis" not in call))


@pytest.mark.parametrize(
    "call", ["y = ReduceSum (x, a)", "k = Constant <value_ints = [-1]> () y = ReduceSum (x, k)"]
)
def test_axes_of_an_unknown_number_of_axes_stay(call: str) -> None:
    text = f"17 (float[2,3] x) => (float[a,b] y) <int64[1] a = {{-1}}> {{ {call} }}"
    source, _ = make_variant(model(text), "unranked", {})
    proto, log = fit(source, "non_negative_axes")
    assert proto.graph.node[-1].input[1] in "ak"
    assert "[-1] cannot be counted from the front" in " ".join(note.message for note in log.notes)


@pytest.mark.parametrize(
    ("call", "result", "index", "axes"),
    [
        ("Squeeze (x, a)", "2,3", 1, [2]),
        ("Unsqueeze (x, a)", "2,3,1,1", 1, [3]),
        ("ReduceSum (x, a)", "2,3,1", 1, [2]),
        ("Slice (x, z, e, a)", "2,3,1", 3, [2]),
    ],
)
def test_an_input(call: str, result: str, index: int, axes: list[int]) -> None:
    from onnx import numpy_helper

    proto, _ = fit(
        f"""17 (float[2,3,1] x) => (float[{result}] y)
        <int64[1] a = {{-1}}, int64[1] z = {{0}}, int64[1] e = {{1}}> {{ y = {call} }}""",
        "non_negative_axes",
    )
    name = proto.graph.node[0].input[index]
    (tensor,) = [tensor for tensor in proto.graph.initializer if tensor.name == name]
    assert numpy_helper.to_array(tensor).tolist() == axes
    assert "a" not in [tensor.name for tensor in proto.graph.initializer]
