"""What exporters intended is restored on request, and reported as an assumption."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, version_converter

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import model, run, same
from tests.resize.shaped import apply_resize_passes, feed, resizes, run_time
from tests.support.paths import FIXTURES


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("shape", ["1,2,5,7", "N,2,5,7", "N,2,H,W"])
@pytest.mark.parametrize("wanted", ["10., 21.", "3., 21.", "4., 3."])
def test_scales_computed_from_sizes_become_sizes(mode: str, shape: str, wanted: str) -> None:
    result, log = apply_resize_passes(run_time(mode, shape, wanted), 13, intent=True)

    x = feed(1, 2, 5, 7)
    new = run(result, x)[0]
    sizes = [int(float(number)) for number in wanted.split(",")]
    coordinates = "half_pixel" if mode == "linear" else "asymmetric"
    restored = f"""<ir_version: 7, opset_import: ["":13]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <int64[4] n = {{1, 2, {sizes[0]}, {sizes[1]}}}> {{
  y = Resize<mode="{mode}", coordinate_transformation_mode="{coordinates}", nearest_mode="floor">(x, , , n)
}}"""
    np.testing.assert_array_equal(new, run(model(restored), x)[0])
    assert Exactness.ASSUMED in [change.exactness for change in log.changes]
    assert "Gather" not in [node.op_type for node in result.graph.node]


def test_scales_from_the_shape_of_another_tensor_are_kept() -> None:
    source = run_time("linear", "N,2,H,W")
    source.graph.input.add().CopyFrom(helper.make_tensor_value_info("other", 1, ["N", 2, "P", "Q"]))
    next(node for node in source.graph.node if node.op_type == "Shape").input[0] = "other"

    result, _ = apply_resize_passes(source, 13, intent=True)

    assert "Div" in [node.op_type for node in result.graph.node]
    assert not resizes(result)[0].input[3:]


def test_constant_scales_that_run_to_one_element_less() -> None:
    length, out = next(
        (n, k)
        for n in range(3, 400)
        for k in range(2, 400)
        if int(np.float32(k / n) * np.float32(n)) == k - 1
    )
    source = model(f"""<ir_version: 4, opset_import: ["":10]>
g (float[1,1,2,{length}] x) => (float[a,b,c,d] y)
<float[4] s = {{1., 1., 1., {float(np.float32(out / length))!r}}}> {{ y = Resize<mode="linear">(x, s) }}""")
    source.producer_name = "pytorch"

    plain, _ = apply_resize_passes(source, 13)
    restored, _ = apply_resize_passes(source, 13, intent=True)

    assert run(plain, feed(1, 1, 2, length))[0].shape[-1] == out - 1
    assert run(restored, feed(1, 1, 2, length))[0].shape[-1] == out


def test_other_producers_are_not_changed() -> None:
    source = run_time("linear", "1,2,5,7")
    source.producer_name = "keras2onnx"

    plain, _ = apply_resize_passes(source, 13)
    restored, log = apply_resize_passes(source, 13, intent=True)

    assert plain == restored
    assert all(change.exactness is Exactness.EXACT for change in log.changes)


def old_resize(operator: str, mode: str, scales: str) -> onnx.ModelProto:
    return model(f"""<ir_version: 4, opset_import: ["":{9 if operator == "Upsample" else 10}]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <float[4] s = {{1., 1., {scales}}}> {{
  y = {operator}<mode="{mode}">(x, s)
}}""")


@pytest.mark.parametrize("at", [11, 13, 17])
@pytest.mark.parametrize(
    ("operator", "mode", "scales"),
    [("Upsample", "linear", "2., 1.7"), ("Resize", "linear", "2., 0.6"), ("Resize", "nearest", "0.6, 0.4")],
)
def test_a_node_of_the_version_converter_is_repaired(operator: str, mode: str, scales: str, at: int) -> None:
    original = old_resize(operator, mode, scales)
    converted = version_converter.convert_version(original, at)
    x = feed(1, 2, 5, 7)

    plain, plain_log = apply_resize_passes(converted, 18)
    repaired, log = apply_resize_passes(converted, 18, intent=True)

    assert [note.code for note in plain_log.notes if note.severity == "warning"] == ["converted-resize"]
    same(run(converted, x), run(plain, x), "as it is")
    same(run(original, x), run(repaired, x), "as it was")
    assert Exactness.ASSUMED in [change.exactness for change in log.changes]


def test_a_linear_node_of_pytorch_and_the_version_converter_is_kept() -> None:
    converted = version_converter.convert_version(old_resize("Upsample", "linear", "2., 2."), 13)
    converted.producer_name = "pytorch"

    result, log = apply_resize_passes(converted, 17, intent=True)

    assert not resizes(result)[0].attribute or "asymmetric" not in str(resizes(result)[0])
    assert [note.code for note in log.notes if note.severity == "warning"] == ["converted-resize"]


# Real exports


NAMES = sorted(
    path.stem
    for pattern in ("resize_*", "conv_relu_upsample_*", "detector*", "control_flow*")
    for path in FIXTURES.glob(f"{pattern}.onnx")
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("to", [13, 19])
def test_what_pytorch_exported(name: str, to: int) -> None:
    source = onnx.load(FIXTURES / f"{name}.onnx")
    recorded = np.load(FIXTURES / f"{name}.io.npz")
    feeds = {value.name: recorded[value.name] for value in source.graph.input}

    plain, _ = apply_resize_passes(source, to)
    restored, _ = apply_resize_passes(source, to, intent=True)

    same(run(source, feeds), run(plain, feeds), "as the file says")
    for value, actual in zip(restored.graph.output, run(restored, feeds), strict=True):
        np.testing.assert_allclose(actual, recorded[value.name], atol=2e-5, rtol=1e-4, err_msg=value.name)
