"""Inputs and attributes that no runtime accepts are refused, each with its own code."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import lift, model

CROP = 'mode="linear", coordinate_transformation_mode="tf_crop_and_resize"'
SIZES = "int64[4] n = {1, 2, 9, 11}"
SCALES = "float[4] s = {1., 1., 1.5, 2.}"


def resize_11(weights: str, given: str, attributes: str = 'mode="nearest"') -> str:
    return f"""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <{weights}> {{ y = Resize<{attributes}>(x, {given}) }}"""


BAD = [
    ("float[4] s = {1., 1., 0., 2.}", "e, s", "bad-scales"),
    ("float[4] s = {1., 1., -1., 2.}", "e, s", "bad-scales"),
    ("float[3] s = {1., 2., 2.}", "e, s", "bad-scales"),
    ("float[5] s = {1., 1., 1., 2., 2.}", "e, s", "bad-scales"),
    ("double[4] s = {1., 1., 2., 2.}", "e, s", "bad-scales"),
    ("int64[4] n = {1, 2, -9, 11}", "e, e, n", "bad-sizes"),
    ("int64[3] n = {2, 9, 11}", "e, e, n", "bad-sizes"),
    ("int32[4] n = {1, 2, 9, 11}", "e, e, n", "bad-sizes"),
    (f"{SCALES}, {SIZES}", "e, s, n", "scales-and-sizes"),
    ("int64[0] n = {}", "e, e, n", "no-scales"),
    ("int64[0] n = {}", "e, e", "no-scales"),
]


@pytest.mark.parametrize(("weights", "given", "code"), BAD)
def test_11_bad_input(weights: str, given: str, code: str) -> None:
    source = model(resize_11(f"float[0] e = {{}}, {weights}", given))

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == code


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_11_scales_that_are_not_finite(value: float) -> None:
    source = model(resize_11(f"float[0] e = {{}}, {SCALES}", "e, s"))
    scales = np.array([1, 1, value, 2], np.float32)
    next(t for t in source.graph.initializer if t.name == "s").CopyFrom(
        onnx.numpy_helper.from_array(scales, "s")
    )

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "bad-scales"


def test_11_a_roi_of_the_wrong_length() -> None:
    source = model(resize_11(f"float[4] r = {{0.,0.,1.,1.}}, {SCALES}", "r, s", CROP))

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "bad-roi"


@pytest.mark.parametrize(
    "attributes", ['mode="bilinear"', 'coordinate_transformation_mode="half"', 'nearest_mode="round"']
)
def test_11_a_mode_that_does_not_exist(attributes: str) -> None:
    with pytest.raises(CannotMigrate) as caught:
        lift(model(resize_11(f"float[0] e = {{}}, {SCALES}", "e, s", attributes)), 13)

    assert caught.value.code == "no-such-mode"


@pytest.mark.parametrize("scales", ["1., 1., 0., 2.", "1., 2., 2."])
def test_10_bad_scales(scales: str) -> None:
    count = scales.count(",") + 1
    source = model(f"""<ir_version: 5, opset_import: ["":10]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[{count}] s = {{{scales}}}> {{ y = Resize(x, s) }}""")

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 11)

    assert caught.value.code == "bad-scales"
