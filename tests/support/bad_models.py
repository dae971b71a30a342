"""Models that are broken in one place each: every kind of fault at every place where it can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from tests.support.paths import ROOT

__all__ = ["BadModel", "bad_models", "good_model"]

TEXT = """<ir_version: 9, opset_import: ["": 18, "f": 1]>
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
  k = Constant <value = float[2] {3, 4}> ()
  a = Add (x, w)
  b = f.Block (a)
  d = If (c) <
    then_branch = t () => (float[2] p) <float[2] v = {5, 6}> {
      m = Constant <value = float[2] {7, 8}> ()
      n = Add (b, v)
      o = LeakyRelu <alpha = 0.5> (n)
      p = Add (o, m)
    },
    else_branch = e () => (float[2] q) { q = Neg (b) }
  >
  h = LeakyRelu <alpha = 0.5> (d)
  s = Add (h, sparse)
  y = Add (s, k)
}
<domain: "f", opset_import: ["": 18]>
Block (i) => (r) {
  j = Constant <value = float[2] {9, 10}> ()
  l = LeakyRelu <alpha = 0.5> (i)
  r = Add (l, j)
}"""

MAIN, BRANCH, FUNCTION = "graph", "graph/d:then_branch", "function f:Block"


@dataclass(frozen=True)
class BadModel:
    """A broken model: the fault's name and code, the body it is in ("" for any), and what the message must name."""

    name: str
    code: str
    scope: str
    subject: str
    proto: ModelProto


def good_model() -> ModelProto:
    """Return the model that is broken: it has a sub-graph, a function, a sparse initializer, and tensors in attributes."""
    proto = parser.parse_model(TEXT)
    values = numpy_helper.from_array(np.array([1.0], np.float32), "sparse")
    indices = numpy_helper.from_array(np.array([1]), "")
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    for graph in (proto.graph, branch(proto)):
        graph.value_info.append(helper.make_tensor_value_info(graph.node[-1].input[0], 1, [2]))
    return proto


def branch(proto: ModelProto) -> GraphProto:
    return next(a.g for n in proto.graph.node for a in n.attribute if a.name == "then_branch")


def nodes_of(proto: ModelProto, scope: str) -> list[NodeProto]:
    if scope == FUNCTION:
        return list(proto.functions[0].node)
    return list((proto.graph if scope == MAIN else branch(proto)).node)


def constant(scope: str) -> Callable[[ModelProto], TensorProto]:
    return lambda proto: nodes_of(proto, scope)[0].attribute[0].t


TENSORS: dict[str, tuple[str, str, Callable[[ModelProto], TensorProto]]] = {
    "initializer": (MAIN, "w", lambda proto: proto.graph.initializer[0]),
    "initializer of a branch": (BRANCH, "v", lambda proto: branch(proto).initializer[0]),
    "sparse values": (MAIN, "sparse", lambda proto: proto.graph.sparse_initializer[0].values),
    "attribute": (MAIN, "k", constant(MAIN)),
    "attribute in a branch": (BRANCH, "m", constant(BRANCH)),
    "attribute in a function": (FUNCTION, "j", constant(FUNCTION)),
}
"""The scope, the name in the message, and the tensor."""


def data(**fields: object) -> Callable[[TensorProto], None]:
    """Return what replaces the data, and other fields, of a tensor."""

    def change(tensor: TensorProto) -> None:
        name = tensor.name
        tensor.CopyFrom(TensorProto(name=name, **{"data_type": 1, "dims": [2], **fields}))

    return change


