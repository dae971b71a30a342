"""The normalisations written out in arithmetic."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import model, random_feeds, run
from tests.lowering import check_down, lower


def text(
    operator: str, opset: int, shape: list[int], attributes: str = "", dtype: str = "float", bias: str = ", b"
) -> str:
    size = shape[-1] if operator != "GroupNormalization" else shape[1]
    inputs = f"{dtype}{shape} x, {dtype}[{size}] s" + (f", {dtype}[{size}] b" if bias else "")
    return f"""<ir_version: 10, opset_import: ["": {opset}]>
        graph ({inputs}) => ({dtype}{shape} y) {{ y = {operator} {attributes} (x, s{bias}) }}"""


@pytest.mark.parametrize("bias", ["", ", b"])
@pytest.mark.parametrize("attributes", ["", "<axis = -1, epsilon = 0.1>", "<axis = 2>"])
def test_layer_normalization(attributes: str, bias: str) -> None:
    refused = {"unranked": "needs-rank"} if "2" in attributes else None
    check_down(
        text("LayerNormalization", 17, [2, 3, 4], attributes, bias=bias),
        16, 13, 11, 9, 7, refused=refused, rtol=2e-6, atol=2e-6, specials=False,
    )  # fmt: skip


@pytest.mark.parametrize(("dtype", "tolerance"), [("double", 1e-12), ("float16", 2e-3)])
def test_layer_normalization_types(dtype: str, tolerance: float) -> None:
    check_down(
        text("LayerNormalization", 17, [2, 3, 4], dtype=dtype),
        16,
        11,
        rtol=tolerance,
        atol=tolerance,
        specials=False,
    )


def layer_normalization_over_two_axes(axis: int, outputs: str = "y, mean, inverse") -> str:
    return f"""<ir_version: 8, opset_import: ["": 17]> graph (float[2,3,4] x, float[3,4] s, float[3,4] b)
        => (float[2,3,4] y, float[2,1,1] mean, float[2,1,1] inverse)
        {{ {outputs} = LayerNormalization<axis = {axis}> (x, s, b) }}"""


@pytest.mark.parametrize("axis", [1, -2])
def test_layer_normalization_gives_mean_and_inverse(axis: int) -> None:
    refused = {"unranked": "needs-rank"} if axis > 0 else None
    check_down(
        layer_normalization_over_two_axes(axis), 16, 9, refused=refused, rtol=2e-6, atol=2e-6, specials=False
    )


def test_layer_normalization_of_doubles_gives_float_statistics() -> None:
    source = layer_normalization_over_two_axes(-2).replace("float[2,3,4] x", "double[2,3,4] x")
    source = source.replace("float[3,4]", "double[3,4]").replace("float[2,3,4] y", "double[2,3,4] y")
    check_down(source, 16, rtol=1e-6, atol=1e-6, specials=False)


def test_layer_normalization_does_not_cancel() -> None:
    source = model(text("LayerNormalization", 17, [4, 64]))
    feeds = {**random_feeds(source), "s": np.ones(64, np.float32), "b": np.zeros(64, np.float32)}
    feeds["x"] = (feeds["x"] / 3 + 10_000).astype(np.float32)
    wide = feeds["x"].astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    (found,) = run(lower(source, 16)[0], feeds)
    np.testing.assert_allclose(found, exact, atol=5e-3)


def test_layer_normalization_without_elements() -> None:
    check_down(text("LayerNormalization", 17, [0, 4]), 16, 11, variants=("plain",))


@pytest.mark.parametrize("attributes", ["", "<axis = -2, epsilon = 0.1>", "<axis = 1>"])
def test_rms_normalization(attributes: str) -> None:
    source = text("RMSNormalization", 23, [2, 3, 4], attributes, bias="")
    if "axis" in attributes:
        source = source.replace("float[4] s", "float[3,4] s")
    refused = {"unranked": "needs-rank"} if "= 1" in attributes else None
    check_down(source, 22, 17, 11, 7, refused=refused, rtol=2e-6, atol=2e-6, specials=False)


@pytest.mark.parametrize(("dtype", "tolerance"), [("double", 1e-12), ("float16", 2e-3)])
def test_rms_normalization_types(dtype: str, tolerance: float) -> None:
    check_down(
        text("RMSNormalization", 23, [2, 3, 4], dtype=dtype, bias=""), 22, 13,
        rtol=tolerance, atol=tolerance, specials=False,
    )  # fmt: skip


@pytest.mark.parametrize("shape", [[2, 6, 3, 2], [2, 6], [1, 6, 5]], ids=str)
@pytest.mark.parametrize(
    "attributes", ["<num_groups = 2>", "<num_groups = 3, epsilon = 0.1>", "<num_groups = 6>"]
)
def test_group_normalization(shape: list[int], attributes: str) -> None:
    check_down(text("GroupNormalization", 21, shape, attributes), 20, 17, 11, specials=False)


@pytest.mark.parametrize(
    ("dtype", "stash"), [("double", 1), ("double", 11), ("float16", 1), ("float16", 10), ("float", 11)]
)
def test_group_normalization_types(dtype: str, stash: int) -> None:
    check_down(
        text("GroupNormalization", 21, [2, 6, 3], f"<num_groups = 2, stash_type = {stash}>", dtype),
        20,
        13,
        specials=False,
    )


def test_group_normalization_18_scales_groups() -> None:
    source = text("GroupNormalization", 18, [2, 6, 3], "<num_groups = 2>").replace("float[6]", "float[2]")
    check_down(source, 17, 13, 9, specials=False)


def test_simplified_layer_normalization_stays() -> None:
    source = text("SimplifiedLayerNormalization", 23, [2, 3, 4], bias="")
    lowered = check_down(source, 22, 13, variants=("plain",))
    assert [node.op_type for node in lowered.graph.node] == ["SimplifiedLayerNormalization"]


@pytest.mark.parametrize("axes", ["", "<axes = [1, 2]>", "<axes = [0, 1, 2, 3]>"])
def test_mean_variance_normalization(axes: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 9]> graph (float[2,3,4,2] x) => (float[2,3,4,2] y)
        {{ y = MeanVarianceNormalization {axes} (x) }}"""
    check_down(source, 8, 7, rtol=2e-6, atol=2e-6, specials=False)


