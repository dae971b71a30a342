"""Resize by every attribute, compared with ONNX Runtime."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import ORT_NEWEST, run
from tests.resize.grid import Point, grid, node_model, point_model
from tests.resize.oracle import Spec, output_lengths, resize
from tests.steps import lift

TARGETS = tuple(target for target in (11, 13, 18, 19, 21, 26) if target <= ORT_NEWEST)


def optimised(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def check_lift(point: Point, targets: tuple[int, ...] = TARGETS, shape: list[str] | None = None) -> None:
    """Lift a point to each target, and run it with optimisation off and on."""
    x = point.feed()
    source = point_model(point, shape)
    expected = resize(x, point.spec, scales=point.scales, sizes=point.sizes)
    if point.spec.version >= 9 or point.spec.version == 7:
        scales = point.scales or ()
        if point.spec.version >= 10 or min(scales) >= 1:
            np.testing.assert_array_equal(run(source, {"x": x})[0], expected, err_msg=str(point))
    for target in targets:
        if target < point.spec.version:
            continue
        result, _ = lift(source, target)
        for actual in (run(result, {"x": x})[0], optimised(result, x)):
            assert actual.dtype == expected.dtype
            np.testing.assert_array_equal(actual, expected, err_msg=f"{point} to {target}")


def legacy(count: int, seed: int) -> Iterator[Point]:
    """Points of the forms before 13, Upsample below 1 and the tf_half_pixel_for_nn family among them."""
    rng = random.Random(seed)
    for point in grid(count * 3, seed):
        if point.spec.version > 11:
            continue
        scales = point.scales
        if point.spec.version in (7, 9) and scales and point.spec.mode == "nearest" and rng.random() < 0.4:
            scales = tuple(rng.choice((scale, 0.5, 0.7)) for scale in scales)
            if 0 in output_lengths(point.shape, scales):
                scales = point.scales
        yield replace(point, scales=scales)
        count -= 1
        if not count:
            return


@pytest.mark.parametrize("seed", range(4))
def test_sample(seed: int) -> None:
    for point in legacy(30, seed):
        if point.spec.coordinates == "tf_half_pixel_for_nn" and point.spec.mode != "nearest":
            continue
        check_lift(point, (11, 13, TARGETS[-1]))


@pytest.mark.campaign
def test_whole_grid() -> None:
    for point in legacy(2500, 77):
        if point.spec.coordinates == "tf_half_pixel_for_nn" and point.spec.mode != "nearest":
            continue
        check_lift(point)


@st.composite
def mixed(draw: st.DrawFn) -> Point:
    """Nearest and linear of versions 7 to 11, each axis growing or shrinking on its own."""
    version = draw(st.sampled_from([9, 10, 10, 10, 11]))
    mode = draw(st.sampled_from(["nearest", "nearest", "linear"]))
    lengths = draw(st.tuples(st.integers(1, 14), st.integers(1, 14)))
    low = 1.0 if mode == "linear" and version == 9 else 0.25
    factor = st.one_of(st.floats(low, 3, width=32), st.sampled_from([1.0, 2.0, 1.0625]))
    scales = tuple(float(np.float32(scale)) for scale in draw(st.tuples(factor, factor)))
    out = output_lengths(lengths, scales)
    assume(0 not in out)
    coordinates = "asymmetric"
    if version == 11:
        choices = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
        coordinates = draw(
            st.sampled_from([*choices, "tf_half_pixel_for_nn"] if mode == "nearest" else choices)
        )
    nearest = draw(st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    spec = Spec(version, mode, coordinates, nearest)
    return Point(spec, (1, 2, *lengths), "float32", scales=(1.0, 1.0, *scales))


@pytest.mark.long
@settings(max_examples=60, deadline=None, derandomize=True)
@given(mixed())
def test_random_shapes_and_scales(point: Point) -> None:
    check_lift(point)


@pytest.mark.campaign
@settings(max_examples=4000, deadline=None, derandomize=True)
@given(mixed())
def test_many_random_shapes_and_scales(point: Point) -> None:
    check_lift(point, (11, 13, 19))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(mixed())
def test_lengths_that_are_not_known(point: Point) -> None:
    """As above, with symbolic dims: exact, or refused where the form must be of known lengths."""
    try:
        lift(point_model(point, ["N", "C", "H", "W"]), 13)
    except CannotMigrate as error:
        assert (error.code, point.spec.coordinates) == ("needs-shape", "tf_half_pixel_for_nn")  # noqa: PT017
        return
    if point.spec.coordinates == "tf_half_pixel_for_nn" and point.spec.nearest in (
        "floor",
        "round_prefer_floor",
    ):
        return  # may be the nearly equal form; tests/resize/test_up.py
    check_lift(point, (13, 19), ["N", "C", "H", "W"])


@settings(max_examples=40, deadline=None, derandomize=True)
@given(mixed())
def test_scales_at_run_time(point: Point) -> None:
    assume(point.spec.coordinates != "tf_half_pixel_for_nn")
    source = point_model(point, ["N", "C", "H", "W"])
    scales = next(tensor for tensor in source.graph.initializer if tensor.name == "scales")
    source.graph.initializer.remove(scales)
    source.graph.input.add().CopyFrom(helper.make_tensor_value_info("scales", onnx.TensorProto.FLOAT, [4]))
    feeds = {"x": point.feed(), "scales": np.array(point.scales, np.float32)}
    expected = resize(feeds["x"], point.spec, scales=point.scales)

    for target in TARGETS:
        if target > point.spec.version:
            result, _ = lift(source, target)
            np.testing.assert_array_equal(run(result, feeds)[0], expected, err_msg=f"{point} to {target}")


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize(("height", "width"), [(2.0, 2.0), (1.0, 3.0), (1.3, 1.7), (0.5, 2.0), (0.6, 0.7)])
def test_upsample_1(mode: str, height: float, width: float) -> None:
    node = helper.make_node("Upsample", ["x"], ["y"], mode=mode, height_scale=height, width_scale=width)
    source = node_model(1, node, (1, 2, 5, 7), onnx.TensorProto.FLOAT, {}, 4)
    source.ir_version = 3
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 7)).astype(np.float32)
    expected = resize(x, Spec(1, "linear" if mode == "bilinear" else mode), scales=(1, 1, height, width))

    for target in TARGETS:
        result, _ = lift(source, target)
        np.testing.assert_array_equal(run(result, {"x": x})[0], expected)
        np.testing.assert_array_equal(optimised(result, x), expected)


def check_forms(count: int, seed: int) -> int:
    rng = random.Random(seed)
    changed = 0
    for point in grid(count, seed):
        if point.spec.version < 11:
            continue
        shape = [size if rng.random() < 0.7 else f"d{axis}" for axis, size in enumerate(point.shape)]
        source = point_model(point, shape)
        x = point.feed()
        expected = run(source, {"x": x})[0]
        for form in ("auto", "sizes", "scales"):
            copy = onnx.ModelProto.FromString(source.SerializeToString())
            log = ChangeLog()
            make_pass("resize_form", form=form).run(Model(copy), log)
            changed += len(log.changes)
            if copy != source:
                np.testing.assert_array_equal(
                    run(copy, {"x": x})[0], expected, err_msg=f"{point} {shape} {form}"
                )
    return changed


def test_sample_form() -> None:
    assert check_forms(300, 5) > 30


@pytest.mark.campaign
def test_many() -> None:
    assert check_forms(8000, 6) > 500