TENSOR_FAULTS: dict[str, tuple[str, Callable[[TensorProto], None]]] = {
    "negative dim": ("bad-dims", data(dims=[-2], float_data=[1, 2])),
    "two negative dims": ("bad-dims", data(dims=[-1, -2], float_data=[1, 2])),
    "dims that overflow": ("bad-dims", data(dims=[2**32, 2**32], float_data=[1, 2])),
    "dims that overflow to 0": ("bad-dims", data(dims=[2**62, 4, 2**62, 4], float_data=[1, 2])),
    "largest dim": ("bad-dims", data(dims=[2**63 - 1], float_data=[1, 2])),
    "too little data": ("data-size", data(float_data=[1])),
    "too much data": ("data-size", data(float_data=[1, 2, 3])),
    "no data": ("data-size", data()),
    "data of an empty tensor": ("data-size", data(dims=[0], float_data=[1])),
    "too little raw data": ("data-size", data(raw_data=b"\0" * 7)),
    "too much raw data": ("data-size", data(raw_data=b"\0" * 12)),
    "raw data of another type": ("data-size", data(data_type=TensorProto.DOUBLE, raw_data=b"\0" * 8)),
    "two forms of data": ("two-data-forms", data(float_data=[1, 2], raw_data=b"\0" * 8)),
    "two typed forms": ("two-data-forms", data(float_data=[1, 2], int32_data=[1, 2])),
    "undefined type": ("no-dtype", data(data_type=0, raw_data=b"\0" * 8)),
    "unknown type": ("unknown-dtype", data(data_type=99, raw_data=b"\0" * 8)),
    "negative type": ("unknown-dtype", data(data_type=-1, raw_data=b"\0" * 8)),
    "field of another type": ("wrong-data-field", data(int64_data=[1, 2])),
    "float16 in float_data": ("wrong-data-field", data(data_type=TensorProto.FLOAT16, float_data=[1, 2])),
    "strings in raw data": ("string-in-raw-data", data(data_type=TensorProto.STRING, raw_data=b"ab")),
}


def attribute_of(node: NodeProto) -> AttributeProto:
    return node.attribute[0]


def retype(node: NodeProto) -> None:
    attribute_of(node).type = AttributeProto.INT


def untype(node: NodeProto) -> None:
    attribute_of(node).ClearField("type")


ATTRIBUTE_FAULTS: dict[str, tuple[str, Callable[[NodeProto], object]]] = {
    "no type": ("bad-attribute", untype),
    "value of another type": ("bad-attribute", retype),
    "unknown type": ("bad-attribute", lambda node: setattr(attribute_of(node), "type", 0)),
    "two values": ("bad-attribute", lambda node: setattr(attribute_of(node), "i", 3)),
    "two lists": ("bad-attribute", lambda node: attribute_of(node).floats.append(3)),
    "tensor without a value": ("bad-attribute", lambda node: node.attribute.add(name="t", type=AttributeProto.TENSOR)),
    "graph without a value": ("bad-attribute", lambda node: node.attribute.add(name="g", type=AttributeProto.GRAPH)),
    "repeated": ("duplicate-attribute", lambda node: node.attribute.append(attribute_of(node))),
    "not of the operator": ("invalid-node", lambda node: node.attribute.append(helper.make_attribute("beta", 1.0))),
    "of a type the operator does not take": (
        "invalid-node",
        lambda node: attribute_of(node).CopyFrom(helper.make_attribute("alpha", "high")),
    ),
}  # fmt: skip


def rename(node: NodeProto, operator: str, inputs: list[str], **attributes: object) -> None:
    changed = helper.make_node(operator, inputs, list(node.output), **attributes)
    node.CopyFrom(changed)


NODE_FAULTS: dict[str, tuple[str, Callable[[NodeProto], object]]] = {
    "reads an undefined name": ("undefined-name", lambda node: node.input.__setitem__(0, "nowhere")),
    "reads itself": ("cycle", lambda node: node.input.__setitem__(0, node.output[0])),
    "has too many inputs": ("invalid-node", lambda node: node.input.extend([node.input[0]] * 3)),
    "has no input": ("invalid-node", lambda node: node.ClearField("input")),
    "has too many outputs": ("invalid-node", lambda node: node.output.extend(["u1", "u2"])),
    "is of a domain that is not imported": ("domain-not-imported", lambda node: setattr(node, "domain", "nobody")),
    "casts to an undefined type": ("no-such-value", lambda node: rename(node, "Cast", [node.input[0]], to=0)),
    "casts to an unknown type": ("no-such-value", lambda node: rename(node, "Cast", [node.input[0]], to=99)),
    "scales by a mode that is none": (
        "no-such-value", lambda node: rename(node, "DepthToSpace", [node.input[0]], blocksize=1, mode="ABC"),
    ),
    "approximates before there is such an operator": (
        "invalid-node", lambda node: rename(node, "Gelu", [node.input[0]], approximate="tanh"),
    ),
}  # fmt: skip
"""Faults of the LeakyRelu that each body has."""

