"""Operators that were removed or that end: compared with ONNX Runtime, else NumPy; refusals by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.unlisted_operators import EXPERIMENTAL_OPERATORS
from tests.harness import make_variant, model, random_feeds, run, same
from tests.steps import check, check_down, lift, lower, refuses

X = np.array([[1, -0.0, np.nan], [np.inf, 5, 6]], np.float32)


@pytest.mark.parametrize(
    ("opset", "text"),
    [
        (20, "graph (string[2] x) => (bool[2] y) { y = RegexFullMatch <pattern = \"a\"> (x) }"),
        (20, "graph (string[2] x) => (string[2] y) { y = StringConcat (x, x) }"),
        (20, "graph (string[2] x) => (string y, int64 n) { y, n = StringSplit (x) }"),
        (10, "graph (string[2] x) => (string[2] y) { y = StringNormalizer (x) }"),
        (11, "graph (float[2] x) => (float[n] y) { y = Unique (x) }"),
        (9, """graph (int64[4] x) => (float[2] y) { y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0,
            min_gram_length = 1, mode = "TF", ngram_counts = [0], ngram_indexes = [0, 1], pool_int64s = [2, 3]> (x) }"""),
    ],
)  # fmt: skip
def test_refusals(opset: int, text: str) -> None:
    source = model(f'<ir_version: 9, opset_import: ["": {opset}]> {text}')
    error = refuses("no-equal", lower, source, opset - 1)
    assert f"below opset {opset}" in error.reason
    assert f"opset {opset} can be reached" in error.hint


@pytest.mark.parametrize(
    "values", ["float[2, 3] c = {0, 1, 2, 0, 0, 3}", "bool[4] c = {0, 1, 1, 0}", "int64[3] c = {0, 0, 0}"]
)
def test_non_zero(values: str) -> None:
    text = f"9 (float x) => (int64[r, n] y) <{values}> {{ y = NonZero (c) }}"
    check_down(text, 8, 7, feeds={"x": np.zeros((), np.float32)})


def test_computed_non_zero_is_refused() -> None:
    text = "9 (float[3] x) => (int64[1, n] y) { y = NonZero (x) }"
    check_down(text, 8, refused="needs-constant")


@pytest.mark.parametrize(
    ("axis", "condition"),
    [(None, "bool[6] c = {0, 1, 1, 0, 0, 1}"), (None, "bool[2] c = {1, 1}"), (0, "bool[2] c = {0, 1}"),
     (1, "bool[3] c = {1, 0, 1}"), (1, "bool[2] c = {0, 1}"), (1, "bool[2] c = {0, 0}")],
)  # fmt: skip
def test_compress(axis: int | None, condition: str) -> None:
    attribute = "" if axis is None else f"<axis = {axis}>"
    for dtype, x in (("float", X), ("int64", np.arange(6).reshape(2, 3)), ("bool", X > 1)):
        text = f"9 ({dtype}[2, 3] x) => ({dtype} y) <{condition}> {{ y = Compress {attribute} (x, c) }}"
        check_down(text, 8, 7, feeds={"x": x})


def test_a_computed_condition_is_refused() -> None:
    text = "9 (float[3] x, bool[3] c) => (float[n] y) { y = Compress (x, c) }"
    check_down(text, 8, refused="needs-constant")


NCHW = "2,3,5,7"


def source(body: str, opset: int = 9, dtype: str = "float", shape: str = NCHW) -> str:
    return f"{opset} ({dtype}[{shape}] x) => ({dtype}[A,B,C,D] y) {{ y = {body} (x) }}"


EXACT = [
    "ImageScaler <bias = [0.1, -0.2, 103.94], scale = 0.0174>",
    "ImageScaler <bias = [0.1, -0.2, 103.94]>",
    "ImageScaler <bias = [0.0, 0.0, 0.0], scale = 1.7>",
    "ImageScaler <bias = [0.0, 0.0, 0.0]>",
    "Affine <alpha = 1.3, beta = 0.7>",
    "Affine <alpha = 1.3>",
    "Affine <beta = 0.7>",
    "Affine",
    "Scale <scale = 0.0174>",
    "Scale",
    "Crop <border = [1, 2, 3, 1]>",
    "Crop <border = [0, 0, 0, 0]>",
    "Crop <border = [0, 2, 1, 0]>",
    "Crop <border = [4, 5, 3, 0]>",
    "Crop <border = [1, 2, 3, 2], scale = [2, 3]>",
    "Crop <border = [0, 0, 0, 0], scale = [5, 7]>",
    "ThresholdedRelu",
    "ThresholdedRelu <alpha = 0.3>",
    "ThresholdedRelu <alpha = -0.3>",
]
ROUNDING = [
    "ScaledTanh <alpha = 1.3, beta = 0.7>",
    "ScaledTanh <alpha = -2.0, beta = -0.1>",
    "ParametricSoftplus <alpha = 1.3, beta = 0.7>",
    "ParametricSoftplus <alpha = -2.0, beta = -0.1>",
]
NORMALIZATION = [
    "MeanVarianceNormalization",
    "MeanVarianceNormalization <across_channels = 1>",
    "MeanVarianceNormalization <across_channels = 0, normalize_variance = 1>",
    "MeanVarianceNormalization <across_channels = 1, normalize_variance = 1>",
]


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("body", EXACT)
def test_exact(body: str, opset: int) -> None:
    """From opset 7 on with all variants of the model; opset 9 is the last one that has the operators."""
    check(source(body, opset), to=10)


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("body", ROUNDING)
def test_equivalent(body: str, opset: int) -> None:
    check(source(body, opset), to=10, rtol=1e-5, atol=1e-6)
    _, log = lift(source(body, opset), 10)
    assert [change.exactness for change in log.changes] == [Exactness.EQUIVALENT]


@pytest.mark.parametrize("opset", [7, 8])
@pytest.mark.parametrize("body", NORMALIZATION)
def test_normalization(body: str, opset: int) -> None:
    result = check(source(body, opset), to=9)
    assert {attribute.name for attribute in result.graph.node[0].attribute} == {"axes"}


@pytest.mark.parametrize("across", [0, 1])
def test_without_variance_only_the_mean_is_subtracted(across: int) -> None:
    text = source(f"MeanVarianceNormalization <across_channels = {across}, normalize_variance = 0>", 8)
    check(text, to=9, rtol=1e-5, atol=1e-5)
    _, log = lift(text, 9)
    assert log.changes[0].exactness is Exactness.EQUIVALENT
    x = random_feeds(model(text))["x"].astype(np.float64)
    result, _ = lift(text, 13)
    expected = x - x.mean((0, 1, 2, 3) if across else (0, 2, 3), keepdims=True)
    same([expected.astype(np.float32)], run(result, {"x": x.astype(np.float32)}), "mean", 1e-5, 1e-5)


@pytest.mark.parametrize("body", [*EXACT, *NORMALIZATION])
def test_half_floats_are_computed_in_float32_as_in_onnxruntime(body: str) -> None:
    check(source(body, 8, "float16"), to=10)


@pytest.mark.parametrize("body", ROUNDING)
def test_half_floats_equivalent(body: str) -> None:
    check(source(body, 8, "float16"), to=10, rtol=2e-3, atol=1e-4)


def _doubles(body: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Operators without a kernel in ONNX Runtime, by their text in onnx/defs/experiments/defs.cc; attributes are float32."""
    node = helper.make_node(body.partition(" ")[0], ["x"], ["y"])
    parsed = model(source(body, 8, "double")).graph.node[0]
    values = {item.name: np.float64(np.array(helper.get_attribute_value(item))) for item in parsed.attribute}
    get = values.get
    if node.op_type == "ImageScaler":
        return get("scale", 1.0) * x + np.reshape(get("bias", np.zeros(3)), (3, 1, 1))
    if node.op_type == "Affine":
        return get("alpha", 1.0) * x + get("beta", 0.0)
    if node.op_type == "Scale":
        return get("scale", 1.0) * x
    if node.op_type == "ScaledTanh":
        return get("alpha") * np.tanh(get("beta") * x)
    if node.op_type == "ParametricSoftplus":
        return get("alpha") * np.log(np.exp(get("beta") * x) + 1)
    if node.op_type == "Crop":
        left, top, right, bottom = (int(number) for number in get("border"))
        if "scale" in values:
            return x[:, :, top : top + int(get("scale")[0]), left : left + int(get("scale")[1])]
        return x[:, :, top : x.shape[2] - bottom, left : x.shape[3] - right]
    assert node.op_type == "ThresholdedRelu"
    return np.where(x > get("alpha", 1.0), x, 0.0)


