"""Defaults are written out, and attributes whose absence has a meaning of its own stay out."""

from __future__ import annotations

from typing import Any

from onnx import helper

from tests.passes.targets.test_fit_forms import fit


def attributes(call: str, result: str = "a,b,c,d", opset: int = 17) -> dict[str, Any]:
    proto, _ = fit(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[1,2,5,5] x) => (float[{result}] y)
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
