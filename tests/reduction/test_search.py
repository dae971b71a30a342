"""The search: nodes that are needed together, bodies and functions, sizes, attributes, constants and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.model.graphs import all_nodes
from tests.harness import model
from tests.reduction.harness import FunctionCheck, operators, reduced


def has(*names: str) -> FunctionCheck:
    """Return a check that fails if a model has all these operators, in any body."""
    return FunctionCheck(lambda proto, _: {*names} <= {node.op_type for node in all_nodes(proto)})


def chain(count: int, special: Mapping[int, str]) -> onnx.ModelProto:
    """Return a chain of Neg nodes with other operators at some places."""
    text = " ".join(f"v{place + 1} = {special.get(place, 'Neg')} (v{place})" for place in range(count))
    return model(f"17 (float[4] v0) => (float[4] v{count}) {{ {text} }}")


def test_nodes_far_apart_are_found_in_few_runs() -> None:
    check = has("Relu", "Exp", "Abs")
    found = reduced(chain(400, {10: "Relu", 200: "Exp", 371: "Abs"}), check)

    assert operators(found) == ["Relu", "Exp", "Abs"]
    assert check.runs < 70


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_several_jobs_find_the_same(jobs: int) -> None:
    found = reduced(chain(60, {7: "Relu", 33: "Exp"}), has("Relu", "Exp"), jobs=jobs)

    assert operators(found) == ["Relu", "Exp"]


def leads(proto: onnx.ModelProto, first: str, last: str) -> bool:
    """Return whether a node of the first operator leads to one of the last."""
    reached: set[str] = set()
    for node in proto.graph.node:
        if node.op_type == first or reached.intersection(node.input):
            if node.op_type == last and reached:
                return True
            reached.update(node.output)
    return False


def test_nodes_between_are_bypassed() -> None:
    proto = chain(12, {3: "Relu", 5: "Sigmoid", 8: "Exp"})
    check = FunctionCheck(lambda proto, _: leads(proto, "Relu", "Exp"))

    assert operators(reduced(proto, check)) == ["Relu", "Exp"]


def test_a_diamond_keeps_both_arms() -> None:
    proto = model(
        "17 (float[4] x) => (float[4] y) { a = Relu (x) b = Neg (a) c = Exp (a) d = Add (b, c) e = Abs (d) y = Tanh (e) }"
    )

    def fails(proto: onnx.ModelProto, _: Any) -> bool:
        makers = {name: node.op_type for node in proto.graph.node for name in node.output}
        return any([*map(makers.get, node.input)] == ["Neg", "Exp"] for node in proto.graph.node)

    assert sorted(operators(reduced(proto, FunctionCheck(fails)))) == ["Add", "Exp", "Neg"]


def test_recorded_values_trigger_the_failure_behind_a_cut() -> None:
    """The value 7 occurs only inside the model: an input that is drawn anew would not have it."""
    proto = model(
        "17 (float[1] x) => (float[1] y) <float[1] six = {6.}> { a = Add (x, six) b = Exp (a) c = Neg (b) y = Abs (c) }"
    )

    def fails(proto: onnx.ModelProto, feed: Mapping[str, Any]) -> bool:
        for node in proto.graph.node:
            if node.op_type == "Exp" and node.input[0] in feed:
                return bool((feed[node.input[0]] == 7).all())
        return any(node.op_type == "Exp" for node in proto.graph.node) and "x" in feed

    found = reduced(proto, FunctionCheck(fails), {"x": np.ones(1, np.float32)})

    assert operators(found) == ["Exp"]
    assert found.feed["a"] == 7


def test_shapes_stay_constants_behind_a_cut() -> None:
    """A Reshape whose shape is computed from an input of a fixed size gets the shape as an initializer."""
    proto = model(
        "17 (float[2,6] x) => (float[3,4] y) <int64[1] n = {4}, int64[1] m = {-1}> { s = Shape (x) t = Size (s)"
        " u = Cast <to=7> (m) r = Concat <axis=0> (u, n) a = Relu (x) y = Reshape (a, r) }"
    )
    check = FunctionCheck(
        lambda proto, _: any(
            (node.op_type == "Reshape" and node.input[1] in {tensor.name for tensor in proto.graph.initializer})
            or node.op_type == "Concat"
            for node in proto.graph.node
        ) and any(node.op_type == "Reshape" for node in proto.graph.node)
    )  # fmt: skip

    assert operators(reduced(proto, check)) == ["Reshape"]


IF = """17 (float[4] x, bool c) => (float[4] y) {
  a = Abs (x)
  b = If (c) <then_branch = t () => (float[4] p) { m = Relu (a) n = Exp (m) p = Neg (n) },
              else_branch = e () => (float[4] q) { q = Tanh (a) }>
  y = Sigmoid (b)
}"""

LOOP = """17 (float[4] x, int64 n, bool c) => (float[4] y) {
  a = Abs (x)
  b, s = Loop (n, c, a) <body = l (int64 i, bool k, float[4] h) => (bool k2, float[4] h2, float[4] o) {
    m = Relu (h) z = Sqrt (m) h2 = Exp (z) o = Neg (h2) k2 = Identity (k) }>
  t = ReduceSum <keepdims = 0> (s, axes)
  y = Add (b, t)
}""".replace("(float[4] y) {", "(float[4] y) <int64[1] axes = {0}> {")

SCAN = """17 (float[4] x, float[3,4] r) => (float[4] y) {
  a = Abs (x)
  b, s = Scan <num_scan_inputs = 1, body = l (float[4] h, float[4] e) => (float[4] h2, float[4] o) {
    m = Mul (h, e) z = Exp (m) h2 = Relu (z) o = Neg (h2) }> (a, r)
  y = Tanh (b)
}"""


@pytest.mark.parametrize("text", [IF, LOOP, SCAN], ids=["If", "Loop", "Scan"])
def test_a_node_of_a_body_remains_alone(text: str) -> None:
    feed = {
        "x": np.ones(4, np.float32),
        "c": np.array(True),
        "n": np.array(2),
        "r": np.ones((3, 4), np.float32),
    }
    proto = model(text)
    names = {value.name for value in proto.graph.input}
    found = reduced(proto, has("Exp"), {name: value for name, value in feed.items() if name in names})

    assert operators(found) == ["Exp"]


@pytest.mark.parametrize(
    ("text", "kind"), [(IF, "If"), (LOOP, "Loop"), (SCAN, "Scan")], ids=["If", "Loop", "Scan"]
)
def test_few_nodes_remain_in_a_body_that_is_needed(text: str, kind: str) -> None:
    feed = {
        "x": np.ones(4, np.float32),
        "c": np.array(True),
        "n": np.array(2),
        "r": np.ones((3, 4), np.float32),
    }
    proto = model(text)
    names = {value.name for value in proto.graph.input}
    found = reduced(proto, has("Exp", kind), {name: value for name, value in feed.items() if name in names})

    assert operators(found) == [kind]
    inner = [node.op_type for node in all_nodes(found.proto)][1:]
    assert "Exp" in inner
    assert len(inner) <= 2


def test_functions_are_inlined() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[4] x) => (float[4] y) { a = f.Block (x) y = Neg (a) }
        <domain: "f", opset_import: ["": 17]> Block (i) => (o) { j = Relu (i) k = Exp (j) o = Tanh (k) }"""
    )

    assert operators(reduced(proto, has("Exp"))) == ["Exp"]