@pytest.mark.parametrize("body", [*EXACT, *ROUNDING])
def test_doubles(body: str) -> None:
    text = source(body, 8, "double")
    feeds = random_feeds(model(text))
    expected = [_doubles(body, feeds["x"])]
    if body.startswith("ThresholdedRelu"):
        result, _ = lift(text, 10)  # no evaluator supports doubles
        assert result.graph.node[0].op_type == "ThresholdedRelu"
        return
    check(text, to=10, feeds=feeds, expected=expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("body", ["ImageScaler <scale = 1.7>", "ImageScaler"])
def test_an_image_scaler_without_bias_adds_nothing(body: str) -> None:
    text = source(body)
    feeds = random_feeds(model(text))
    factor = np.float32(1.7 if "scale" in body else 1)
    check(text, to=10, feeds=feeds, expected=[feeds["x"] * factor])


def test_a_crop_of_a_size_without_a_border_starts_at_the_corner() -> None:
    text = source("Crop <scale = [2, 3]>")
    feeds = random_feeds(model(text))
    check(text, to=10, feeds=feeds, expected=[feeds["x"][:, :, :2, :3]])


@pytest.mark.parametrize(
    "body", ["Crop <border = [1, 2]>", "Crop <border = [-1, 0, 0, 0]>", "Crop <scale = [1]>"]
)
def test_a_crop_with_invalid_attributes_is_refused(body: str) -> None:
    refuses("invalid-node", lift, source(body), 10)


@pytest.mark.parametrize("operator", ["ScaledTanh", "ParametricSoftplus"])
@pytest.mark.parametrize("given", ["alpha", "beta"])
def test_a_factor_without_a_default_is_refused(operator: str, given: str) -> None:
    refuses("needs-value", lift, source(f"{operator} <{given} = 2.0>"), 10, match="omits attribute")


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(
    ("starts", "ends", "axes"),
    [([1, 0], [2, 3], [0, 1]), ([0, 1], [-1, 1000], None), ([-2], [2**31 - 1], [2]), ([5], [2], [1])],
)
def test_dynamic_slice(starts: list[int], ends: list[int], axes: list[int] | None, index: str) -> None:
    count = len(starts)
    declared = f"float[3,4,5] x, {index}[{count}] s, {index}[{count}] e" + (
        f", {index}[{count}] a" if axes else ""
    )
    text = f"""9 ({declared}) => (float[A,B,C] y)
        {{ y = DynamicSlice ({"x, s, e, a" if axes else "x, s, e"}) }}"""
    feeds = {
        "x": np.arange(60, dtype=np.float32).reshape(3, 4, 5),
        "s": np.array(starts, index),
        "e": np.array(ends, index),
    }
    if axes:
        feeds["a"] = np.array(axes, index)
    check(text, to=10, feeds=feeds)


FILL = "2, 3"
VALUES = [
    ("", np.float32, 0.0),
    ("value = 2.5", np.float32, 2.5),
    (f"value = 2.5, dtype = {TensorProto.FLOAT}", np.float32, 2.5),
    (f"value = -2.5, dtype = {TensorProto.INT32}", np.int32, -2),
    (f"value = 7.0, dtype = {TensorProto.INT64}", np.int64, 7),
    (f"value = 1.0, dtype = {TensorProto.BOOL}", np.bool_, True),
]


def _fill(operator: str, attributes: str, inputs: str, dtype: Any, rank: int) -> str:
    name = (
        helper.tensor_dtype_to_string(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))).split(".")[1].lower()
    )
    dims = ",".join("ABCDE"[:rank])
    return f"""8 ({inputs}) => ({name}[{dims}] y)
        {{ y = {operator} <{attributes}> ({inputs.rpartition(" ")[2]}) }}"""


