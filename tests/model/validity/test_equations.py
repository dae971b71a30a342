"""Equations of Einsum: the grammar, the inputs of the node, what functions are handed, and every way into the library."""

from __future__ import annotations

import time
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate import InvalidModel, convert_version
from onnx_migrate.facts.node_inference import infer_node_outputs
from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes
from onnx_migrate.inspection import inspect
from onnx_migrate.model.validity.equations import equation_faults
from onnx_migrate.standard.einsum import Equation, NotAnEquation, parsed
from tests.harness import model


def einsum(equation: str | bytes, *ranks: int) -> onnx.ModelProto:
    """Return a model of one Einsum whose inputs have these ranks, each axis of length 2."""
    names = [f"x{place}" for place in range(len(ranks))]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2] * rank)
        for name, rank in zip(names, ranks, strict=True)
    ]
    node = helper.make_node("Einsum", names, ["y"])
    node.attribute.add(name="equation", type=onnx.AttributeProto.STRING).s = (
        equation if isinstance(equation, bytes) else equation.encode()
    )
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize(
    ("equation", "ranks"),
    [
        ("ij,jk->ik", (2, 2)),
        ("ij , jk -> ik", (2, 2)),
        ("ij,jk", (2, 2)),
        ("...ij,...jk->...ik", (4, 2)),
        ("ii->i", (2,)),
        ("iJ->J", (2,)),
        ("i->", (1,)),
        ("i->...", (1,)),
        ("...i->i", (3,)),
        (". . .i->i", (2,)),
        ("", (0,)),
        ("->", (0,)),
        (",->", (0, 0)),
        ("...", (3,)),
        ("a - > a", (1,)),
    ],
)
def test_an_equation_is_accepted(equation: str, ranks: tuple[int, ...]) -> None:
    assert list(equation_faults(einsum(equation, *ranks))) == []


@pytest.mark.parametrize(
    ("equation", "ranks", "reason"),
    [
        ("a-", (1,), "its equation 'a-' is not one: it has '-' or '>' outside its one '->'"),
        ("a>", (1,), "outside its one '->'"),
        ("a-a", (2,), "outside its one '->'"),
        ("a->a->a", (1,), "outside its one '->'"),
        ("a.b->ab", (2,), "it has a dot outside an ellipsis"),
        ("a.", (1,), "it has a dot outside an ellipsis"),
        ("....", (2,), "it has a dot outside an ellipsis"),
        ("a->a.", (1,), "it has a dot outside an ellipsis"),
        ("......", (2,), "it has two ellipses in one term"),
        ("a...b...->ab", (4,), "it has two ellipses in one term"),
        ("a->......", (1,), "it has two ellipses in one term"),
        ("a->b", (1,), "its result has the label 'b', which no operand has"),
        ("a->aa", (1,), "its result has the label 'a' twice"),
        ("a->a,", (1,), "it has a comma behind '->'"),
        ("é->é", (1,), "it has 'é', and labels are the letters a-z and A-Z"),
        ("a1->a", (2,), "it has '1'"),
        ("a\tb->ab", (2,), r"it has '\t'"),
        ("a\0b->ab", (2,), r"it has '\x00'"),
        (b"\xff->", (1,), "is no text in UTF-8"),
        ("ab->a", (1,), "has the labels 'ab' for input 0, which has 1 axis"),
        ("...ab->a", (1,), "for input 0, which has 1 axis"),
        ("a,,b->ab", (1, 1), "has 3 operands, and the node 2 inputs"),
        ("a->a", (1, 1), "has 1 operand, and the node 2 inputs"),
        ("", (1,), "has the labels '' for input 0, which has 1 axis"),
    ],
)
def test_a_text_that_is_no_equation_is_refused_with_the_reason(
    equation: str | bytes, ranks: tuple[int, ...], reason: str
) -> None:
    (fault,) = equation_faults(einsum(equation, *ranks))
    assert reason in fault.reason
    assert fault.code == "invalid-node"
    assert fault.where is not None
    assert (fault.where.node, fault.where.operator) == ("y", "Einsum")


def test_no_equation_reaches_native_code(tmp_path: Path) -> None:
    """onnx's inference of each of these does not end."""
    proto, path = einsum("a-", 1), tmp_path / "m.onnx"
    onnx.save(proto, path)
    start = time.monotonic()
    with pytest.raises(InvalidModel, match="its equation 'a-' is not one"):
        convert_version(proto, 17)
    assert "its equation 'a-' is not one" in str(inspect(path).refusal)
    with pytest.raises(InferenceError, match="is not one"):
        infer_shapes(proto)
    schema = onnx.defs.get_schema("Einsum", 13)
    with pytest.raises(InferenceError, match="is not one"):
        infer_node_outputs(schema, proto.graph.node[0], {"x0": proto.graph.input[0].type}, {}, {"": 13}, 8)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("place", ["call", "default", "branch"])
def test_an_equation_that_a_function_is_handed_is_refused(place: str) -> None:
    given = "" if place == "default" else '<equation_: string = "a-">'
    proto = model(
        f"""<ir_version: 9, opset_import: ["": 17, "f": 1]>
        g (float[2] x) => (y) {{ y = f.Outer {given} (x) }}
        <domain: "f", opset_import: ["": 17, "f": 1]> Outer <equation_> (a) => (b) {{ b = f.Inner <e: string = @equation_> (a) }}
        <domain: "f", opset_import: ["": 17]> Inner <e> (a) => (b) {{ b = Einsum <equation: string = @e> (a) }}"""
    )
    if place == "default":
        del proto.functions[0].attribute[:]
        proto.functions[0].attribute_proto.append(helper.make_attribute("equation_", "a-"))
    elif place == "branch":
        call = proto.graph.node[0]
        branch = helper.make_graph([call], "b", [], [onnx.ValueInfoProto(name="y")])
        condition = helper.make_node(
            "Constant", [], ["c"], value=helper.make_tensor("", TensorProto.BOOL, [], [1])
        )
        choice = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
        del proto.graph.node[:]
        proto.graph.node.extend([condition, choice])

    reasons = [fault.reason for fault in equation_faults(proto)]

    assert reasons
    assert all("its equation 'a-' is not one" in reason for reason in reasons)


def test_labels_of_a_result_that_is_left_out_are_in_the_order_of_the_alphabet() -> None:
    assert parsed("b...a,b").result == ("...", "a")
    assert parsed("ij->ji") == Equation((("i", "j"),), ("j", "i"))
    with pytest.raises(NotAnEquation):
        parsed("->a")


def test_a_long_equation_is_quoted_in_part() -> None:
    (fault,) = equation_faults(einsum("a," * 5000 + "a-", 1))
    assert len(fault.reason) < 250
