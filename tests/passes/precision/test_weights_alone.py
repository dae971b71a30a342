"""Weights that are stored narrow and read in float32: of all nodes with fp16-weights, else of nodes that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.errors import UsageError
from onnx_migrate.model.graphs import weight_tensors
from tests.harness import model, random_feeds, run
from tests.passes.precision.test_precision import F16, F32, converted
from tests.steps import operators

NUMBERS = np.random.default_rng(0).normal(size=(32, 32)).astype(np.float32) / 8
W = "float[32,32] w = {" + ", ".join(f"{number:.6g}" for number in NUMBERS.flat) + "}"
V = W.replace(" w = ", " v = ")
VALUES = W.partition("{")[2].removesuffix("}")

SOURCES = {
    "shared": f"17 (float[2,32] x) => (float[2,32] y) <{W}> {{ a = MatMul(x, w) b = Tanh(a) y = MatMul(b, w) }}",
    "an output too": f"17 (float[2,32] x) => (float[2,32] y, float[32,32] w) <{W}> {{ y = MatMul(x, w) }}",
    "constant": f"17 (float[2,32] x) => (float[2,32] y) {{ w = Constant<value = float[32,32] {{{VALUES}}}>() y = MatMul(x, w) }}",
    "branches": f"""17 (float[2,32] x, bool c) => (float[2,32] y) <{W}> {{ y = If(c) <
        then_branch = t () => (float[2,32] a) {{ a = MatMul(x, w) }},
        else_branch = e () => (float[2,32] b) <{V}> {{ k = Add(w, v) b = MatMul(x, k) }}> }}""",
    "given out by a branch": f"""17 (float[2,32] x, bool c) => (float[2,32] y) <{W}> {{ k = If(c) <
        then_branch = t () => (float[32,32] a) {{ a = Neg(w) }},
        else_branch = e () => (float[32,32] v) <{V}> {{ }}> y = MatMul(x, k) }}""",
    "loop": f"""17 (float[2,32] x) => (float[2,32] y) <{W}, int64 n = {{3}}, bool t = {{1}}> {{ y = Loop(n, t, x) <
        body = b (int64 i, bool c, float[2,32] s) => (bool d, float[2,32] r) <{V}> {{
            d = Identity(c) h = MatMul(s, w) r = MatMul(h, v) }}> }}""",
    "cast by the model": f"""17 (float[2,32] x) => (float[2,32] y) <{W}> {{
        h = Cast<to = 10>(w) k = Cast<to = 1>(h) a = MatMul(x, k) y = MatMul(a, w) }}""",
    "function": "",
}  # fmt: skip


def source_of(name: str) -> onnx.ModelProto:
    if SOURCES[name]:
        return model(SOURCES[name])
    body = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(NUMBERS)),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "F", ["x"], ["y"], body, opsets[:1])
    calls = [helper.make_node("F", [one], [two], domain="own") for one, two in (("x", "a"), ("a", "y"))]
    ports = [[helper.make_tensor_value_info(name, F32, [2, 32])] for name in "xy"]
    graph = helper.make_graph(calls, "g", *ports)
    return helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)


def bytes_of(proto: onnx.ModelProto) -> int:
    return sum(numpy_helper.to_array(tensor).nbytes for tensor in weight_tensors(proto))


def migrated(source: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    result: onnx.ModelProto = onnx_migrate.migrate(source, isolated=False, **options).model
    return result


@pytest.mark.parametrize("name", SOURCES)
def test_weights_have_half_the_bytes_and_nodes_compute_in_float32(name: str) -> None:
    source = source_of(name)
    result = migrated(source, precision="fp16-weights")
    onnx.checker.check_model(result, full_check=True)
    assert bytes_of(result) <= bytes_of(source) // 2 + 64
    assert {tensor.data_type for tensor in weight_tensors(result)} & {F16, F32} == {F16}
    feeds = random_feeds(source)
    for one, two in zip(run(source, feeds), run(result, feeds), strict=True):
        assert np.abs(np.asarray(one) - np.asarray(two)).max() <= 2e-3 * np.abs(one).max()

    assert migrated(result) == result, "simplification folds no Cast of a stored weight"
    assert converted(result, "fp16-weights")[0] == result
    back, _ = converted(result, "fp32")
    assert F16 not in {tensor.data_type for tensor in weight_tensors(back)}
    for one, two in zip(run(result, feeds), run(back, feeds), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "options",
    [{"opset": 20}, {"runtime": "onnxruntime==1.16"}, {"dynamic_batch": True}, {"static": True}],
    ids=str,
)
def test_other_options_keep_the_weights_narrow(options: dict[str, Any]) -> None:
    result = migrated(source_of("shared"), precision="fp16-weights", **options)
    assert [tensor.data_type for tensor in result.graph.initializer] == [F16]
    assert sorted(operators(result)) == ["Cast", "MatMul", "MatMul", "Tanh"]


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        (NUMBERS * 1e7, "overflows in float16"),
        (NUMBERS * 1e-7, "few digits in float16"),
        (np.arange(4096, dtype=np.float32).reshape(64, 64), "does not hold whole numbers up to 4095"),
        (NUMBERS[:8], "a Cast would cost about as many bytes as it saves"),
    ],
)
def test_a_weight_that_float16_does_not_hold_stays_and_is_listed(
    numbers: np.ndarray[Any, Any], reason: str
) -> None:
    ports = [
        helper.make_tensor_value_info(name, F32, [2, size])
        for name, size in zip("xy", numbers.shape, strict=True)
    ]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["a", "v"], ["y"])]
    square = np.ones((numbers.shape[1], numbers.shape[1]), np.float32)
    weights = [numpy_helper.from_array(array, name) for array, name in ((numbers, "w"), (square, "v"))]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    report = onnx_migrate.migrate(source, precision="fp16-weights", isolated=False).report
    assert report.precision is not None
    (weight,) = report.precision.weights
    assert weight.name == "w"
    assert reason in weight.reason
    assert f"'w' stays because {weight.reason}" in report.precision.lines


def test_a_kept_node_reads_narrow_weights_unless_it_was_named(tmp_path: Path) -> None:
    source = f"17 (float[2,32] x) => (float[2,32] y) <{W}, {V}> {{ a = MatMul(x, w) b = Mod<fmod = 1>(a, x) y = MatMul(b, v) }}"
    proto = model(source)
    proto.graph.node[0].name = "first"
    result, _ = converted(proto, keep=("first",))
    kinds = {tensor.name: tensor.data_type for tensor in result.graph.initializer}
    assert kinds == {"w": F32, "v": F16}


def test_options_that_do_not_fit() -> None:
    source = source_of("shared")
    with pytest.raises(UsageError, match="converts weights alone"):
        onnx_migrate.migrate(source, precision="fp16-weights", precision_io=True)
    with pytest.raises(UsageError, match="need --precision"):
        onnx_migrate.migrate(source, precision_tolerance=0.01)
    for wrong in (1, "0", "-1%", "one", "200%"):
        with pytest.raises(UsageError, match="no share above 0 and below 1"):
            onnx_migrate.migrate(source, precision="fp16", precision_tolerance=wrong)


def test_weights_in_files_are_converted_as_they_are_copied(tmp_path: Path) -> None:
    source = source_of("shared")
    path = tmp_path / "model.onnx"
    onnx.save(source, path, save_as_external_data=True, location="model.data", size_threshold=0)
    onnx_migrate.migrate(path, precision="bf16-weights", isolated=False).save(tmp_path / "out.onnx")
    (tensor,) = onnx.load(tmp_path / "out.onnx").graph.initializer
    assert tensor.data_type == TensorProto.BFLOAT16
    assert not (tmp_path / "out.onnx.data").exists()