def test_bfloat16_ends_at_opset_13() -> None:
    source = text("LayerNormalization", 17, [2, 4], dtype="bfloat16")
    with pytest.raises(CannotMigrate) as caught:
        lower(source, 12)
    assert caught.value.code == "no-such-type"


@pytest.mark.parametrize("target", [16, 12, 9])
@pytest.mark.parametrize(
    ("operator", "opset", "bias", "one_node"),
    [("LayerNormalization", 17, ", b", "LayerNormalization"), ("RMSNormalization", 23, "", "SimplifiedLayerNormalization")],
)  # fmt: skip
def test_onnx_runtime_makes_one_node_of_the_parts_again(
    operator: str, opset: int, bias: str, one_node: str, target: int, tmp_path: Path
) -> None:
    source = model(text(operator, opset, [2, 3, 4], bias=bias))
    weights = random_feeds(source)
    for value in list(source.graph.input)[1:]:  # ONNX Runtime does so only for weights that are constants
        source.graph.initializer.append(onnx.numpy_helper.from_array(weights[value.name], value.name))
        source.graph.input.remove(value)
    lowered, _ = lower(source, target)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    ort.InferenceSession(lowered.SerializeToString(), options, providers=["CPUExecutionProvider"])
    optimised = onnx.load(options.optimized_model_filepath)
    assert Counter(node.op_type for node in optimised.graph.node) == {one_node: 1}


@pytest.mark.parametrize("dtype", ["uint8", "int64", "double", "float16"])
def test_layer_normalization_behind_a_cast_loads_with_optimisation(dtype: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 17]> graph ({dtype}[2,3,4] x) => (float[2,3,4] y)
        <float[4] s = {{1, 2, 3, 4}}> {{ a = Cast<to = 1> (x) c = Identity (a) y = LayerNormalization (c, s, s) }}"""
    lowered, _ = lower(source, 13)
    feeds = random_feeds(model(source))
    session = ort.InferenceSession(lowered.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(
        session.run(None, feeds)[0], run(model(source), feeds)[0], rtol=1e-5, atol=1e-5
    )
