"""antialias, axes and keep_aspect_ratio_policy, which opset 18 added, compute the same in every form."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.harness import ONNX_NEWEST, ORT_NEWEST, run
from tests.resize.shaped import apply_resize_passes

POLICIES = ("stretch", "not_larger", "not_smaller")
SHAPE = (2, 3, 11, 14)
LAST = -1 if ORT_NEWEST >= 26 else 3
"""The last axis; for negative ones, the results of ONNX Runtime 1.21 vary."""


def node(mode: str, axes: tuple[int, ...], **given: object) -> onnx.ModelProto:
    """Return a Resize-18 of the axes named, or of all with none, by `scales` or `sizes`."""
    words = {key: value for key, value in given.items() if key not in ("scales", "sizes")}
    weights = {
        key: np.array(given[key], kind)
        for key, kind in (("scales", np.float32), ("sizes", np.int64))
        if key in given
    }
    inputs = ["x", "", "scales"] if "scales" in weights else ["x", "", "", "sizes"]
    if axes:
        words["axes"] = list(axes)
    graph = helper.make_graph(
        [helper.make_node("Resize", inputs, ["y"], name="r", mode=mode, **words)],
        "g",
        [helper.make_tensor_value_info("x", 1, SHAPE)],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


MODELS = {
    **{
        f"{mode} antialias {scales}": node(mode, (2, 3), antialias=1, scales=scales)
        for mode, scales in product(("linear", "cubic"), ((0.5, 0.6), (0.37, 2.0), (1.3, 0.9)))
    },
    **{
        f"{mode} {policy} {axes} {sizes}": node(mode, axes, keep_aspect_ratio_policy=policy, sizes=sizes)
        for mode, policy, (axes, sizes) in product(
            ("nearest", "linear"), POLICIES, (((2, 3), (5, 9)), ((3, 2), (20, 30)), ((LAST,), (9,)))
        )
    },
    "all axes by policy": node("nearest", (), keep_aspect_ratio_policy="not_larger", sizes=(2, 3, 22, 35)),
    "axes out of order": node("linear", (3, 2), scales=(2.0, 0.5)),
    "cubic, exclude_outside": node("cubic", (2, 3), scales=(0.6, 1.7), exclude_outside=1, cubic_coeff_a=-0.5),
}


@pytest.mark.skipif(ONNX_NEWEST < 19, reason="needs targets above 18")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("form", ["auto", "scales", "sizes"])
def test_the_numbers_stay_the_same(name: str, form: str) -> None:
    x = {"x": np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)}
    expected = run(MODELS[name], x)[0]
    for to in (18, 19, 21, 26):
        if to <= min(ORT_NEWEST, ONNX_NEWEST):
            result, _ = apply_resize_passes(MODELS[name], to, form=form)
            np.testing.assert_array_equal(run(result, x)[0], expected, err_msg=f"to {to}")
