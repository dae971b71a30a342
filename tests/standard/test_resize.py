"""The lengths of a Resize are those of ONNX Runtime and of onnx's inference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.standard.resize import (
    exact_length,
    inferred_length,
    lengths_agree_always,
    lengths_differ,
    may_keep_all_lengths,
    picked,
    resized_axes,
    run_length,
    samples_alike,
    scale_of_size,
    sizes_are_lengths,
)
from tests.harness import model, run
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import ONNX

PAIRS = [(5, 9), (13, 25), (7, 31), (706, 224), (10, 13), (3, 1), (1, 3), (199, 195)]


def resized(length: int, given: str, attributes: str = "") -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["":18]>
g (float[1,{length}] x) => (float[a,b] z) <{given}> {{ y = Resize{attributes} z = Relu(y) }}""")


def ramp(length: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(length, dtype=np.float32).reshape(1, length)}


@pytest.mark.parametrize(("length", "out"), PAIRS)
def test_run_length_is_what_onnx_runtime_returns(length: int, out: int) -> None:
    scale = float(np.float32(out / length))
    source = resized(length, f"float[2] s = {{1., {scale!r}}}", "(x, , s)")

    assert run(source, ramp(length))[0].shape == (1, run_length(length, scale))


@skip_if(ONNX < (1, 22), "onnx inferred in float32 until 1.22", Elsewhere.NEWEST)
def test_inferred_length_is_what_onnx_infers() -> None:
    differing = 0
    for length in range(1, 40):
        for out in range(1, 40):
            scale = float(np.float32(out / length))
            source = resized(length, f"float[2] s = {{1., {scale!r}}}", "(x, , s)")
            inferred = onnx.shape_inference.infer_shapes(source).graph.value_info[0].type.tensor_type.shape
            assert inferred_length(length, scale) == inferred.dim[1].dim_value, (length, out)
            assert lengths_differ(length, scale) == (run_length(length, scale) != inferred.dim[1].dim_value)
            differing += lengths_differ(length, scale)
    assert differing > 300


def test_scales_of_four_significant_bits_agree_at_all_lengths() -> None:
    scales = [1, 2, 3, 4, 8, 15, 0.5, 0.25, 0.125, 1.5, 2.5, 0.75, 0.625, 1.75, 96]

    assert lengths_agree_always(np.array(scales, np.float32))
    for scale in scales:
        for length in (*range(1, 200), 4095, 65_537, 999_999):
            assert not lengths_differ(length, scale), (length, scale)


@pytest.mark.parametrize("scale", [1.8, 1.3, 25 / 13, 0.1, 17 / 16])
def test_a_scale_of_more_bits_is_not_said_to_agree(scale: float) -> None:
    assert not lengths_agree_always(np.array([1, scale], np.float32))


def test_exact_length() -> None:
    assert exact_length(4, 2.5) == 10
    assert exact_length(5, 1.5) is None
    assert exact_length(5, float(np.float32(1.8))) is None


@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize(("length", "scale"), [(5, 1.5), (4, 2), (13, 25 / 13), (10, 1.05), (7, 0.6)])
def test_samples_alike_compares_scales_with_sizes_as_they_run(
    length: int, scale: float, coordinates: str
) -> None:
    scale = float(np.float32(scale))
    attributes = f'<mode = "linear", coordinate_transformation_mode = "{coordinates}">'
    by_scale = resized(length, f"float[2] s = {{1., {scale!r}}}", f"{attributes}(x, , s)")
    size = run_length(length, scale)
    by_size = resized(length, f"int64[2] n = {{1, {size}}}", f"{attributes}(x, , , n)")
    outputs = run(by_scale, ramp(length))[0], run(by_size, ramp(length))[0]

    assert outputs[0].shape == outputs[1].shape
    if samples_alike(length, scale, coordinates):
        np.testing.assert_array_equal(*outputs)
    elif size != length:
        assert not np.array_equal(*outputs)


def test_the_scale_of_a_size_is_single_precision_and_1_for_an_empty_axis() -> None:
    assert float(scale_of_size(13, 25)) == float(np.float32(25) / np.float32(13)) != 25 / 13
    assert scale_of_size(0, 0) == 1


def test_which_scales_may_keep_all_lengths() -> None:
    """Checked on lengths from 1 to 100; a length of 1 has the index 0 alone, whatever the scale."""
    for scales in ((1, 1.05), (1.05, 1.5), (1.49, 1), (1.5, 1), (2, 1.01), (1, 1)):
        kept = any(
            all(run_length(length, scale) == length for length, scale in zip(lengths, scales, strict=True))
            and any(length > 1 and scale != 1 for length, scale in zip(lengths, scales, strict=True))
            for lengths in ((a, b) for a in range(1, 101) for b in range(1, 101))
        )
        assert may_keep_all_lengths(np.array(scales, np.float32)) == kept, scales


def test_sizes_are_lengths_under_stretch_alone() -> None:
    for policy, shape in (("stretch", (2, 6)), ("not_larger", (2, 4)), ("not_smaller", (3, 6))):
        source = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["":18]>
g (float[2,4] x) => (float[a,b] y) <int64[2] n = {{2, 6}}> {{
  y = Resize<keep_aspect_ratio_policy = "{policy}">(x, , , n)
}}""")
        assert run(source, {"x": np.zeros((2, 4), np.float32)})[0].shape == shape
        assert sizes_are_lengths(policy) == (shape == (2, 6))


def test_resized_axes() -> None:
    assert resized_axes([-1, 1], 4) == [3, 1]
    assert resized_axes([], 3) == [0, 1, 2]


@pytest.mark.parametrize("coordinates", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
@pytest.mark.parametrize(("length", "scale"), [(13, 0.5), (7, 2.0), (5, 0.3), (6, 1.7), (4, 0.25)])
def test_picked_is_what_onnx_runtime_picks(
    coordinates: str, rounding: str, length: int, scale: float
) -> None:
    proto = model(f"""13 (float[{length}] x) => (float[n] y) <float[1] s = {{{scale}}}> {{
        y = Resize<mode = "nearest", coordinate_transformation_mode = "{coordinates}", nearest_mode = "{rounding}">(x, , s) }}""")
    (found,) = run(proto, {"x": np.arange(length, dtype=np.float32)})

    size = run_length(length, scale)
    assert found.tolist() == picked(length, size, scale, coordinates, rounding).tolist()
