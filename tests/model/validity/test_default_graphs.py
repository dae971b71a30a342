"""Graphs that are default values of functions' attributes: checked, counted, and written where nodes refer to them."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import AttributeProto, ModelProto, helper

import onnx_migrate
from onnx_migrate.errors import MigrateError
from tests.harness import model

TEXT = """<ir_version: 9, opset_import: ["": 17, "l": 1]>
g (float[4] x, bool c) => (float[4] y) { y = l.f (x, c) }
<domain: "l", opset_import: ["": 17, "l": 1]>
f (a, c) => (b) { d = Neg (a) b = If (c) <then_branch = t () => (float[4] q) { q = Exp (d) },
                                          else_branch = s () => (float[4] r) { r = Abs (a) }> }"""


def with_default() -> ModelProto:
    """Return a model whose function has the branch of an If as the default of an attribute."""
    proto = model(TEXT)
    function = proto.functions[0]
    reference = next(item for item in function.node[1].attribute if item.name == "then_branch")
    default = function.attribute_proto.add(name="body", type=AttributeProto.GRAPH)
    default.g.CopyFrom(reference.g)
    reference.ClearField("g")
    reference.ref_attr_name = "body"
    return proto


def graph(proto: ModelProto) -> onnx.GraphProto:
    return proto.functions[0].attribute_proto[0].g


def containing_itself(proto: ModelProto) -> None:
    refer = [
        AttributeProto(name=f"{name}_branch", type=AttributeProto.GRAPH, ref_attr_name="body")
        for name in ("then", "else")
    ]
    node = helper.make_node("If", ["c"], ["q"])
    node.attribute.extend(refer)
    graph(proto).node[0].CopyFrom(node)


def doubling(proto: ModelProto) -> None:
    """Let each of 30 default graphs refer to the one before twice."""
    function, inner = proto.functions[0], "body"
    for number in range(30):
        default = function.attribute_proto.add(name=f"body{number}", type=AttributeProto.GRAPH)
        default.g.CopyFrom(graph(proto))
        containing_itself(proto)
        default.g.node[0].CopyFrom(helper.make_node("If", ["c"], ["q"]))
        for name in ("then", "else"):
            default.g.node[0].attribute.add(
                name=f"{name}_branch", type=AttributeProto.GRAPH, ref_attr_name=inner
            )
        inner = f"body{number}"
    graph(proto).node[0].CopyFrom(helper.make_node("Exp", ["d"], ["q"]))
    function.node[1].attribute[0].ref_attr_name = inner


def calling_itself(proto: ModelProto) -> None:
    graph(proto).node[0].CopyFrom(helper.make_node("f", ["a", "c"], ["q"], domain="l"))


REFUSED: dict[str, tuple[Callable[[ModelProto], object], str]] = {
    "it calls its function": (calling_itself, "recursive-function"),
    "it contains itself": (containing_itself, "recursive-function"),
    "it doubles": (doubling, "too-large"),
    "it reads nothing": (lambda p: graph(p).node[0].input.__setitem__(0, "z"), "undefined-name"),
    "a tensor is none": (lambda p: graph(p).initializer.add(name="w", dims=[4], data_type=1, float_data=[1]), "data-size"),
    "its operator is none": (lambda p: setattr(graph(p).node[0], "op_type", "Nope"), "unknown-operator"),
    "its domain is not imported": (lambda p: setattr(graph(p).node[0], "domain", "z"), "domain-not-imported"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_default_graphs_are_checked(name: str) -> None:
    change, code = REFUSED[name]
    proto = with_default()
    change(proto)
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(proto)
    assert caught.value.code == code


@pytest.mark.parametrize("options", [{}, {"opset": 21}, {"opset": 13}, {"control_flow": False}])
def test_default_graphs_are_migrated(options: dict[str, object]) -> None:
    found = onnx_migrate.migrate(with_default(), verify="require", isolated=False, **options)  # type: ignore[arg-type]

    assert any(note.code == "attribute-defaults" for note in found.report.notes)
    assert all(not function.attribute_proto for function in found.model.functions)


def test_older_operators_in_a_default_graph_are_lifted() -> None:
    proto = with_default()
    proto.opset_import[0].version = proto.functions[0].opset_import[0].version = 10
    graph(proto).node[0].CopyFrom(helper.make_node("Clip", ["d"], ["q"], min=0.0))

    found = onnx_migrate.migrate(proto, opset=21, verify="require", isolated=False)

    inner = next(item.g for node in found.model.functions[0].node for item in node.attribute if item.g.node)
    assert not next(node for node in inner.node if node.op_type == "Clip").attribute


def test_a_call_with_a_graph_of_its_own_keeps_it() -> None:
    proto = with_default()
    call = proto.graph.node.add()
    call.CopyFrom(proto.graph.node[0])
    call.output[0] = "own"
    given = call.attribute.add(name="body", type=AttributeProto.GRAPH)
    given.g.CopyFrom(graph(proto))
    given.g.node[0].CopyFrom(helper.make_node("Constant", [], ["q"], value_floats=[1.0, 2.0, 3.0, 4.0]))
    proto.graph.output.add(name="own", type=proto.graph.output[0].type)

    found = onnx_migrate.migrate(proto, verify="require", isolated=False)

    assert [node.op_type for node in found.model.graph.node] == ["f", "f_1"]