WHERE = {MAIN: "h", BRANCH: "o", FUNCTION: "l"}
"""The name of that node, by its output."""


def relu(proto: ModelProto, scope: str) -> NodeProto:
    return next(node for node in nodes_of(proto, scope) if node.op_type == "LeakyRelu")


def produces(name: str) -> Callable[[ModelProto], None]:
    return lambda proto: proto.graph.node[1].output.__setitem__(0, name)


def second_function(proto: ModelProto) -> None:
    """Let two functions call each other."""
    other = proto.functions.add()
    other.CopyFrom(proto.functions[0])
    other.name = "Other"
    proto.functions[0].opset_import.append(helper.make_opsetid("f", 1))
    other.opset_import.append(helper.make_opsetid("f", 1))
    for function, callee in zip(proto.functions, ("Other", "Block"), strict=True):
        rename(function.node[1], callee, ["i"])
        function.node[1].domain = "f"


def recursion(proto: ModelProto) -> None:
    function = proto.functions[0]
    function.opset_import.append(helper.make_opsetid("f", 1))
    rename(function.node[1], "Block", ["i"])
    function.node[1].domain = "f"


def external(**entries: str) -> Callable[[ModelProto], None]:
    def change(proto: ModelProto) -> None:
        tensor = proto.graph.initializer[0]
        tensor.ClearField("float_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)

    return change


def at_places(indices: list[Any], dims: Sequence[int] = (2,)) -> Callable[[ModelProto], object]:
    """Return a change that gives the sparse initializer these indices, and ones as values."""

    def change(proto: ModelProto) -> None:
        found = proto.graph.sparse_initializer[0]
        found.dims[:] = dims
        found.values.CopyFrom(numpy_helper.from_array(np.ones(len(indices), np.float32), "sparse"))
        found.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64), "places"))

    return change


def sparse(change: Callable[[onnx.SparseTensorProto], object]) -> Callable[[ModelProto], object]:
    return lambda proto: change(proto.graph.sparse_initializer[0])


def numbers(*values: int, dtype: type = np.int64) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype))


def element_type(values: str, number: int, main: bool = True) -> Callable[[ModelProto], object]:
    def change(proto: ModelProto) -> None:
        graph = proto.graph if main else branch(proto)
        getattr(graph, values)[0].type.tensor_type.elem_type = number

    return change