@pytest.mark.parametrize(("attributes", "dtype", "value"), VALUES)
def test_constant_fill_with_the_attribute_shape(attributes: str, dtype: Any, value: float) -> None:
    stated = ", ".join(filter(None, (attributes, "shape = [2, 3]")))
    text = _fill("ConstantFill", stated, "", dtype, 2)
    check(text, to=9, feeds={}, expected=[np.full((2, 3), value, dtype)], newest=25)


@pytest.mark.parametrize("extra", [[], [4, 1]])
@pytest.mark.parametrize(("attributes", "dtype", "value"), VALUES[:2] + VALUES[-2:])
def test_constant_fill_like_an_input(attributes: str, dtype: Any, value: float, extra: list[int]) -> None:
    stated = ", ".join(
        filter(None, (attributes, f"extra_shape = {extra}" if extra else "input_as_shape = 0"))
    )
    text = _fill("ConstantFill", stated, "int32[2,3] x", dtype, 2 + len(extra))
    check(text, to=9, expected=[np.full((2, 3, *extra), value, dtype)])


@pytest.mark.parametrize("extra", [[], [4, 1]])
@pytest.mark.parametrize("kind", ["int64", "int32", "float"])
def test_constant_fill_of_a_shape_at_run_time(kind: str, extra: list[int]) -> None:
    stated = "value = 2.5, input_as_shape = 1" + (f", extra_shape = {extra}" if extra else "")
    text = _fill("ConstantFill", stated, f"{kind}[2] s", np.float32, 2 + len(extra))
    feeds = {"s": np.array([2, 3], kind.replace("float", "float32"))}
    check(text, to=9, feeds=feeds, expected=[np.full((2, 3, *extra), 2.5, np.float32)])


