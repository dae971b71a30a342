"""Normalisations, Softmax and its kin: written out in arithmetic, up and down."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_migrate
from tests.harness import model, random_feeds, require_ir_of, require_opset, run
from tests.steps import check, check_down, check_written_out, lift, lower, operators, refuses


def text(
    operator: str, opset: int, shape: list[int], attributes: str = "", dtype: str = "float", bias: str = ", b"
) -> str:
    size = shape[-1] if operator != "GroupNormalization" else shape[1]
    inputs = f"{dtype}{shape} x, {dtype}[{size}] s" + (f", {dtype}[{size}] b" if bias else "")
    return f"{opset} ({inputs}) => ({dtype}{shape} y) {{ y = {operator} {attributes} (x, s{bias}) }}"


NO_RANK = {"unranked": "needs-rank"}
CLOSE = {"rtol": 2e-6, "atol": 2e-6}
GROUPS = "<num_groups = 2, stash_type = {}>"
DOWN = [
    # operator, opset, shape, attributes, type, bias, targets, how it is compared
    *(
        ("LayerNormalization", 17, [2, 3, 4], given, "float", bias, (16, 13, 11, 9, 7), {**CLOSE, "refused": refused})
        for given, refused in (("", None), ("<axis = -1, epsilon = 0.1>", None), ("<axis = 2>", NO_RANK))
        for bias in ("", ", b")
    ),
    ("LayerNormalization", 17, [2, 3, 4], "", "double", ", b", (16, 11), {"rtol": 1e-12, "atol": 1e-12}),
    ("LayerNormalization", 17, [2, 3, 4], "", "float16", ", b", (16, 11), {"rtol": 2e-3, "atol": 2e-3}),
    ("RMSNormalization", 23, [2, 3, 4], "", "float", "", (22, 17, 11, 7), CLOSE),
    ("RMSNormalization", 23, [2, 3, 4], "<axis = -2, epsilon = 0.1>", "float", "", (22, 17, 11, 7), CLOSE),
    ("RMSNormalization", 23, [2, 3, 4], "<axis = -3>", "float", "", (22, 17), CLOSE),
    ("RMSNormalization", 23, [2, 3, 4], "<axis = 1>", "float", "", (22, 17, 11, 7), {**CLOSE, "refused": NO_RANK}),
    ("RMSNormalization", 23, [2, 3, 4], "", "double", "", (22, 13), {"rtol": 1e-12, "atol": 1e-12}),
    ("RMSNormalization", 23, [2, 3, 4], "", "float16", "", (22, 13), {"rtol": 2e-3, "atol": 2e-3}),
    *(
        ("GroupNormalization", 21, shape, given, "float", ", b", (20, 17, 11), {})
        for shape in ([2, 6, 3, 2], [2, 6], [1, 6, 5])
        for given in ("<num_groups = 2>", "<num_groups = 3, epsilon = 0.1>", "<num_groups = 6>")
    ),
    *(
        ("GroupNormalization", 21, [2, 6, 3], GROUPS.format(stash), dtype, ", b", (20, 13), {})
        for dtype, stash in (("double", 1), ("double", 11), ("float16", 1), ("float16", 10), ("float", 11))
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "opset", "shape", "attributes", "dtype", "bias", "targets", "how"), DOWN
)
def test_down(
    operator: str,
    opset: int,
    shape: list[int],
    attributes: str,
    dtype: str,
    bias: str,
    targets: Any,
    how: Any,
) -> None:
    source = text(operator, opset, shape, attributes, dtype, bias)
    if operator == "RMSNormalization" and "axis" in attributes:
        source = source.replace("float[4] s", "float[3,4] s")
    check_down(source, *targets, specials=False, **how)


def layer_normalization_over_two_axes(axis: int, outputs: str = "y, mean, inverse") -> str:
    return f"""17 (float[2,3,4] x, float[3,4] s, float[3,4] b)
        => (float[2,3,4] y, float[2,1,1] mean, float[2,1,1] inverse)
        {{ {outputs} = LayerNormalization<axis = {axis}> (x, s, b) }}"""


@pytest.mark.parametrize("axis", [1, -2])
def test_layer_normalization_gives_mean_and_inverse(axis: int) -> None:
    refused = NO_RANK if axis > 0 else None
    check_down(layer_normalization_over_two_axes(axis), 16, 9, refused=refused, **CLOSE, specials=False)


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


def test_group_normalization_18_scales_groups() -> None:
    source = text("GroupNormalization", 18, [2, 6, 3], "<num_groups = 2>").replace("float[6]", "float[2]")
    check_down(source, 17, 13, 9, specials=False)


def test_simplified_layer_normalization_stays() -> None:
    source = text("SimplifiedLayerNormalization", 23, [2, 3, 4], bias="")
    lowered = check_down(source, 22, 13, variants=("plain",))
    assert operators(lowered) == ["SimplifiedLayerNormalization"]


@pytest.mark.parametrize("axes", ["", "<axes = [1, 2]>", "<axes = [0, 1, 2, 3]>"])
def test_mean_variance_normalization(axes: str) -> None:
    source = f"9 (float[2,3,4,2] x) => (float[2,3,4,2] y) {{ y = MeanVarianceNormalization {axes} (x) }}"
    check_down(source, 8, 7, rtol=2e-6, atol=2e-6, specials=False)


def test_bfloat16_ends_at_opset_13() -> None:
    source = text("LayerNormalization", 17, [2, 4], dtype="bfloat16")
    refuses("no-such-type", lower, source, 12)


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
    source = f"""17 ({dtype}[2,3,4] x) => (float[2,3,4] y)
        <float[4] s = {{1, 2, 3, 4}}> {{ a = Cast<to = 1> (x) c = Identity (a) y = LayerNormalization (c, s, s) }}"""
    lowered, _ = lower(source, 13)
    feeds = random_feeds(model(source))
    session = ort.InferenceSession(lowered.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(
        session.run(None, feeds)[0], run(model(source), feeds)[0], rtol=1e-5, atol=1e-5
    )


CONSTANT = "<float[3] s = {1, 2, -3}, float[3] b = {0.5, 0, -1}>"


@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
@pytest.mark.parametrize("shape", ["2, 6, 3, 2", "2, 3, 4", "1, 12, 5"])
def test_scale_and_bias_at_run_time(dtype: str, shape: str) -> None:
    source = f"""18 ({dtype}[{shape}] x, {dtype}[3] s, {dtype}[3] b) => ({dtype}[{shape}] y)
        {{ y = GroupNormalization <num_groups = 3> (x, s, b) }}"""
    check(source, to=21)


@pytest.mark.parametrize("target", [18, 20])
def test_the_withdrawn_version_is_refused_as_a_target(target: int) -> None:
    source = model("""18 (float[2, 6, 3] x, float[3] s, float[3] b) => (float[2, 6, 3] y)
        { y = GroupNormalization <num_groups = 3> (x, s, b) }""")

    refuses("no-equal", lift, source, target, match="migrate to opset 21 or newer")


def test_constant_scale_and_bias() -> None:
    source = f"""18 (float[2, 6, 3] x) => (float[2, 6, 3] y) {CONSTANT}
        {{ y = GroupNormalization <num_groups = 3, epsilon = 0.1> (x, s, b) }}"""
    result = check(source, to=21)
    assert operators(result) == ["GroupNormalization"]


def test_one_of_scale_and_bias_is_constant() -> None:
    source = """18 (float[2, 6, 3] x, float[3] s) => (float[2, 6, 3] y) <float[3] b = {0.5, 0, -1}>
        { y = GroupNormalization <num_groups = 3> (x, s, b) }"""
    check(source, to=21)


def test_groups_that_are_an_attribute_of_a_function() -> None:
    source = """18 (float[2, 6, 3] x, float[3] s, float[2] t) => (float[2, 6, 3] y, float[2, 6, 3] z) {
            y = local.F <n = 3> (x, s)
            z = local.F <n = 2> (x, t)
        }
        <domain: "local", opset_import: ["": 18]> F <n> (x, s) => (y)
        { y = GroupNormalization <num_groups: int = @n> (x, s, s) }"""
    check(source, to=21, variants=["plain", "symbolic", "if"])


@pytest.mark.parametrize(
    ("opset", "shape", "call", "to", "dtype"),
    [
        *((7, "2, 5, 3, 3", f"LRN <size = {size}, alpha = 0.1, beta = 0.6, bias = 2.0>", 13, "float") for size in (1, 2, 3, 4)),
        (9, "2, 5, 3, 3", "MeanVarianceNormalization", 13, "float"),
        (9, "2, 5, 3, 3", "MeanVarianceNormalization <axes = [0, 2, 3]>", 13, "float"),
        *(
            (7, "2, 3, 4", f"LpNormalization {given}", 22, dtype)
            for given in ("", "<p = 1>", "<axis = 1, p = 2>") for dtype in ("float", "double")
        ),
    ],
)  # fmt: skip
def test_those_that_are_unchanged(opset: int, shape: str, call: str, to: int, dtype: str) -> None:
    result = check(f"{opset} ({dtype}[{shape}] x) => ({dtype}[{shape}] y) {{ y = {call} (x) }}", to=to)
    onnx.checker.check_model(result, full_check=call.startswith("Mean"))


OWN = """17 (float[2,3,8] x, float[8] w) => (float[2,3,8] y)
    { y = SimplifiedLayerNormalization <axis = -1, epsilon = 0.001> (x, w) }"""


def own(text: str, target: int, operator: str) -> onnx_migrate.Report:
    """Hold that a migration of the text is verified and gives one node; return its report."""
    result = onnx_migrate.migrate(model(text), opset=target, simplify=False)
    assert operators(result.model) == [operator]
    assert result.report.verification is not None
    assert result.report.verification.kind.value == "verified"
    return result.report


@pytest.mark.parametrize(
    ("target", "operator"), [(18, "SimplifiedLayerNormalization"), (23, "RMSNormalization")]
)
def test_the_runtimes_own_normalization_stays_until_the_standard_has_it(target: int, operator: str) -> None:
    require_opset(target)
    require_ir_of(target)
    noted = "runtime-operator" in [note.code for note in own(OWN, target, operator).notes]
    assert noted == (operator == "SimplifiedLayerNormalization")


def test_the_runtimes_own_normalization_stays_where_its_second_output_is_read() -> None:
    require_opset(23)
    require_ir_of(23)
    text = OWN.replace("=> (float[2,3,8] y)", "=> (float[2,3,8] y, float[2,3,1] i)").replace(
        "y = S", "y, i = S"
    )
    own(text, 23, "SimplifiedLayerNormalization")


@pytest.mark.parametrize("target", [13, 17])
def test_layer_normalization_before_the_standard_had_it(target: int) -> None:
    own(OWN.replace("17 ", "11 ", 1).replace("Simplified", ""), target, "LayerNormalization")


@pytest.mark.parametrize(("target", "standard"), [(13, True), (17, False), (23, True)])
@pytest.mark.parametrize(
    ("operator", "data", "scale"),
    [
        ("LayerNormalization", "float16", "float"),
        ("LayerNormalization", "float", "float16"),
        ("LayerNormalization", "float", "double"),
        ("SimplifiedLayerNormalization", "float16", "float"),
        ("SimplifiedLayerNormalization", "float", "float16"),
    ],
)
def test_the_runtimes_own_normalization_of_two_types(
    operator: str, target: int, standard: bool, data: str, scale: str
) -> None:
    require_opset(23 if standard and operator.startswith("Simplified") else target)
    require_ir_of(target)
    text = f"""12 ({data}[N,8] x, {scale}[8] s, {scale}[8] b) => ({scale}[N,8] y)
        {{ t = {operator} <axis = -1> (x, s{", b" if operator.startswith("Layer") else ""}) y = Mul (t, b) }}"""
    result = onnx_migrate.migrate(model(text), opset=target, standard=standard)
    assert result.report.verified
    if standard:
        onnx.checker.check_model(result.model, full_check=True)


# Written out

CHANNELS = """<float[3] s = {1.0, 2.0, -1.0}, float[3] b = {0.5, 0.0, 1.0},
    float[3] m = {0.1, -1.0, 2.0}, float[3] v = {1.0, 0.5, 2.0}>"""
GIVEN = ", float[3] s, float[3] b"
SUMS = {"rtol": 1e-5, "atol": 2e-6}
WITHOUT = [
    # opset, shape, more inputs, constants, call, how it is compared
    *(
        (opset, dims, GIVEN, "", "InstanceNormalization <epsilon = 0.01> (x, s, b)", {**SUMS, "refused": NO_RANK})
        for opset in (7, 13, 18) for dims in ("2,3,4", "2,3,4,5")
    ),
    *(
        (opset, dims, "", CHANNELS, "BatchNormalization (x, s, b, m, v)", {**SUMS, "refused": NO_RANK})
        for opset in (7, 9, 15) for dims in ("2,3", "2,3,4", "2,3,4,5")
    ),
    *(
        (opset, "2,7,4,5", "", "", f"LRN <size = {size}, alpha = 0.2, beta = 0.6, bias = 1.5> (x)", {"rtol": 1e-5, "atol": 1e-6})
        for size in (3, 5) for opset in (7, 13)
    ),
    *(
        (
            opset, "2,3,4", "", "", f"{operator} {given} (x)",
            {**({} if operator == "Hardmax" else SUMS), "refused": NO_RANK if operator == "Hardmax" or opset < 13 else None},
        )
        for operator in ("Softmax", "LogSoftmax", "Hardmax") for opset in (7, 11, 13)
        for given in ("", "<axis = 0>", "<axis = 1>", "<axis = 2>")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "dims", "inputs", "constants", "call", "how"), WITHOUT)
def test_without(opset: int, dims: str, inputs: str, constants: str, call: str, how: dict[str, Any]) -> None:
    source = f"{opset} (float[{dims}] x{inputs}) => (float[{dims}] y) {constants} {{ y = {call} }}"
    check_written_out(source, call.split()[0], **how)


def test_a_training_batch_normalization_is_refused() -> None:
    text = """15 (float[2,3] x, float[3] s) => (float[2,3] y)
        { y, m, v = BatchNormalization <training_mode = 1> (x, s, s, s, s) }"""
    check_written_out(text, "BatchNormalization", variants=["plain"], refused="no-equal")
