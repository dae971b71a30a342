"""Weights that onnxsim does not see are inputs meanwhile, and the same references afterwards."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx_migrate.engine.pass_registry import builtin_passes
from onnx_migrate.files import load
from tests.harness import model


def source() -> onnx.ModelProto:
    builtin_passes()
    text = "17 (float[1,2] x) => (float[1,9000] y) { a = MatMul(x, w)  y = Add(a, k) }"
    proto = model(text)
    for name, shape in (("w", (2, 9000)), ("v", (9000,)), ("s", (1,))):
        proto.graph.initializer.append(numpy_helper.from_array(np.ones(shape, np.float32), name))
    value = numpy_helper.from_array(np.full(9000, 2, np.float32))
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["k"], value=value))
    return proto


def test_hidden_weights_are_inputs_of_their_type_and_shape() -> None:
    from onnx_migrate.passes.simplify.hidden_weights import hide

    before = load(source())

    graph = hide(before, frozenset({"w", "k"})).proto.graph

    assert [value.name for value in graph.input] == ["x", "w", "k"]
    assert graph.input[1] == helper.make_tensor_value_info("w", 1, [2, 9000])
    assert [node.op_type for node in graph.node] == ["MatMul", "Add"]
    assert [tensor.name for tensor in graph.initializer] == ["v", "s"]
    assert len(before.proto.graph.node) == 3


def test_a_long_vector_has_no_length() -> None:
    """onnx's inference keeps an object for each element of a vector of known length."""
    from onnx_migrate.passes.simplify.hidden_weights import hide

    given = source()
    given.graph.input.append(helper.make_tensor_value_info("z", 1, [9000]))
    given.graph.value_info.append(helper.make_tensor_value_info("u", 1, [9000]))
    given.graph.value_info.append(helper.make_tensor_value_info("t", 1, [8]))
    graph = hide(load(given), frozenset({"v"})).proto.graph

    assert graph.input[1] == helper.make_tensor_value_info("z", 1, [None])
    assert graph.input[2] == helper.make_tensor_value_info("v", 1, [None])
    assert graph.value_info[0] == helper.make_tensor_value_info("u", 1, [None])
    assert graph.value_info[1] == given.graph.value_info[1]


def test_what_is_still_read_becomes_the_reference_that_it_was() -> None:
    from onnx_migrate.passes.simplify.hidden_weights import hide, restore

    before = load(source())
    names = frozenset({"w", "k", "v"})
    graph = hide(before, names).proto.graph

    restore(graph, before.proto.graph, names)

    assert [value.name for value in graph.input] == ["x"]
    assert [tensor.name for tensor in graph.initializer] == ["w", "s"]  # nothing reads v
    assert graph.initializer[0] == before.proto.graph.initializer[0]
    assert graph.node == before.proto.graph.node


def test_equal_bytes_are_the_reference_that_they_were_and_others_are_new() -> None:
    from onnx_migrate.passes.simplify.hidden_weights import share_payloads

    before, other = load(source()), source()
    other.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.zeros(9000, np.float32), "v"))
    simplified = load(other)

    share_payloads(simplified, before)

    w, v, _ = simplified.proto.graph.initializer
    assert w == before.proto.graph.initializer[0]
    assert v.raw_data == bytes(36000)
    assert simplified.weights.memory == before.weights.memory


def test_many_new_bytes_are_references(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from onnx_migrate.passes.simplify import hidden_weights

    monkeypatch.setattr(hidden_weights, "_INLINE_AT_MOST", 35_999)
    before, other = load(source()), source()
    other.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.zeros(9000, np.float32), "v"))
    simplified = load(other)

    hidden_weights.share_payloads(simplified, before)

    v = simplified.proto.graph.initializer[1]
    assert not v.raw_data
    assert not simplified.weights.array(v).any()
