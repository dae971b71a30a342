"""What exporters meant is written on request, and called an assumption."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, version_converter

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import model, run, same
from tests.resize.shaped import feed, resizes, run_time, shape_form
from tests.support.paths import FIXTURES


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("shape", ["1,2,5,7", "N,2,5,7", "N,2,H,W"])
@pytest.mark.parametrize("wanted", ["10., 21.", "3., 21.", "4., 3."])
def test_a_size_that_became_scales_is_a_size_again(mode: str, shape: str, wanted: str) -> None:
    result, log = shape_form(run_time(mode, shape, wanted), 13, intent=True)

    x = feed(1, 2, 5, 7)
    new = run(result, x)[0]
    sizes = [int(float(number)) for number in wanted.split(",")]
    coordinates = "half_pixel" if mode == "linear" else "asymmetric"
    meant = f"""<ir_version: 7, opset_import: ["":13]>
g (float[1,2,5,7] x) => (float[a,b,c,d] y) <int64[4] n = {{1, 2, {sizes[0]}, {sizes[1]}}}> {{
  y = Resize<mode="{mode}", coordinate_transformation_mode="{coordinates}", nearest_mode="floor">(x, , , n)
}}"""
    np.testing.assert_array_equal(new, run(model(meant), x)[0])
    assert Exactness.ASSUMED in [change.exactness for change in log.changes]
    assert "Gather" not in [node.op_type for node in result.graph.node]


def test_scales_from_the_shape_of_another_tensor_are_left() -> None:
    source = run_time("linear", "N,2,H,W")
    source.graph.input.add().CopyFrom(helper.make_tensor_value_info("other", 1, ["N", 2, "P", "Q"]))
    next(node for node in source.graph.node if node.op_type == "Shape").input[0] = "other"

    result, _ = shape_form(source, 13, intent=True)

    assert "Div" in [node.op_type for node in result.graph.node]
    assert not resizes(result)[0].input[3:]


def test_constant_scales_that_run_short() -> None:
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

    plain, _ = shape_form(source, 13)
    meant, _ = shape_form(source, 13, intent=True)

    assert run(plain, feed(1, 1, 2, length))[0].shape[-1] == out - 1
    assert run(meant, feed(1, 1, 2, length))[0].shape[-1] == out


def test_only_pytorch_is_known_to_mean_something_else() -> None:
    source = run_time("linear", "1,2,5,7")
    source.producer_name = "keras2onnx"

    plain, _ = shape_form(source, 13)
    meant, log = shape_form(source, 13, intent=True)

    assert plain == meant
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
def test_what_the_usual_converter_damaged(operator: str, mode: str, scales: str, at: int) -> None:
    original = old_resize(operator, mode, scales)
    converted = version_converter.convert_version(original, at)
    x = feed(1, 2, 5, 7)

    plain, told = shape_form(converted, 18)
    mended, log = shape_form(converted, 18, intent=True)

    assert [note.code for note in told.notes if note.severity == "warning"] == ["converted-resize"]
    same(run(converted, x), run(plain, x), "as it is")
    same(run(original, x), run(mended, x), "as it was")
    assert Exactness.ASSUMED in [change.exactness for change in log.changes]


def test_what_the_converter_made_of_pytorchs_is_what_pytorch_computes() -> None:
    converted = version_converter.convert_version(old_resize("Upsample", "linear", "2., 2."), 13)
    converted.producer_name = "pytorch"

    result, log = shape_form(converted, 17, intent=True)

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

    plain, _ = shape_form(source, to)
    meant, _ = shape_form(source, to, intent=True)

    same(run(source, feeds), run(plain, feeds), "as the file says")
    for value, actual in zip(meant.graph.output, run(meant, feeds), strict=True):
        np.testing.assert_allclose(actual, recorded[value.name], atol=2e-5, rtol=1e-4, err_msg=value.name)
