"""Declared shapes are read and replaced, and the inferred ones follow from the inputs alone."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.shapes import (
    Dims,
    InferredOutputs,
    contradict,
    dims_of,
    dims_text,
    drop_value_info,
    inferred_graph,
    inferred_outputs,
    set_dims,
)
from tests.harness import model

WRONG = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,3,4] x) => (float[7,7] y) <float[9] a> { a = Relu(x) y = Flatten(a) }"""


def test_declared_shapes_are_not_believed() -> None:
    assert inferred_outputs(model(WRONG)) == {"y": ("N", 12)}
    assert inferred_outputs(model(WRONG), {"N": 5}) == {"y": (5, 12)}
    graph = inferred_graph(model(WRONG))
    assert [dims_of(value) for value in (*graph.value_info, *graph.input)] == [("N", 3, 4), ("N", 3, 4)]


def test_a_model_that_onnx_cannot_infer_is_refused() -> None:
    foreign = model(WRONG)
    foreign.graph.node[0].domain = "not.imported"
    with pytest.raises(CannotMigrate, match="onnx cannot infer shapes") as caught:
        inferred_outputs(foreign)

    assert caught.value.code == "not-inferred"


LOOP = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x, int64 n, bool c) => (float[2] y) <float[2] z> {
    z = Neg(x)
    y = Loop(n, c, z) <body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] w) <float[2] u> {
        co = Identity(ci) u = Add(v, v) w = Neg(u) }>
}"""


def test_shapes_between_inputs_and_outputs_are_dropped_and_a_loop_still_runs() -> None:
    proto = model(LOOP)
    body = proto.graph.node[1].attribute[0].g

    assert drop_value_info(proto) == 4  # z, u, v, w

    assert not proto.graph.value_info
    assert not body.value_info
    assert [value.type.tensor_type.HasField("shape") for value in body.input] == [True, True, False]
    assert [value.type.tensor_type.HasField("shape") for value in body.output] == [True, False]
    assert dims_of(proto.graph.input[0]) == (2,)
    feed = {"x": np.array([1, 2], np.float32), "n": np.array(2), "c": np.array(True)}
    session = ort.InferenceSession(proto.SerializeToString())
    assert session.run(None, feed)[0].tolist() == [-4.0, -8.0]


def test_a_loop_keeps_the_shape_of_a_counter_of_one_element_and_a_custom_operator_does_not() -> None:
    text = LOOP.replace("int64 i, bool ci", "int64[1] i, bool[1] ci").replace("(bool co", "(bool[1] co")
    loop, custom = model(text), model(text)
    custom.graph.node[1].domain = "com.acme"

    assert (drop_value_info(loop), drop_value_info(custom)) == (4, 7)


def test_shapes_inside_functions_are_dropped() -> None:
    proto = model("""<ir_version: 8, opset_import: ["": 17, "local": 1]>
g (float[2] x, bool c) => (float[2] y) { y = local.F(c, x) }
<domain: "local", opset_import: ["": 17]> F (c, x) => (y) {
    y = If(c) <then_branch = a () => (float[2] u) { u = Neg(x) }, else_branch = b () => (float[2] v) { v = Abs(x) }>
}""")
    proto.functions[0].value_info.add(name="t")

    assert drop_value_info(proto) == 3  # t, u, v


@pytest.mark.parametrize("dims", [(), (2,), ("N", None, 4), (1, 2, 3, 4)])
def test_dims_are_read_as_they_were_set(dims: Dims) -> None:
    value = helper.make_tensor_value_info("x", 1, ["A", 3, 5])
    for dim in value.type.tensor_type.shape.dim:
        dim.denotation = "DATA_BATCH"

    set_dims(value, dims)

    assert dims_of(value) == dims
    assert all(dim.denotation for dim in value.type.tensor_type.shape.dim[: min(3, len(dims))])


SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2]))


@pytest.mark.parametrize(
    ("value", "dims", "text"),
    [
        (helper.make_tensor_value_info("x", 1, ["unk__3", "N", 3]), (None, "N", 3), "[?, N, 3]"),
        (helper.make_tensor_value_info("x", 1, []), (), "[]"),
        (helper.make_tensor_value_info("x", 1, None), None, "no shape"),
        (helper.make_value_info("x", SEQUENCE), None, "no shape"),
        (onnx.ValueInfoProto(), None, "no shape"),
    ],
)
def test_dims_of_a_value_and_as_text(value: onnx.ValueInfoProto, dims: Dims | None, text: str) -> None:
    """Symbols that inference made up are unknown."""
    assert (dims_of(value), dims_text(dims)) == (dims, text)


@pytest.mark.parametrize(
    ("declared", "found", "expected"),
    [
        ((2, "N", None), (2, 3, 4), False),
        ((2, 3), (2, 4), True),
        ((2, 3), (2, 3, 1), True),
        (None, (2,), False),
        ((2,), None, False),
    ],
)
def test_a_contradiction_is_of_ranks_or_numbers(
    declared: Dims | None, found: Dims | None, expected: bool
) -> None:
    assert contradict(declared, found) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }", True),
        ("(float[N,3] x) => (float[M,3] y) { y = Relu(x) }", True),  # a symbol contradicts nothing
        ("(float[N,3] x) => (float y) { y = Relu(x) }", False),  # declared as a scalar
        ("(float[N,3] x) => (y) { y = Relu(x) }", True),
        ("(float[N,3] x) => (float[5,3] y) { y = Relu(x) }", False),
        ("(float[N,3] x) => (float[N,3] z) { z = Relu(x) }", False),
        ("(float[5,3] x) => (float[N,3] y) { y = Relu(x) }", False),
        ("(float[N,3] x, float[1] w) => (float[N,3] y) <float[1] w = {1}> { y = Add(x, w) }", True),
        ("(float[N,3] x) => (float[N,3] y) <float[N,3] a> { a = Relu(x) y = Relu(a) }", False),
    ],
)
def test_dims_that_were_inferred_confirm_a_graph(text: str, expected: bool) -> None:
    header = '<ir_version: 8, opset_import: ["": 17]> g '
    inferred = inferred_graph(model(f"{header} (float[N,3] x) => (float[N,3] y) {{ y = Relu(x) }}"))

    assert InferredOutputs.of(inferred).confirms(model(header + text).graph) is expected