OTHERS: dict[str, tuple[str, str, str, Callable[[ModelProto], object]]] = {
    "main output that nobody produces": (
        "output-not-produced", MAIN, "z", lambda proto: setattr(proto.graph.output[0], "name", "z"),
    ),
    "branch output that nobody produces": (
        "output-not-produced", BRANCH, "z", lambda proto: setattr(branch(proto).output[0], "name", "z"),
    ),
    "function output that nobody produces": (
        "output-not-produced", FUNCTION, "z", lambda proto: proto.functions[0].output.__setitem__(0, "z"),
    ),
    "node writes an input": ("not-ssa", MAIN, "x", produces("x")),
    "node writes an initializer": ("not-ssa", MAIN, "w", produces("w")),
    "two nodes write one value": ("not-ssa", MAIN, "k", produces("k")),
    "one node writes one value twice": (
        "not-ssa", MAIN, "a", lambda proto: proto.graph.node[1].output.append("a"),
    ),
    "two nodes of a branch write one value": (
        "not-ssa", BRANCH, "m", lambda proto: branch(proto).node[1].output.__setitem__(0, "m"),
    ),
    "two nodes of a function write one value": (
        "not-ssa", FUNCTION, "j", lambda proto: proto.functions[0].node[1].output.__setitem__(0, "j"),
    ),
    "two inputs of one name": ("duplicate-name", MAIN, "x", lambda proto: proto.graph.input.append(proto.graph.input[0])),
    "two inputs of a function": ("duplicate-name", FUNCTION, "i", lambda proto: proto.functions[0].input.append("i")),
    "two initializers of one name": (
        "duplicate-initializer", MAIN, "w", lambda proto: proto.graph.initializer.append(proto.graph.initializer[0]),
    ),
    "two initializers of a branch": (
        "duplicate-initializer", BRANCH, "v",
        lambda proto: branch(proto).initializer.append(branch(proto).initializer[0]),
    ),
    "sparse and dense initializer of one name": (
        "duplicate-initializer", MAIN, "w", sparse(lambda item: setattr(item.values, "name", "w")),
    ),
    "function that calls itself": ("recursive-function", FUNCTION, "", recursion),
    "functions that call each other": ("recursive-function", FUNCTION, "", second_function),
    "two functions of one name": (
        "duplicate-function", FUNCTION, "f:Block", lambda proto: proto.functions.append(proto.functions[0]),
    ),
    "function domain not imported": ("domain-not-imported", MAIN, "f", lambda proto: proto.opset_import.pop()),
    "no import at all": ("domain-not-imported", MAIN, "ai.onnx", lambda proto: proto.ClearField("opset_import")),
    "no import of a function": (
        "domain-not-imported", FUNCTION, "ai.onnx", lambda proto: proto.functions[0].ClearField("opset_import"),
    ),
    "opset 0": ("no-such-import", MAIN, "0", lambda proto: setattr(proto.opset_import[0], "version", 0)),
    "opset -1": ("no-such-import", MAIN, "-1", lambda proto: setattr(proto.opset_import[0], "version", -1)),
    "opset 0 of a function": (
        "no-such-import", FUNCTION, "0", lambda proto: setattr(proto.functions[0].opset_import[0], "version", 0),
    ),
    "input without a type": ("no-dtype", MAIN, "x", lambda proto: proto.graph.input[0].ClearField("type")),
    "input of type 0": ("no-dtype", MAIN, "x", element_type("input", 0)),
    "input of type 99": ("unknown-dtype", MAIN, "x", element_type("input", 99)),
    "output of type 0": ("no-dtype", MAIN, "y", element_type("output", 0)),
    "output of type 99": ("unknown-dtype", MAIN, "y", element_type("output", 99)),
    "inner value of type 0": ("no-dtype", MAIN, "s", element_type("value_info", 0)),
    "inner value of type 99": ("unknown-dtype", MAIN, "s", element_type("value_info", 99)),
    "output of a branch of type 0": ("no-dtype", BRANCH, "p", element_type("output", 0, main=False)),
    "output of a branch of type 99": ("unknown-dtype", BRANCH, "p", element_type("output", 99, main=False)),
    "output of another type": ("type-mismatch", MAIN, "y", element_type("output", TensorProto.INT64)),
    "inner value of another type": ("type-mismatch", MAIN, "s", element_type("value_info", TensorProto.INT64)),
    "output of a branch of another type": (
        "type-mismatch", BRANCH, "p", element_type("output", TensorProto.INT64, main=False),
    ),
    "input of another type": ("type-mismatch", MAIN, "a", element_type("input", TensorProto.INT64)),
    "initializer of another type": (
        "type-mismatch", MAIN, "a",
        lambda proto: proto.graph.initializer[0].CopyFrom(helper.make_tensor("w", 7, [2], [1, 2])),
    ),
    "condition that is no bool": (
        "type-mismatch", MAIN, "d",
        lambda proto: setattr(proto.graph.input[1].type.tensor_type, "elem_type", TensorProto.FLOAT),
    ),
    "Clip of a bool": (
        "type-mismatch", MAIN, "h", lambda proto: rename(relu(proto, MAIN), "Clip", ["c"]),
    ),
    "Pad in a mode that none has": (
        "no-such-value", MAIN, "symmetric",
        lambda proto: (proto.graph.initializer.append(helper.make_tensor("pads", 7, [2], [0, 0])),
                       rename(relu(proto, MAIN), "Pad", ["d", "pads"], mode="symmetric")),
    ),
    "ScatterND with a reduction that is none": (
        "no-such-value", MAIN, "divide",
        lambda proto: (proto.graph.initializer.append(helper.make_tensor("at", 7, [2, 1], [0, 1])),
                       rename(relu(proto, MAIN), "ScatterND", ["d", "at", "x"], reduction="divide")),
    ),
    "two nodes in a circle": (
        "cycle", MAIN, "", lambda proto: (proto.graph.node[1].input.__setitem__(0, "y")),
    ),
    "external data without a location": ("missing-data", "", "w", external(length="8")),
    "external data without a folder": ("missing-data", "", "w", external(location="w.bin")),
    "sparse dims negative": ("bad-dims", MAIN, "sparse", sparse(lambda item: item.dims.__setitem__(0, -2))),
    "sparse values in two axes": ("bad-sparse", MAIN, "sparse", sparse(lambda item: item.values.dims.append(1))),
    "sparse indices as floats": (
        "bad-sparse", MAIN, "sparse", sparse(lambda item: item.indices.CopyFrom(numbers(1, dtype=np.float32))),
    ),
    "sparse indices too many": (
        "bad-sparse", MAIN, "sparse", sparse(lambda item: item.indices.CopyFrom(numbers(0, 1))),
    ),
    "sparse indices that do not fit": (
        "data-size", MAIN, "sparse", sparse(lambda item: item.indices.dims.__setitem__(0, 3)),
    ),
    "a sparse index past the end": ("bad-sparse", MAIN, "sparse", at_places([2])),
    "a negative sparse index": ("bad-sparse", MAIN, "sparse", at_places([-1])),
    "sparse coordinates outside one axis": ("bad-sparse", MAIN, "sparse", at_places([[1, 2]], dims=[2, 2])),
    "a sparse index that is given twice": ("bad-sparse", MAIN, "sparse", at_places([1, 1])),
    "sparse coordinates that are given twice": (
        "bad-sparse", MAIN, "sparse", at_places([[1, 0], [0, 1], [1, 0]], dims=[2, 2]),
    ),
    "no graph": ("not-onnx", "", "graph", lambda proto: proto.ClearField("graph")),
    "no IR version": ("not-onnx", "", "ir_version", lambda proto: proto.ClearField("ir_version")),
    "negative IR version": ("not-onnx", "", "ir_version", lambda proto: setattr(proto, "ir_version", -1)),
}  # fmt: skip
"""Code, scope, what the message names, and the change."""