def test_given_tensor_fill_with_the_attribute_shape() -> None:
    text = _fill(
        "GivenTensorFill", "values = [1.5, 2.0, 3.0, 4.0, 5.0, 6.1], shape = [2, 3]", "", np.float32, 2
    )
    check(text, to=10, feeds={}, expected=[np.array([[1.5, 2, 3], [4, 5, 6.1]], np.float32)])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("extra", [[], [2]])
def test_given_tensor_fill_of_an_input(dtype: Any, numbers: bool, extra: list[int]) -> None:
    name = {np.float16: "float16", np.float32: "float", np.float64: "double"}[dtype]
    shape = [1, 2] if extra else [2, 2]
    stated = ", ".join(
        ["values = [1.5, 0.1, 3.0, 4.0]"]
        + (["input_as_shape = 1"] if numbers else [])
        + ([f"extra_shape = {extra}"] if extra else [])
    )
    declared = f"{name}[2] s" if numbers else f"{name}[{','.join(map(str, shape))}] s"
    text = _fill("GivenTensorFill", stated, declared, dtype, len(shape) + len(extra))
    feeds = {"s": np.array(shape, dtype) if numbers else np.zeros(shape, dtype)}
    values = np.array([1.5, np.float32(0.1), 3, 4]).astype(dtype).reshape((*shape, *extra))
    check(text, to=10, feeds=feeds, expected=[values])


