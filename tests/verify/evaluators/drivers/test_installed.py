"""Runtimes that are installed beside this package: numbers beside ONNX Runtime's, types, and what they say of other models."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
import onnx
import pytest

from onnx_migrate import migrate
from onnx_migrate.verify.evaluators import EvaluationError
from tests.harness import model
from tests.verify.evaluators.drivers.runs import fixture, need, off, opened

RELU = "(float[1,2] x) => (float[1,2] y) { y = Relu(x) }"
FIXTURES = {
    "mnn": (1e-5, "detector_opset9", "unet_opset9", "speech_opset13", "stateful_lstm_opset13"),
    "ncnn": (1e-4, "conv_relu_upsample_opset11", "speech_opset10", "unet_opset9"),
    "opencv": (1e-5, "unet_opset9", "conv_relu_upsample_opset11", "espcn_opset11"),
    "openvino": (1e-5, "detector_opset11", "unet_opset9", "transformer_opset12", "crnn_opset12"),
    "tract": (1e-5, "detector_opset11", "unet_opset9", "transformer_opset12", "classifier_opset11"),
}


@pytest.mark.parametrize(
    ("runtime", "name"), [(runtime, name) for runtime, (_, *names) in FIXTURES.items() for name in names]
)
def test_fixtures_compute_what_onnx_runtime_computes(runtime, name):
    assert off(runtime, *fixture(name)) < FIXTURES[runtime][0]


@pytest.mark.parametrize(("kernel", "length"), [(3, 56), (5, 16)])
def test_mnn_computes_convolutions_without_large_winograd_tiles(kernel, length):
    shape, half = f"float[1,64,{length},{length}]", kernel // 2
    options = f"kernel_shape=[{kernel},{kernel}], pads=[{half},{half},{half},{half}]"
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((64, 64, kernel, kernel)).astype(np.float32) / (8 * kernel)
    feeds = {"x": rng.standard_normal((1, 64, length, length)).astype(np.float32)}
    found = off("mnn", f"({shape} x) => ({shape} y) {{ y = Conv<{options}>(x, w) }}", feeds, w=weights)
    assert found < 1e-5  # with them it is off by 3e-4 and more


def driver(name):
    need(name)
    return import_module(f"onnx_migrate.verify.evaluators.drivers.{name}")


@pytest.mark.parametrize(
    ("runtime", "beginnings"),
    [
        ("mnn", ("MNN 3.",)),
        ("ncnn", ("ncnn 1.",)),
        ("opencv", ("OpenCV 4", "OpenCV 5")),
        ("openvino", ("OpenVINO 20",)),
        ("tract", ("tract 0.",)),
    ],
)
def test_its_version_is_a_number(runtime, beginnings):
    assert driver(runtime).version().startswith(beginnings)


@pytest.mark.parametrize("runtime", ["mnn", "opencv"])
def test_a_file_that_it_does_not_take_is_an_error_of_loading(runtime):
    with opened(runtime, RELU) as evaluator:
        evaluator._path.write_bytes(b"no model")
        with pytest.raises(EvaluationError) as caught:
            evaluator.run({"x": np.zeros((1, 2), np.float32)})
    assert caught.value.loading


@pytest.mark.parametrize(
    ("runtime", "name", "operator"),
    [("ncnn", "classifier_opset9", "TopK"), ("tract", "conv_relu_upsample_opset9", "Upsample"), ("openvino", "", "Det")],
)  # fmt: skip
def test_what_it_lacks_is_in_its_own_words(runtime, name, operator):
    det = "(float[2] x) => (float[2] y) { y = Det(x) }", {"x": np.zeros(2, np.float32)}
    model, feed = fixture(name) if name else det
    with opened(runtime, model) as evaluator, pytest.raises(EvaluationError, match=operator) as caught:
        evaluator.run(feed)
    assert caught.value.loading
    assert "backtrace" not in str(caught.value)


def test_mnn_is_handed_integers_of_64_bits_as_32():
    text = "(int64[2] k) => (int64[2] z) { z = Add(k, k) }"
    with opened("mnn", text) as evaluator:
        assert evaluator.run({"k": np.array([1, -7])})["z"].tolist() == [2, -14]
        with pytest.raises(EvaluationError, match="beyond 32 bits"):
            evaluator.run({"k": np.array([1, 2**40])})
    with opened("mnn", "(int64 k, int64[2] n) => (int64[2] z) { z = Add(k, n) }") as evaluator:
        found = evaluator.run({"k": np.array(5), "n": np.array([1, 2])})
    assert found["z"].tolist() == [6, 7]  # a scalar stays one, and fits


def test_nothing_is_reported_to_the_makers_of_mnn():
    driver("mnn")
    assert not [name for name in sys.modules if name.startswith(("MNN.tools", "aliyun"))]


def test_ncnn_takes_a_batch_of_several():
    feed = {"x": np.linspace(-1, 1, 4 * 2 * 5 * 5, dtype=np.float32).reshape(4, 2, 5, 5)}
    text = "(float[N,2,5,5] x) => (float[N,2,5,5] y) { y = Relu(x) }"
    assert off("ncnn", text, feed) == 0


def test_opencv_returns_outputs_in_the_order_of_the_model():
    text = "(float[1,2] x) => (float[1,2] z, float[1,2] a) { a = Relu(x) z = Neg(x) }"
    with opened("opencv", text) as evaluator:
        found = evaluator.run({"x": np.array([[1, -2]], np.float32)})
    assert {name: value.tolist() for name, value in found.items()} == {"z": [[-1, 2]], "a": [[1, 0]]}


def test_openvino_computes_in_float32():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((256, 256)).astype(np.float32)
    feed = {"x": rng.standard_normal((64, 256)).astype(np.float32)}
    assert off("openvino", "(float[64,256] x) => (float[64,256] y) { y = MatMul(x, w) }", feed, w=w) < 1e-5


def test_tract_keeps_types_and_scalars():
    text = "(int64[2] k, float x) => (int64[2] z, float y) { z = Add(k, k) y = Neg(x) }"
    feed = {"k": np.array([1, 2**40]), "x": np.array(1.5, np.float32)}
    with opened("tract", text) as evaluator:
        found = evaluator.run(feed)
    assert found["z"].dtype == np.int64
    assert found["z"].tolist() == [2, 2**41]
    assert found["y"].shape == ()


@pytest.mark.long
@pytest.mark.parametrize("dims", [("-1", "-1", "-1"), ("N", "H", "W"), ("?", "?", "?")], ids=str)
def test_a_result_with_open_dims_runs_in_tract_at_the_sizes_that_its_user_sets(dims, tmp_path):
    """The original does: what is inferred of inner values must not bind the sizes that the input is given."""
    proto = model(
        "13 (float[N,3,H,W] x) => (float[N,8] y) <float[8,3,3,3] w = {VALUES}>"
        " { c = Conv <pads = [1,1,1,1], strides = [2,2]> (x, w) r = Relu (c) g = GlobalAveragePool (r) y = Flatten (g) }".replace(
            "VALUES", ", ".join(["0.1"] * 216)
        )
    )
    for axis, dim in zip((0, 2, 3), dims, strict=True):
        given = proto.graph.input[0].type.tensor_type.shape.dim[axis]
        given.ClearField("value")
        if dim == "-1":
            given.dim_value = -1
        else:
            given.dim_param = dim
    driver("tract")
    onnx.save(proto, tmp_path / "original.onnx")
    migrate(proto, runtime="tract").save(tmp_path / "result.onnx")
    feed = {"x": np.ones((1, 3, 64, 64), np.float32)}

    found = [
        driver("tract").load(str(tmp_path / f"{name}.onnx"), feed, ["y"])(feed)
        for name in ("original", "result")
    ]

    assert found[0][0].shape == (1, 8)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)


def test_a_type_that_tract_does_not_take_is_an_error_of_loading():
    with pytest.raises(TypeError, match="input 'x' is of complex64"):
        driver("tract").load.__globals__["_type"]("x", np.zeros(1, np.complex64))
