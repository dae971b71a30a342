"""What is removed after a rewrite: values that lost their last reader, what only they read, and nothing else."""

from __future__ import annotations

import onnx
import onnx.parser

from onnx_migrate.rewrite.dead_values import remove_dead_values


def parse(body: str, initializers: str = "", rest: str = "", inputs: str = "float[2] x") -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17, "own": 1]> g ({inputs}) => (float[2] y) <{initializers}> {body} {rest}'
    )


def outputs(body: onnx.GraphProto | onnx.FunctionProto) -> list[str]:
    return [name for node in body.node for name in node.output]


def test_a_chain_that_only_the_dead_value_read_goes_with_its_constants_and_shapes() -> None:
    proto = parse(
        "{ a = Shape (x) b = Add (a, one) y = Relu (x) }", "int64[1] one = {1}, float[1] other = {2.}"
    )
    proto.graph.value_info.add(name="a")

    removed = remove_dead_values(proto, {"b"})

    assert sorted(removed) == ["a", "b", "one"]
    assert outputs(proto.graph) == ["y"]
    assert [tensor.name for tensor in proto.graph.initializer] == ["other"]
    assert not proto.graph.value_info


def test_a_value_that_is_still_read_stays_and_so_does_a_dead_end_that_was_not_named() -> None:
    proto = parse("{ a = Neg (x) dead = Abs (x) y = Relu (a) }")

    assert remove_dead_values(proto, {"a", "x", "y", "absent"}) == []
    assert outputs(proto.graph) == ["a", "dead", "y"]


def test_a_node_stays_as_long_as_one_of_its_outputs_is_read() -> None:
    proto = parse("{ a, b = Split <axis = 0> (x) y = Concat <axis = 0> (b, b) }")

    assert remove_dead_values(proto, {"a"}) == []
    assert outputs(proto.graph) == ["a", "b", "y"]


def test_readers_and_producers_in_subgraphs_and_functions_count() -> None:
    branches = """<then_branch = t () => (float[2] z) { d = Neg (used) z = Relu (used) },
        else_branch = e () => (float[2] w) { w = Neg (x) }>"""
    proto = parse(
        f"{{ used = Abs (x) unused = Exp (x) y = If {branches} (c) }}",
        rest='<domain: "own", opset_import: ["": 17]> f (p) => (q) { dead = Neg (p) q = Relu (p) }',
        inputs="float[2] x, bool c",
    )

    removed = remove_dead_values(proto, {"used", "unused", "d", "dead"})

    assert sorted(removed) == ["d", "dead", "unused"]
    assert outputs(proto.graph) == ["used", "y"]
    assert outputs(proto.graph.node[-1].attribute[0].g) == ["z"]
    assert outputs(proto.functions[0]) == ["q"]


def test_an_initializer_that_callers_can_override_stays() -> None:
    proto = parse("{ y = Relu (x) }", "float[1] k = {1.}", inputs="float[2] x, float[1] k")

    assert remove_dead_values(proto, {"k"}) == []
    assert [tensor.name for tensor in proto.graph.initializer] == ["k"]


def test_a_dead_sparse_initializer_goes() -> None:
    proto = parse("{ y = Relu (x) }")
    sparse = proto.graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(onnx.helper.make_tensor("s", onnx.TensorProto.FLOAT, [1], [1.0]))
    sparse.indices.CopyFrom(onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [0]))

    assert remove_dead_values(proto, {"s"}) == ["s"]
    assert not proto.graph.sparse_initializer
