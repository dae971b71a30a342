"""Resize of version 10 and 11, against ONNX Runtime's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model, run, same


def resize_10(scales: str, mode: str, shape: str = "1,2,5,7") -> str:
    return f"""<ir_version: 5, opset_import: ["":10]>
g (float[{shape}] x) => (float[a,b,c,d] y) <float[4] s = {{1., 1., {scales}}}> {{ y = Resize<mode="{mode}">(x, s) }}"""


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", ["2., 2.", "0.6, 0.4", "1.3, 1.7", "1., 0.5", "1.6, 1."])
@pytest.mark.parametrize("to", [11, 13, 18, 19])
def test_10(mode: str, scales: str, to: int) -> None:
    check(resize_10(scales, mode), to=to)


@pytest.mark.parametrize("scales", ["2.5, 0.6", "0.4, 1.7", "0.3, 3."])
@pytest.mark.parametrize("to", [11, 13])
def test_10_nearest_up_and_down(scales: str, to: int) -> None:
    result = check(resize_10(scales, "nearest"), to=to)

    assert [node.op_type for node in result.graph.node] == ["Resize", "Resize"]


def test_10_nearest_where_the_growing_half_would_be_a_copy() -> None:
    result = check(resize_10("0.6, 1.05", "nearest", "1,1,9,10"), to=11, variants=["plain", "if", "function"])

    assert {node.op_type for node in result.graph.node} == {"Gather"}


def test_10_nearest_that_barely_grows_needs_lengths() -> None:
    source = model(resize_10("0.6, 1.05", "nearest", "1,1,H,W"))

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 11)

    assert caught.value.code == "needs-shape"


@pytest.mark.parametrize("scales", [[1, 1, 2, 0.6], [1, 1, 0.5, 0.5], [1, 1, 3, 3]])
@pytest.mark.parametrize("to", [11, 13])
def test_10_with_scales_at_run_time(scales: list[float], to: int) -> None:
    feeds = {
        "x": np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32),
        "s": np.array(scales, np.float32),
    }
    for mode in ("nearest", "linear"):
        check(
            f"""<ir_version: 5, opset_import: ["":10]>
g (float[1,2,5,7] x, float[4] s) => (float[a,b,c,d] y) {{ y = Resize<mode="{mode}">(x, s) }}""",
            to=to,
            feeds=feeds,
        )


@given(
    lengths=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    scales=st.tuples(st.floats(0.3125, 3, width=32), st.floats(0.3125, 3, width=32)),
    mode=st.sampled_from(["nearest", "linear"]),
)
@settings(max_examples=60, deadline=None)
def test_10_at_random(lengths: tuple[int, int], scales: tuple[float, float], mode: str) -> None:
    if any(int(np.float32(scale) * np.float32(length)) < 1 for length, scale in zip(lengths, scales, strict=True)):
        return
    source = model(resize_10(f"{scales[0]!r}, {scales[1]!r}", mode, f"1,1,{lengths[0]},{lengths[1]}"))
    x = np.random.default_rng(0).standard_normal((1, 1, *lengths)).astype(np.float32)
    expected = run(source, {"x": x})

    for target in (11, 13):
        result, _ = lift(source, target)
        same(expected, run(result, {"x": x}), f"{lengths} × {scales} {mode} to {target}")


@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_11_drops_the_roi(coordinates: str, mode: str) -> None:
    result = check(
        f"""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[8] r = {{0.,0.,0.,0.,1.,1.,1.,1.}}, float[4] s = {{1.,1.,1.5,2.}}> {{
  y = Resize<mode="{mode}", coordinate_transformation_mode="{coordinates}">(x, r, s)
}}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "", "s"]
    assert [tensor.name for tensor in result.graph.initializer] == ["s"]


def test_11_keeps_the_roi_of_tf_crop_and_resize() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[8] r = {0.,0.,0.1,0.2,1.,1.,0.8,0.9}, float[4] s = {1.,1.,1.5,2.}> {
  y = Resize<mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=0.5>(x, r, s)
}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "r", "s"]


def test_11_with_sizes_and_one_empty_tensor_in_both_slots() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[0] t = {}, int64[4] n = {1, 2, 9, 11}> {
  y = Resize<mode="linear">(x, t, t, n)
}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "", "", "n"]
    assert [tensor.name for tensor in result.graph.initializer] == ["n"]


def test_11_with_scales_in_the_roi_slot() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[4] s = {1.,1.,2.,2.}> {
  y = Resize<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">(x, s, s)
}""",
        to=13,
    )

    assert list(result.graph.node[0].input) == ["x", "", "s"]


def test_11_with_a_computed_empty_roi() -> None:
    result = check(
        """<ir_version: 6, opset_import: ["":11]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <int64[1] zero = {0}, float[4] s = {1.,1.,2.,2.}> {
  r = ConstantOfShape(zero)
  y = Resize<mode="nearest">(x, r, s)
}""",
        to=13,
    )

    assert [node.op_type for node in result.graph.node] == ["Resize"]


@pytest.mark.parametrize(("nearest", "becomes"), [("floor", "round_prefer_ceil"), ("round_prefer_floor", "ceil")])
def test_11_tf_half_pixel_for_nn(nearest: str, becomes: str) -> None:
    result = check(
        f"""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,4,8] x) => (float[a,b,c,d] y) <float[0] r = {{}}, float[4] s = {{1.,1.,2.,0.5}}> {{
  y = Resize<mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="{nearest}">(x, r, s)
}}""",
        to=13,
    )

    attributes = {item.name: item.s.decode() for item in result.graph.node[0].attribute}
    assert attributes["coordinate_transformation_mode"] == "half_pixel"
    assert attributes["nearest_mode"] == becomes


@pytest.mark.parametrize("nearest", ["ceil", "round_prefer_ceil"])
def test_11_tf_half_pixel_for_nn_that_nothing_equals(nearest: str) -> None:
    source = model(f"""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,4,8] x) => (float[a,b,c,d] y) <float[0] r = {{}}, float[4] s = {{1.,1.,2.,0.5}}> {{
  y = Resize<mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="{nearest}">(x, r, s)
}}""")

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "no-equal"
    lift(source, 12)


def test_11_with_scales_and_sizes() -> None:
    source = model("""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,4,8] x) => (float[a,b,c,d] y) <float[0] r = {}, float[4] s = {1.,1.,2.,2.}, int64[4] n = {1, 2, 8, 16}> {
  y = Resize(x, r, s, n)
}""")

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "scales-and-sizes"