def test_a_needed_call_of_a_function_stays() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[4] x) => (float[4] y) { a = f.Block (x) y = Neg (a) }
        <domain: "f", opset_import: ["": 17]> Block (i) => (o) { j = Relu (i) k = Exp (j) o = Tanh (k) }"""
    )
    check = FunctionCheck(lambda proto, _: any(node.domain == "f" for node in proto.graph.node))
    found = reduced(proto, check)

    assert operators(found) == ["Block"]
    assert [node.op_type for node in found.proto.functions[0].node] == ["Tanh"]


CONV = """17 (float[N,8,16,16] x) => (float[N,8,16,16] y) {
  w = ConstantOfShape <value = float[1] {0.5}> (s) b = ConstantOfShape <value = float[1] {2.}> (t) a = Relu (x)
  c = Conv <kernel_shape = [3,3], pads = [1,1,1,1], strides = [1,1], auto_pad = "NOTSET"> (a, w, b) y = Tanh (c)
}""".replace("16] y) {", "16] y) <int64[4] s = {8,8,3,3}, int64[1] t = {8}> {")


def test_inputs_weights_and_attributes_become_small() -> None:
    found = reduced(model(CONV), has("Conv"))

    assert operators(found) == ["Conv"]
    (node,) = found.proto.graph.node
    assert not node.attribute
    assert len(node.input) == 2
    assert found.size[1] == 2


@pytest.mark.parametrize("group", [4, 1])
def test_sizes_that_must_agree_change_together(group: int) -> None:
    """A grouped Conv needs the group's attribute, the weight and the input to agree."""
    proto = model(
        f"17 (float[1,4,8,8] x, float[4,{4 // group},3,3] w) => (float[1,4,6,6] y) {{ y = Conv <group = {group}> (x, w) }}"
    )
    check = FunctionCheck(
        lambda proto, feed: proto.graph.node[0].op_type == "Conv" and feed["x"].shape[1] >= 1
    )

    assert reduced(proto, check).size[1] <= 4


