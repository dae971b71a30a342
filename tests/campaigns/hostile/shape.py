"""Graphs that are too deep, too long or too wide."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

from tests.campaigns.hostile.building import graph, model, nested_bytes, node, value
from tests.campaigns.hostile.case import hostile

__all__: list[str] = []


def _nested_ifs(levels: int) -> ModelProto:
    inner: GraphProto = graph([node("Relu", ["x"], [f"t{levels}"])], [], [value(f"t{levels}")])
    for level in range(levels - 1, -1, -1):
        other = graph([node("Relu", ["x"], [f"e{level}"])], [], [value(f"e{level}")])
        name = f"t{level}" if level else "y"
        made = node("If", ["c"], [name], then_branch=inner, else_branch=other)
        inner = graph([made], [], [value(name)])
    return model(inner.node, inputs=[value("x"), value("c", (), TensorProto.BOOL)])


@hostile(0)
def branches_15_deep() -> ModelProto:
    return _nested_ifs(15)


@hostile(0, 1, 4)
def branches_31_deep() -> ModelProto:
    """About as deep as protobuf reads: each level is three messages."""
    return _nested_ifs(31)


@hostile(0, 1, 4)
def branches_32_deep() -> ModelProto:
    return _nested_ifs(32)


def _deep_bytes(levels: int) -> bytes:
    """Return an If in an If, as bytes, without an else branch."""
    head = model([], inputs=[value("x"), value("c", (), TensorProto.BOOL)]).SerializeToString()
    innermost = nested_bytes([1], b"x") + nested_bytes([2], b"y") + nested_bytes([4], b"Relu")
    inner = innermost
    for _ in range(levels):
        # GraphProto.node = 1, in AttributeProto.g = 6, in NodeProto.attribute = 5
        body = (
            nested_bytes([1], inner) + nested_bytes([2], b"g") + nested_bytes([12], nested_bytes([1], b"y"))
        )
        attribute = nested_bytes([1], b"then_branch") + nested_bytes([6], body) + b"\xa0\x01\x05"
        inner = (
            nested_bytes([1], b"c")
            + nested_bytes([2], b"y")
            + nested_bytes([4], b"If")
            + nested_bytes([5], attribute)
        )
    return head + nested_bytes([7, 1], inner)


@hostile(4, code="too-deep")
def branches_33_deep() -> bytes:
    """Deeper than protobuf reads."""
    return _deep_bytes(33)


@hostile(4, code="too-deep")
def branches_34_deep() -> bytes:
    return _deep_bytes(34)


@hostile(4, code="too-deep")
def branches_5000_deep() -> bytes:
    return _deep_bytes(5000)


@hostile(4, slow=True)
def branches_100000_deep_and_padded() -> bytes:
    """So large at each level that a reader that skips small messages goes all the way down."""
    head = model([], inputs=[value("x")]).SerializeToString()
    inner = nested_bytes([2], b"p" * 5000)
    for _ in range(3000):
        inner = nested_bytes([1, 5, 6], inner)
    return head + nested_bytes([7], inner)


@hostile(4)
def groups_in_groups() -> bytes:
    """A million start tags of a deprecated kind of message."""
    head = model([node("Relu", ["x"], ["y"])]).SerializeToString()
    return head + b"\xfb\x07" * 1_000_000


@hostile(4)
def types_in_types() -> bytes:
    """A sequence of a sequence of a sequence, 5,000 deep, as the type of an input."""
    kind = b""
    for _ in range(5000):
        kind = nested_bytes([4, 1], kind)  # TypeProto.sequence_type, Sequence.elem_type
    head = model([node("Relu", ["x"], ["y"])]).SerializeToString()
    return head + nested_bytes([7, 11], nested_bytes([1], b"q") + nested_bytes([2], kind))


@hostile(0, 1, 4)
def types_in_types_48_deep() -> ModelProto:
    """As deep as protobuf reads them."""
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    for _ in range(47):
        kind = helper.make_sequence_type_proto(kind)
    made = model([node("Relu", ["x"], ["y"])])
    made.graph.input.append(helper.make_value_info("q", kind))
    return made


@hostile(0)
def functions_50_deep() -> ModelProto:
    from tests.campaigns.hostile.growth import doubling

    return model([node("F0", ["x"], ["y"], "f")], functions=doubling(50, 1))


@hostile(0, slow=True)
def chain_of_hundred_thousand() -> ModelProto:
    nodes, name = [], "x"
    for index in range(100_000):
        nodes.append(node("Relu", [name], [f"v{index}"]))
        name = f"v{index}"
    return model(nodes, outputs=[value(name)])


@hostile(0, 1, slow=True)
def chain_of_hundred_thousand_upside_down() -> ModelProto:
    """The nodes are listed from the last to the first."""
    made = chain_of_hundred_thousand()
    nodes = list(made.graph.node)[::-1]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


@hostile(0, 1, slow=True)
def chain_of_shape_arithmetic() -> ModelProto:
    """100,000 Adds between a Shape and a Reshape, followed by a Resize that asks for what is known."""
    one = numpy_helper.from_array(np.array([0]), "zero")
    nodes, name = [node("Shape", ["x"], ["s"])], "s"
    for index in range(100_000):
        nodes.append(node("Add", [name, "zero"], [f"a{index}"]))
        name = f"a{index}"
    nodes += [node("Reshape", ["x", name], ["r"]), node("Resize", ["r", "", "", name], ["y"], mode="nearest")]
    return model(
        nodes, inputs=[value("x", (1, 1, 4, 4))], outputs=[value("y", (1, 1, 4, 4))], initializers=[one]
    )


@hostile(0, 1, slow=True)
def node_of_hundred_thousand_inputs() -> ModelProto:
    return model([node("Sum", ["x"] * 100_000, ["y"])])


@hostile(0, 1, slow=True)
def model_of_a_million_inputs() -> ModelProto:
    inputs = [value(f"i{index}", ()) for index in range(1_000_000)]
    return model([node("Relu", ["x"], ["y"])], inputs=[value("x"), *inputs])


@hostile(0, 1, slow=True)
def model_of_hundred_thousand_outputs() -> ModelProto:
    count = 100_000
    nodes = [node("Relu", ["x"], [f"o{index}"]) for index in range(count)]
    return model(nodes, outputs=[value(f"o{index}") for index in range(count)])


@hostile(0, 1, slow=True)
def million_initializers() -> ModelProto:
    one = np.ones((), np.float32).tobytes()
    tensors = [TensorProto(name=f"w{index}", data_type=1, raw_data=one) for index in range(1_000_000)]
    return model([node("Relu", ["x"], ["y"])], initializers=tensors)


@hostile(1, 4, slow=True)
def ten_million_empty_nodes() -> bytes:
    """20 MB on disk, and gigabytes as Python objects."""
    head = model([node("Relu", ["x"], ["y"])]).SerializeToString()
    return head + nested_bytes([7], b"\x0a\x00" * 10_000_000)


@hostile(1, 4, slow=True)
def fifty_million_empty_imports() -> bytes:
    """100 MB of opset imports without content."""
    return model([node("Relu", ["x"], ["y"])]).SerializeToString() + b"\x42\x00" * 50_000_000


@hostile(0, 1, 4, slow=True)
def million_metadata_entries() -> ModelProto:
    made = model([node("Relu", ["x"], ["y"])])
    for index in range(1_000_000):
        made.metadata_props.add(key=f"k{index}", value="v")
    return made


@hostile(4)
def cycle_of_hundred_thousand() -> ModelProto:
    count = 100_000
    nodes = [node("Relu", [f"v{(index or count) - 1}"], [f"v{index}"]) for index in range(count)]
    return model([*nodes, node("Relu", ["v0"], ["y"])])


@hostile(4)
def cycle_through_a_branch() -> ModelProto:
    """A branch reads what follows from the If."""
    branches = {
        f"{which}_branch": graph([node("Relu", ["z"], [which])], [], [value(which)])
        for which in ("then", "else")
    }
    return model(
        [node("If", ["c"], ["y"], **branches), node("Relu", ["y"], ["z"])],
        inputs=[value("x"), value("c", (), TensorProto.BOOL)],
    )


@hostile(0, 1, slow=True)
def wide_branches() -> ModelProto:
    """2,000 Ifs whose branches read 200 outer values each."""
    names = [f"v{index}" for index in range(200)]
    nodes: list[onnx.NodeProto] = [node("Relu", ["x"], [name]) for name in names]
    for index in range(2_000):
        branches = {
            f"{which}_branch": graph(
                [node("Sum", names, [f"{which}{index}"])], [], [value(f"{which}{index}")]
            )
            for which in ("then", "else")
        }
        nodes.append(node("If", ["c"], [f"y{index}"], **branches))
    nodes.append(node("Relu", ["y1999"], ["y"]))
    return model(nodes, inputs=[value("x"), value("c", (), TensorProto.BOOL)])
