"""Inputs and attributes that no runtime accepts are refused, each with its own code."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import model
from tests.resize.shaped import apply_resize_passes
from tests.steps import lift

CROP = 'Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize">'
SIZES = "int64[4] n = {1, 2, 9, 11}"
SCALES = "float[4] s = {1., 1., 1.5, 2.}"
FOUR, THREE, FIVE = (
    "float[4] s = {{1., 1., {}, 2.}}",
    "float[3] s = {1., 2., 2.}",
    "float[5] s = {1., 1., 1., 2., 2.}",
)
UPSAMPLED = ("1., 1., 0., 2.", "1., 1., -2., 2.", "1., 2., 2.", "1., 1., 1., 2., 2.")

REFUSED = [
    # by the adapters
    *((7, "", f"Upsample<scales=[{scales}]>(x)", "bad-scales") for scales in UPSAMPLED),
    *((9, f"float[{scales.count(',') + 1}] s = {{{scales}}}", "Upsample(x, s)", "bad-scales") for scales in UPSAMPLED),
    (9, FOUR.format("2."), 'Upsample<mode="bicubic">(x, s)', "no-such-mode"),
    (10, FOUR.format("0."), "Resize(x, s)", "bad-scales"),
    (10, THREE, "Resize(x, s)", "bad-scales"),
    (11, FOUR.format("0."), "Resize(x, e, s)", "bad-scales"),
    (11, FOUR.format("-1."), "Resize(x, e, s)", "bad-scales"),
    (11, THREE, "Resize(x, e, s)", "bad-scales"),
    (11, FIVE, "Resize(x, e, s)", "bad-scales"),
    (11, "double[4] s = {1., 1., 2., 2.}", "Resize(x, e, s)", "bad-scales"),
    (11, "int64[4] n = {1, 2, -9, 11}", "Resize(x, e, e, n)", "bad-sizes"),
    (11, "int64[3] n = {2, 9, 11}", "Resize(x, e, e, n)", "bad-sizes"),
    (11, "int32[4] n = {1, 2, 9, 11}", "Resize(x, e, e, n)", "bad-sizes"),
    (11, f"{SCALES}, {SIZES}", "Resize(x, e, s, n)", "scales-and-sizes"),
    (11, "int64[0] n = {}", "Resize(x, e, e, n)", "no-scales"),
    (11, "int64[0] n = {}", "Resize(x, e, e)", "no-scales"),
    (11, f"float[4] r = {{0.,0.,1.,1.}}, {SCALES}", f"{CROP}(x, r, s)", "bad-roi"),
    *(
        (11, SCALES, f"Resize<{attribute}>(x, e, s)", "no-such-mode")
        for attribute in ('mode="bilinear"', 'coordinate_transformation_mode="half"', 'nearest_mode="round"')
    ),
    # by resize_form, at opsets from which no adapter starts
    *(
        (opset, *row)
        for opset in (13, 18)
        for row in (
            (FOUR.format("0."), "Resize(x, , s)", "bad-scales"),
            (FOUR.format("-1."), "Resize(x, , s)", "bad-scales"),
            (THREE, "Resize(x, , s)", "bad-scales"),
            ("int64[4] n = {1, 2, -9, 11}", "Resize(x, , , n)", "bad-sizes"),
            ("int64[2] n = {9, 11}", "Resize(x, , , n)", "bad-sizes"),
            (f"{SCALES}, {SIZES}", "Resize(x, , s, n)", "scales-and-sizes"),
            ("float[0] s = {}", "Resize(x, , s)", "no-scales"),
        )
    ),
]  # fmt: skip


def graph(opset: int, weights: str, call: str) -> onnx.ModelProto:
    empty = "float[0] e = {}" if opset == 11 else ""
    constants = ", ".join(filter(None, (empty, weights)))
    return model(f"""<ir_version: {3 if opset == 7 else 7}, opset_import: ["":{opset}]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) {f"<{constants}>" if constants else ""} {{ y = {call} }}""")


def code_of(source: onnx.ModelProto) -> str:
    refuse = apply_resize_passes if source.opset_import[0].version >= 13 else lambda item: lift(item, 13)
    with pytest.raises(CannotMigrate) as caught:
        refuse(source)
    return caught.value.code


@pytest.mark.parametrize(("opset", "weights", "call", "code"), REFUSED)
def test_what_is_refused(opset: int, weights: str, call: str, code: str) -> None:
    assert code_of(graph(opset, weights, call)) == code


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scales_that_are_not_finite(value: float) -> None:
    source = graph(11, SCALES, "Resize(x, e, s)")
    scales = np.array([1, 1, value, 2], np.float32)
    next(t for t in source.graph.initializer if t.name == "s").CopyFrom(
        onnx.numpy_helper.from_array(scales, "s")
    )

    assert code_of(source) == "bad-scales"


@pytest.mark.parametrize(
    ("height", "rank"), [(0.0, 4), (-2.0, 4), (float("nan"), 4), (float("inf"), 4), (2.0, 3)]
)
def test_scales_of_upsample_1(height: float, rank: int) -> None:
    node = onnx.helper.make_node("Upsample", ["x"], ["y"], height_scale=height, width_scale=2.0)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 2, 5, 7][:rank])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    source = onnx.helper.make_model(
        onnx.helper.make_graph([node], "g", [x], [y]),
        opset_imports=[onnx.helper.make_opsetid("", 1)],
        ir_version=3,
    )

    assert code_of(source) == "bad-scales"