def test_sizes_that_the_failure_needs_stay() -> None:
    proto = model("17 (float[6,10] x) => (float[6,10] y) { a = Relu (x) y = Exp (a) }")
    check = FunctionCheck(lambda proto, feed: any(value.shape[-1] >= 5 for value in feed.values()))
    found = reduced(proto, check)

    assert [value.shape for value in found.feed.values()] == [(1, 5)]


def test_open_dims_stay_open_if_the_failure_needs_them() -> None:
    proto = model("17 (float[N,4] x) => (float[N,4] y) { a = Relu (x) b = Exp (a) y = Neg (b) }")
    check = FunctionCheck(
        lambda proto, _: any(
            dim.dim_param for value in proto.graph.input for dim in value.type.tensor_type.shape.dim
        )
    )
    found = reduced(proto, check)

    assert len(operators(found)) == 1
    assert found.proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"


def test_numbers_become_simple_where_the_failure_stays() -> None:
    proto = model(
        "17 (float[3] x) => (float[3] y) <float[3] w = {0.123, 4.567, -8.901}, float[3] v = {0.123, 4.567, -8.901}>"
        " { a = Mul (x, w) y = Add (a, v) }"
    )

    def fails(proto: onnx.ModelProto, _: Any) -> bool:
        arrays = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
        return "w" in arrays and "v" in arrays and bool((arrays["w"] < -8).any())

    found = reduced(proto, FunctionCheck(fails))
    arrays = {
        tensor.name: onnx.numpy_helper.to_array(tensor).tolist() for tensor in found.proto.graph.initializer
    }

    assert arrays["v"] == [1.0] * len(arrays["v"])
    assert min(arrays["w"]) == pytest.approx(-8.9)


def test_constants_become_initializers_and_a_needed_constant_stays() -> None:
    text = "17 (float[2] x) => (float[2] y) { k = Constant <value = float[2] {3.,4.}> () y = Add (x, k) }"

    assert operators(reduced(model(text), has("Add"))) == ["Add"]
    assert operators(reduced(model(text), has("Add", "Constant"))) == ["Constant", "Add"]


@pytest.mark.parametrize("version", [3, 8])
def test_old_models_that_list_their_initializers(version: int) -> None:
    proto = model(
        "8 (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1.,2.}> { a = Mul (x, w) b = Exp (a) y = Neg (b) }"
    )
    proto.ir_version = version
    found = reduced(proto, has("Mul"), {"x": np.ones(2, np.float32)})

    assert operators(found) == ["Mul"]
    assert "w" not in found.feed


def test_outputs_that_the_failure_needs_stay() -> None:
    proto = model("17 (float[4] x) => (float[4] a, float[4] y) { a = Relu (x) b = Exp (a) y = Neg (b) }")
    both = FunctionCheck(lambda proto, _: {"a", "y"} <= {value.name for value in proto.graph.output})

    assert [value.name for value in reduced(proto, both).proto.graph.output] == ["a", "y"]


def test_several_types() -> None:
    proto = model(
        "17 (float16[4] x, string[2] s) => (bool[4] y, string[4] t) { a = Cast <to = 11> (x) b = Neg (a) i = Cast <to = 7> (b)"
        " z = Cast <to = 9> (i) y = Not (z) t = Concat <axis = 0> (s, s) }"
    )
    feed = {"x": np.ones(4, np.float16), "s": np.array(["a", "b"], object)}

    assert operators(reduced(proto, has("Not"), feed)) == ["Not"]
    assert operators(reduced(proto, has("Concat"), feed)) == ["Concat"]