FIXTURES = ("classifier_opset9", "crnn_opset12", "detector_opset13")


def bad_models() -> Iterator[BadModel]:
    """Yield one model for each fault at each place: more than 200."""
    for place, (scope, subject, tensor_of) in TENSORS.items():
        for name, (code, spoil) in TENSOR_FAULTS.items():
            proto = good_model()
            spoil(tensor_of(proto))
            yield BadModel(f"{place}: {name}", code, scope, subject, proto)
    for what, faults in (("attribute", ATTRIBUTE_FAULTS), ("node", NODE_FAULTS)):
        for scope, subject in WHERE.items():
            for name, (code, change) in faults.items():
                proto = good_model()
                change(relu(proto, scope))
                yield BadModel(f"{what} in {scope}: {name}", code, scope, subject, proto)
    for name, (code, scope, subject, alter) in OTHERS.items():
        proto = good_model()
        alter(proto)
        yield BadModel(name, code, scope, subject, proto)
    for fixture in FIXTURES:
        for name in ("negative dim", "no data", "unknown type"):
            proto = onnx.load(ROOT / "fixtures" / f"{fixture}.onnx")
            tensor = proto.graph.initializer[0]
            code, spoil = TENSOR_FAULTS[name]
            spoil(tensor)
            yield BadModel(f"{fixture}: {name}", code, MAIN, tensor.name, proto)