@pytest.mark.parametrize(
    ("operator", "attributes", "inputs"),
    [
        ("ConstantFill", "shape = [2]", "float[2] x"),
        ("ConstantFill", "shape = [2], extra_shape = [1]", ""),
        ("GivenTensorFill", "values = [1.0, 2.0], shape = [3]", ""),
    ],
)
def test_a_fill_that_contradicts_itself_is_refused(operator: str, attributes: str, inputs: str) -> None:
    refuses("invalid-node", lift, model(_fill(operator, attributes, inputs, np.float32, 1)), 10)


def _node(operator: str, opset: int, inputs: int, attributes: dict[str, Any]) -> onnx.ModelProto:
    names = [f"x{index}" for index in range(inputs)]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in names]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])
    node = helper.make_node(operator, names, ["y"])
    node.attribute.extend(helper.make_attribute(*item) for item in attributes.items())
    graph = helper.make_graph([node], "g", values, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)


@pytest.mark.parametrize("opset", [6, 9, 11])
@pytest.mark.parametrize(
    ("proto", "reason"),
    [(("ATen", 2, {"operator": "cosine_similarity", "dim": 1}), "ATen"), (("GRUUnit", 4, {}), "gates")],
)
def test_operators_whose_result_is_not_specified_are_refused(
    proto: tuple[str, int, dict[str, Any]], reason: str, opset: int
) -> None:
    operator, inputs, attributes = proto
    error = refuses("no-equal", lift, _node(operator, opset, inputs, attributes), 13, match=reason)
    assert error.where is not None
    assert error.where.operator == operator


@pytest.mark.parametrize("body", [*EXACT, *ROUNDING, *NORMALIZATION])
def test_they_are_unchanged_at_opsets_that_have_them(body: str) -> None:
    before = model(source(body, 7))
    feeds = random_feeds(before)

    after, log = lift(before, 8)

    assert not log.changes
    assert list(after.graph.node) == list(before.graph.node)
    same(run(before, feeds), run(after, feeds), body)


@pytest.mark.parametrize("body", ["ImageScaler <bias = [1.0, 2.0, 3.0]>", "Scale <scale = 2.0>"])
def test_at_an_opset_that_has_removed_them_they_are_lifted_with_a_warning(body: str) -> None:
    feeds = random_feeds(model(source(body, 9)))
    expected = run(model(source(body, 9)), feeds)

    result, log = lift(source(body, 11), 17)

    assert "other-version" in [note.code for note in log.notes]
    same(expected, run(result, feeds), body)


def test_the_function_of_opset_8_keeps_its_axes() -> None:
    """onnx 1.3 had a function of this name in addition to the experimental operator."""
    result, _ = lift(source("MeanVarianceNormalization <axes = [2, 3]>", 8), 13)
    assert list(result.graph.node[0].attribute[0].ints) == [2, 3]


def test_attributes_of_a_function_are_refused() -> None:
    proto = model(f"""9 (float[{NCHW}] x) => (float[{NCHW}] y) {{ y = local.F <factor = 2.0> (x) }}
        <opset_import: ["": 9], domain: "local"> F <factor> (a) => (b) {{ b = Scale <scale: float = @factor> (a) }}""")
    refuses("needs-value", lift, proto, 13)


def test_an_unknown_type_is_refused() -> None:
    proto, _ = make_variant(model(source("Scale <scale = 2.0>")), "function", {})
    del proto.graph.node[:], proto.graph.output[:]
    refuses("needs-type", lift, proto, 13)


def test_every_removed_operator_is_tested_here() -> None:
    spoken = {body.partition(" ")[0] for body in (*EXACT, *ROUNDING, *NORMALIZATION)}
    others = {"ATen", "GRUUnit", "ConstantFill", "GivenTensorFill", "DynamicSlice"}
    assert {operator.name for operator in EXPERIMENTAL_OPERATORS} == spoken | others
