"""The node that is at fault, and how its constant is described."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.verify.dynamic.fault_localization import constant_text, named_blocker
from tests.verify.harness import net, prove


def test_the_first_node_that_mixes_is_found_not_the_last():
    text = """(float[N,4] x) => (float[N,4] y) {
        [before] a = Relu(x) [mixes] b = Softmax<axis=0>(a) [after] c = Exp(b) [last] y = Neg(c) }"""
    blocker = prove(text, {"N": 1}).blocker
    assert (blocker.node, blocker.operator, blocker.output) == ("mixes", "Softmax", "b")


def test_a_scale_that_is_taken_of_all_items_is_found():
    text = """(float[N,64] x) => (float[N,64] y) {
        [spread] k = Mul(x, x) [scales] q, s, z = DynamicQuantizeLinear(k) [back] y = DequantizeLinear(q, s, z) }"""
    blocker = prove(text, {"N": 1}).blocker
    assert (blocker.node, blocker.operator) == ("scales", "DynamicQuantizeLinear")


def test_the_node_is_upstream_of_the_output_at_fault():
    text = """(float[N,4] x) => (float[N,4] y, float[N,4] z) {
        [innocent] y = Relu(x) [guilty] z = Softmax<axis=0>(x) }"""
    assert prove(text, {"N": 1}).blocker.node == "guilty"


def test_a_node_that_reads_constants_only_is_not_the_cause():
    text = "(float[N,4] x) => (float[N,4] y) { [constant] c = Neg(w) [mixes] b = Softmax<axis=0>(x) y = Add(b, c) }"
    assert prove(net(text, w=[1.0]), {"N": 1}).blocker.node == "mixes"


def test_a_node_that_keeps_a_frozen_size_is_found():
    text = "(float[1,C,8] x) => (float[1,2,A] y) { [conv] y = Conv(x, w, b) }"
    model = net(text, w=[[[0.5] * 3] * 3] * 2, b=[1.0, 2.0])
    proof = prove(model, {"C": 3}, ())
    assert str(proof.blocker) == "Conv 'conv' with constant 'w' = float[2, 3, 3]", "the weight, not the bias"


def test_a_node_that_the_runtime_names_may_be_gone_from_the_model():
    model = net("(float[N] x) => (float[N] y) { [known] y = Relu(x) }")
    assert named_blocker(model, "known").operator == "Relu"
    fused = named_blocker(model, "fused_by_optimiser")
    assert (fused.node, fused.operator) == ("fused_by_optimiser", "")
    assert named_blocker(model, "") is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("few", "[1, 2]"),
        ("many", "float[17]"),
        ("made", "[3, 4]"),
        ("ints", "[5, 6]"),
        ("sparse", "float[3, 9]"),
        ("x", None),
    ],
)
def test_a_constant_is_described_by_its_elements_or_its_type(name, text):
    model = net(
        """(float[2] x) => (float[2] y) {
            made = Constant<value = int64[2] {3, 4}>() ints = Constant<value_ints = [5, 6]>() y = Relu(x) }""",
        few=[1, 2],
        many=[0.5] * 17,
    )
    values = onnx.helper.make_tensor("sparse", onnx.TensorProto.FLOAT, [1], [1.0])
    indices = onnx.helper.make_tensor("at", onnx.TensorProto.INT64, [1], [4])
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [3, 9]))
    assert constant_text(model, name) == text
