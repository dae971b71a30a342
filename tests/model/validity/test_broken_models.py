"""Models that break one check each: what ONNX Runtime runs of them is mended as it reads it, the rest is refused.

Measured with ONNX Runtime 1.21 and 1.32, which agree in these. `code` is that with which --strict refuses a model, and without
--strict one that ONNX Runtime refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.errors import InvalidModel, LoadError
from tests.harness import model
from tests.support.bad_models import BadModel, bad_models
from tests.support.versions import RUNTIME

Change = Callable[[ModelProto], object]


class Row(NamedTuple):
    """A model in ONNX's text format, a change that breaks it, the code of the fault, and a word of the note on its mending."""

    text: str
    change: Change
    code: str
    says: str = ""


def head(imports: str = '"": 17', ir: int = 8) -> str:
    return f"<ir_version: {ir}, opset_import: [{imports}]> "


MUL = head() + "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul (x, w) }"
MUL_3 = head(ir=3) + "g (float[2] x) => (float[2] y) { y = Mul (x, x) }"
RELU = head() + "g (float[2] x) => (float[2] y) { y = Relu (x) }"
PLAIN = head() + "g (float[2] x) => (float[2] y) { y = Constant <value_float = 2.0> () }"
MAIN = head() + "g (float[2] x) => (float[2] y) { k = Constant <value_float = 2.0> () y = Mul (x, k) }"
OUTPUT = (
    head()
    + "g (float[2] x) => (float[2] y, float[1] k) { k = Constant <value = float[1] {2}> () y = Mul (x, k) }"
)
INNER = (
    head() + "g (float[2] x, bool c) => (float[2] y) { y = If (c) <"
    "then_branch = t () => (float[2] p) { k = Constant <value_float = 2.0> () p = Mul (x, k) },"
    "else_branch = e () => (float[2] q) { q = Neg (x) }> }"
)
CALL = head('"": 17, "f": 1') + "g (float[2] x) => (float[2] y) { y = f.B (x) }"
FUNCTION = (
    CALL
    + '<domain: "f", opset_import: ["": 17]> B (i) => (r) { k = Constant <value_float = 2.0> () r = Mul (i, k) }'
)
LEAKY = CALL + '<domain: "f", opset_import: ["": 17]> B (i) => (r) { r = LeakyRelu <alpha = 0.5> (i) }'
IMAGE = head() + "g (float[1,1,4,4] x) => (float[1,1,h,w] y) <float[1,1,2,2] k = {1, 2, 3, 4}> "
RESIZE = head() + "g (float[1,1,7,4] x) => (float[1,1,h,w] y) <float[4] s = {%s}> "
LOSS = head() + "g (float[2,3] x, int64[2] l) => (float y) "
SCATTER = head() + "g (float[3] x) => (float[3] y) <int64[2] i = {1, 1}, float[2] u = {5, 7}> "
ROI = (
    head() + "g (float[1,1,4,4] x, float[1,4] r, int64[1] l) => (float[1,1,2,2] y) "
    "{ y = RoiAlign <output_height = 2, output_width = 2, %s> (x, r, l) }"
)

FLOAT, INT, TENSOR = AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.TENSOR
PAIR = numpy_helper.from_array(np.array([2, 3], np.float32), "w")
RAW = np.array([7, 8], np.float32).tobytes()


def as_is(proto: ModelProto) -> None:
    """The text itself is broken."""


def constant(proto: ModelProto) -> NodeProto:
    graph = proto.graph.node[0].attribute[0].g if proto.graph.node[0].op_type == "If" else proto.graph
    return next(
        node
        for node in (*graph.node, *(n for f in proto.functions for n in f.node))
        if node.op_type == "Constant"
    )


def attributes(*given: AttributeProto) -> Change:
    def change(proto: ModelProto) -> None:
        node = constant(proto)
        del node.attribute[:]
        node.attribute.extend(given)

    return change


def value(**fields: Any) -> Change:
    """Return a change that gives the Constant a tensor of two floats with these fields."""
    return attributes(
        AttributeProto(name="value", type=TENSOR, t=TensorProto(dims=[2], data_type=1, **fields))
    )


def init(name: str = "w", **fields: Any) -> Change:
    """Return a change that gives the graph one more initializer, or the one of this name other data."""

    def change(proto: ModelProto) -> None:
        found = [tensor for tensor in proto.graph.initializer if tensor.name == name]
        tensor = found[0] if found else proto.graph.initializer.add()
        tensor.CopyFrom(TensorProto(**{"name": name, "dims": [2], "data_type": 1, **fields}))

    return change


def more(field: str, *items: Any) -> Change:
    return lambda proto: getattr(proto.graph, field).extend(items)


def declared(name: str, dtype: int, dims: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, [2] if dims is None else dims)


def node(at: int, **fields: str) -> Change:
    def change(proto: ModelProto) -> None:
        for name, text in fields.items():
            setattr(proto.graph.node[at], name, text)

    return change


def first(*nodes: NodeProto) -> Change:
    def change(proto: ModelProto) -> None:
        for item in reversed(nodes):
            proto.graph.node.insert(0, item)

    return change


def pair(name: str) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=PAIR)


def unused(change: Callable[[onnx.FunctionProto], object]) -> Change:
    """Return a change that adds a function that nothing calls, and breaks it."""

    def spoil(proto: ModelProto) -> None:
        function = proto.functions.add()
        function.CopyFrom(proto.functions[0])
        function.name = "U"
        change(function)

    return spoil


def sparse(indices: list[int]) -> onnx.SparseTensorProto:
    values = numpy_helper.from_array(np.arange(1, len(indices) + 1, dtype=np.float32), "w")
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices)), [2])


def in_place_of_w(item: onnx.SparseTensorProto) -> Change:
    return lambda proto: (proto.graph.ClearField("initializer"), proto.graph.sparse_initializer.append(item))


def int_constant(proto: ModelProto) -> None:
    """`value_float` with an int, as a converter wrote it: ONNX Runtime reads the int, which a Cast makes float."""
    attributes(AttributeProto(name="value_float", i=2, type=INT))(proto)
    proto.graph.node[0].output[0] = "n"
    proto.graph.node.insert(1, helper.make_node("Cast", ["n"], ["k"], to=1))


def branch(proto: ModelProto) -> GraphProto:
    found: GraphProto = proto.graph.node[0].attribute[0].g
    return found


A = AttributeProto
MENDED: dict[str, Row] = {
    # imports
    "com.microsoft": Row(
        RELU, node(0, domain="com.microsoft", op_type="Gelu"), "domain-not-imported", "com.microsoft"
    ),
    "ai.onnx.ml": Row(
        head() + "g (float[1,2] x) => (float[1,2] y) { y = Relu (x) }",
        node(0, domain="ai.onnx.ml", op_type="Binarizer"),
        "domain-not-imported",
        "ai.onnx.ml",
    ),
    "nchwc": Row(
        head() + "g (float[1,16,2,2] x) => (float[1,16,2,2] y) { y = Relu (x) }",
        node(0, domain="com.microsoft.nchwc", op_type="ReorderInput"),
        "domain-not-imported",
        "nchwc",
    ),
    "ai.onnx": Row(
        head('"ai.onnx.ml": 2') + "g (float[2] x) => (float[2] y) { y = Relu (x) }",
        as_is,
        "domain-not-imported",
        "ai.onnx",
    ),
    "com.microsoft in a branch": Row(
        INNER,
        lambda p: branch(p).node.append(helper.make_node("Gelu", ["x"], ["d"], domain="com.microsoft")),
        "domain-not-imported",
        "com.microsoft",
    ),
    "opset 0 of ai.onnx without a node": Row(
        head('"": 17, "com.microsoft": 1') + "g (float[2] x) => (float[2] y) { y = com.microsoft.Gelu (x) }",
        lambda p: setattr(p.opset_import[0], "version", 0),
        "no-such-import",
        "opset 0",
    ),
    # functions that nothing calls
    "unused: undefined name": Row(
        LEAKY, unused(lambda f: f.node[0].input.__setitem__(0, "z")), "undefined-name", "no node calls"
    ),
    "unused: no operator": Row(
        LEAKY, unused(lambda f: setattr(f.node[0], "op_type", "Nope")), "invalid-node", "no node calls"
    ),
    "unused: attribute": Row(
        LEAKY,
        unused(lambda f: f.node[0].attribute.append(helper.make_attribute("z", 1))),
        "invalid-node",
        "no node calls",
    ),
    "unused: attribute without type": Row(
        LEAKY, unused(lambda f: f.node[0].attribute[0].ClearField("type")), "bad-attribute", "no node calls"
    ),
    "unused: two inputs": Row(
        LEAKY, unused(lambda f: f.input.append("i")), "duplicate-name", "no node calls"
    ),
    "unused: twice written": Row(
        LEAKY, unused(lambda f: f.node.append(f.node[0])), "not-ssa", "no node calls"
    ),
    # attributes
    "function: attribute twice": Row(
        LEAKY,
        lambda p: p.functions[0].node[0].attribute.append(helper.make_attribute("alpha", 0.25)),
        "duplicate-attribute",
        "twice",
    ),
    "auto_pad ''": Row(
        IMAGE + '{ y = Conv <auto_pad = "", pads = [1, 1, 0, 0]> (x, k) }', as_is, "no-such-value", "NOTSET"
    ),
    "MaxPool auto_pad ''": Row(
        IMAGE + '{ y = MaxPool <auto_pad = "", kernel_shape = [2, 2]> (x) }', as_is, "no-such-value", "NOTSET"
    ),
    "AveragePool auto_pad ''": Row(
        IMAGE + '{ y = AveragePool <auto_pad = "", kernel_shape = [2, 2]> (x) }',
        as_is,
        "no-such-value",
        "NOTSET",
    ),
    "LpPool auto_pad ''": Row(
        IMAGE + '{ y = LpPool <auto_pad = "", kernel_shape = [2, 2]> (x) }', as_is, "no-such-value", "NOTSET"
    ),
    "ConvTranspose auto_pad ''": Row(
        IMAGE + '{ y = ConvTranspose <auto_pad = ""> (x, k) }', as_is, "no-such-value", "NOTSET"
    ),
    "Resize nearest_mode '', larger": Row(
        RESIZE % "1, 1, 2.5, 2.0" + '{ y = Resize <nearest_mode = ""> (x, , s) }',
        as_is,
        "no-such-value",
        "floor",
    ),
    "Resize nearest_mode '', smaller": Row(
        RESIZE % "1, 1, 0.3, 0.6" + '{ y = Resize <nearest_mode = ""> (x, , s) }',
        as_is,
        "no-such-value",
        "ceil",
    ),
    "Resize nearest_mode '', linear": Row(
        RESIZE % "1, 1, 0.3, 2.0" + '{ y = Resize <mode = "linear", nearest_mode = ""> (x, , s) }',
        as_is,
        "no-such-value",
        "round_prefer_floor",
    ),
    "NLL reduction": Row(
        LOSS + '{ y = NegativeLogLikelihoodLoss <reduction = "x"> (x, l) }', as_is, "no-such-value", "sum"
    ),
    "SCE reduction": Row(
        LOSS + '{ y = SoftmaxCrossEntropyLoss <reduction = ""> (x, l) }', as_is, "no-such-value", "sum"
    ),
    "ScatterElements reduction": Row(
        SCATTER + '{ y = ScatterElements <reduction = "x"> (x, i, u) }', as_is, "no-such-value", "none"
    ),
    "ScatterND reduction": Row(
        SCATTER.replace("[2] i", "[2,1] i") + '{ y = ScatterND <reduction = ""> (x, i, u) }',
        as_is,
        "no-such-value",
        "none",
    ),
    "RoiAlign transformation": Row(
        ROI % 'coordinate_transformation_mode = "x"', as_is, "no-such-value", "output_half_pixel"
    ),
    "RoiAlign mode": Row(ROI % 'mode = "MAX"', as_is, "no-such-value", "max"),
    # Constants
    "Constant: int in value_float": Row(MAIN, int_constant, "invalid-node", "value_int"),
    "Constant: floats in value_float": Row(
        MAIN, attributes(A(name="value_float", floats=[2, 3], type=A.FLOATS)), "invalid-node", "value_floats"
    ),
    "Constant: tensor in value_float": Row(
        MAIN, attributes(A(name="value_float", t=PAIR, type=TENSOR)), "invalid-node", "as value"
    ),
    "Constant: float in value": Row(
        MAIN, attributes(A(name="value", f=3, type=FLOAT)), "invalid-node", "value_float"
    ),
    "Constant: any name": Row(
        MAIN, attributes(A(name="foo", f=3, type=FLOAT)), "invalid-node", "value_float"
    ),
    "Constant: in the wrong field": Row(
        MAIN, attributes(A(name="value_float", i=3, type=FLOAT)), "bad-attribute", "value_float"
    ),
    "Constant: in two fields": Row(
        MAIN, attributes(A(name="value_float", i=3, f=4, type=FLOAT)), "bad-attribute", "value_float"
    ),
    "Constant: two values": Row(
        MAIN,
        attributes(A(name="value_float", f=3, type=FLOAT), A(name="value_int", i=4, type=INT)),
        "invalid-node",
        "value_float",
    ),
    "Constant: one more attribute": Row(
        MAIN,
        attributes(A(name="value_float", f=3, type=FLOAT), A(name="z", i=4, type=INT)),
        "invalid-node",
        "value_float",
    ),
    "Constant: value twice": Row(
        MAIN,
        attributes(A(name="value_float", f=3, type=FLOAT), A(name="value_float", f=4, type=FLOAT)),
        "duplicate-attribute",
        "value_float",
    ),
    "Constant: with an input": Row(
        MAIN, lambda p: constant(p).input.append("x"), "invalid-node", "value_float"
    ),
    "Constant: raw and typed data": Row(
        MAIN, value(float_data=[5, 6], raw_data=RAW), "two-data-forms", "raw_data"
    ),
    "Constant: a segment": Row(
        MAIN, value(float_data=[5, 6], segment=TensorProto.Segment(begin=0, end=2)), "data-size", "segment"
    ),
    "Constant: unused, too few": Row(
        PLAIN.replace("y =", "k =").replace("}", "y = Relu (x) }"),
        value(float_data=[5]),
        "data-size",
        "removed",
    ),
    "Constant: sparse index twice": Row(
        MAIN,
        lambda p: constant(p).CopyFrom(
            helper.make_node("Constant", [], ["k"], sparse_value=sparse([1, 0, 1]))
        ),
        "bad-sparse",
        "twice",
    ),
    "branch Constant: two values": Row(
        INNER,
        attributes(A(name="value_float", f=3, type=FLOAT), A(name="value_int", i=4, type=INT)),
        "invalid-node",
        "value_float",
    ),
    "branch Constant: a segment": Row(
        INNER, value(float_data=[5, 6], segment=TensorProto.Segment(begin=0, end=2)), "data-size", "segment"
    ),
    "function Constant: two fields": Row(
        FUNCTION, attributes(A(name="value_float", i=3, f=4, type=FLOAT)), "bad-attribute", "value_float"
    ),
    "function Constant: one more": Row(
        FUNCTION,
        attributes(A(name="value_float", f=3, type=FLOAT), A(name="z", i=4, type=INT)),
        "invalid-node",
        "value_float",
    ),
    "function Constant: value twice": Row(
        FUNCTION,
        attributes(A(name="value_float", f=3, type=FLOAT), A(name="value_float", f=4, type=FLOAT)),
        "duplicate-attribute",
        "value_float",
    ),
    "function Constant: two data": Row(
        FUNCTION, value(float_data=[5, 6], int32_data=[7]), "two-data-forms", "float_data"
    ),
    # names
    "Constant and initializer": Row(MUL, first(pair("w")), "not-ssa", "a Constant writes"),
    "Constant and input": Row(
        head() + "g (float[2] x, float[2] k) => (float[2] y) { y = Mul (x, k) }",
        first(pair("k")),
        "not-ssa",
        "a Constant writes",
    ),
    "two Constants": Row(
        MAIN, first(helper.make_node("Constant", [], ["k"], value_float=7.0)), "not-ssa", "a Constant writes"
    ),
    "LayerNormalization: misspelt": Row(
        head('"": 13')
        + "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = LayerNormalization (x, w) }",
        lambda p: p.graph.node[0].attribute.append(A(name="epsion", f=0.5, type=FLOAT)),
        "invalid-node",
        "'epsion'",
    ),
    "two initializers": Row(MUL, more("initializer", PAIR), "duplicate-initializer", "the last holds"),
    "initializer listed twice": Row(
        MUL, more("input", declared("w", 1), declared("w", 1)), "duplicate-name", "once"
    ),
    # tensors
    "raw and typed data": Row(
        MUL, init(float_data=[5, 6], raw_data=RAW), "two-data-forms", "raw_data is read"
    ),
    "raw and too little typed data": Row(
        MUL, init(float_data=[5], raw_data=RAW), "two-data-forms", "raw_data is read"
    ),
    "two typed data": Row(
        MUL, init(float_data=[5, 6], double_data=[7]), "two-data-forms", "float_data is read"
    ),
    "a segment": Row(
        MUL, init(float_data=[5, 6], segment=TensorProto.Segment(begin=0, end=2)), "data-size", "segment"
    ),
    "sparse index twice": Row(MUL, in_place_of_w(sparse([1, 0, 1])), "bad-sparse", "twice"),
    "unused: negative dim": Row(MUL, init("u", dims=[-2], float_data=[1, 2]), "bad-dims", "nothing reads"),
    "unused: no data": Row(MUL, init("u"), "data-size", "nothing reads"),
    "unused: other field": Row(MUL, init("u", int64_data=[1, 2]), "wrong-data-field", "nothing reads"),
    "unused: strings": Row(
        MUL, init("u", data_type=8, raw_data=b"ab"), "string-in-raw-data", "nothing reads"
    ),
    "unused and listed": Row(
        MUL_3, lambda p: (init("u")(p), p.graph.input.append(declared("u", 1))), "data-size", "nothing reads"
    ),
    # declared types
    "initializer listed without a type": Row(
        MUL, more("input", onnx.ValueInfoProto(name="w")), "no-dtype", "without a type"
    ),
    "value_info of nothing": Row(MUL, more("value_info", declared("q", 99)), "unknown-dtype", "passed over"),
    "value_info of an initializer": Row(MUL, more("value_info", declared("w", 0)), "no-dtype", "passed over"),
    "value_info of an input": Row(MUL, more("value_info", declared("x", 99)), "unknown-dtype", "passed over"),
    "value_info of an output": Row(
        MUL, more("value_info", declared("y", 99)), "unknown-dtype", "passed over"
    ),
    "value_info of a Constant": Row(
        MAIN, more("value_info", declared("k", 7, [])), "type-mismatch", "passed over"
    ),
    "value_info of a branch's Constant": Row(
        INNER, lambda p: branch(p).value_info.append(declared("k", 7, [])), "type-mismatch", "passed over"
    ),
    "value_info of nothing in a branch": Row(
        INNER, lambda p: branch(p).value_info.append(declared("q", 0)), "no-dtype", "passed over"
    ),
    "output of a Constant": Row(
        OUTPUT,
        lambda p: setattr(p.graph.output[1].type.tensor_type, "elem_type", 7),
        "type-mismatch",
        "declared as tensor(float)",
    ),
    "output of a Constant, a sequence": Row(
        OUTPUT,
        lambda p: p.graph.output[1].type.CopyFrom(
            helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, [2]))
        ),
        "type-mismatch",
        "declared as tensor(float)",
    ),
    "output of a Constant, no type": Row(
        OUTPUT,
        lambda p: setattr(p.graph.output[1].type.tensor_type, "elem_type", 0),
        "no-dtype",
        "declared as tensor(float)",
    ),
    "output of an input": Row(MUL, more("output", declared("x", 0)), "no-dtype", "declared as tensor(float)"),
}

REFUSED: dict[str, Row] = {
    "nobody's domain": Row(RELU, node(0, domain="nobody"), "domain-not-imported"),
    "no import": Row(RELU, lambda p: p.ClearField("opset_import"), "domain-not-imported"),
    "com.microsoft in a function": Row(
        LEAKY, lambda p: setattr(p.functions[0].node[0], "domain", "com.microsoft"), "domain-not-imported"
    ),
    "opset 0": Row(RELU, lambda p: setattr(p.opset_import[0], "version", 0), "no-such-import"),
    "unused: output": Row(LEAKY, unused(lambda f: f.output.__setitem__(0, "z")), "output-not-produced"),
    "unused: no import": Row(LEAKY, unused(lambda f: f.ClearField("opset_import")), "domain-not-imported"),
    "call with more inputs": Row(LEAKY, lambda p: p.graph.node[0].input.append("x"), "invalid-node"),
    "call with more outputs": Row(LEAKY, lambda p: p.graph.node[0].output.append("z"), "invalid-node"),
    "auto_pad": Row(IMAGE + '{ y = Conv <auto_pad = "same"> (x, k) }', as_is, "no-such-value"),
    "ConvTranspose auto_pad '' and pads": Row(
        IMAGE + '{ y = ConvTranspose <auto_pad = "", pads = [1, 1, 1, 1]> (x, k) }', as_is, "no-such-value"
    ),
    "Constant without a value": Row(MAIN, attributes(), "invalid-node"),
    "Constant without a type": Row(MAIN, attributes(A(name="value_float", f=2)), "bad-attribute"),
    "Constant: too few": Row(MAIN, value(float_data=[5]), "data-size"),
    "branch Constant: other field": Row(
        INNER, attributes(A(name="value_float", i=3, type=FLOAT)), "bad-attribute"
    ),
    "branch Constant: two fields": Row(
        INNER, attributes(A(name="value_float", i=3, f=4, type=FLOAT)), "bad-attribute"
    ),
    "branch Constant: other type": Row(
        INNER, attributes(A(name="value_float", i=3, type=INT)), "invalid-node"
    ),
    "branch Constant: two data": Row(INNER, value(float_data=[5, 6], raw_data=RAW), "two-data-forms"),
    "function Constant: two values": Row(
        FUNCTION,
        attributes(A(name="value_float", f=3, type=FLOAT), A(name="value_floats", floats=[4], type=A.FLOATS)),
        "invalid-node",
    ),
    "function Constant: other first": Row(
        FUNCTION,
        attributes(A(name="z", i=3, type=INT), A(name="value_float", f=3, type=FLOAT)),
        "invalid-node",
    ),
    "Constant of another shape than the initializer": Row(
        MUL, first(helper.make_node("Constant", [], ["w"], value_float=7.0)), "duplicate-initializer"
    ),
    "Constant and a node": Row(MAIN, first(helper.make_node("Relu", ["x"], ["k"])), "not-ssa"),
    "initializers of two shapes": Row(
        MUL, more("initializer", numpy_helper.from_array(np.float32([1]), "w")), "duplicate-initializer"
    ),
    "initializers of two types": Row(
        MUL, more("initializer", numpy_helper.from_array(np.array([1, 2]), "w")), "duplicate-initializer"
    ),
    "two inputs": Row(MUL, more("input", declared("x", 1)), "duplicate-name"),
    "raw data empty": Row(MUL, init(raw_data=b"", float_data=[5, 6]), "two-data-forms"),
    "strings in two fields": Row(
        head('"": 19') + 'g (string[2] x) => (bool[2] y) <string[2] w = {"a", "b"}> { y = Equal (x, w) }',
        init(data_type=8, string_data=[b"a", b"b"], raw_data=b"ab"),
        "string-in-raw-data",
    ),
    "too few, a dead node reads it": Row(
        MUL,
        lambda p: (init("u", float_data=[1])(p), p.graph.node.append(helper.make_node("Relu", ["u"], ["d"]))),
        "data-size",
    ),
    "too few, listed": Row(
        MUL, lambda p: (init("u", float_data=[1])(p), p.graph.input.append(declared("u", 1))), "data-size"
    ),
    "unused: no type": Row(MUL, init("u", data_type=0, raw_data=RAW), "no-dtype"),
    "sparse, outside": Row(MUL, in_place_of_w(sparse([0, -7])), "bad-sparse"),
    "value_info of an inner value": Row(
        head() + "g (float[2] x) => (float[2] y) { k = Relu (x) y = Neg (k) }",
        more("value_info", declared("k", 0)),
        "no-dtype",
    ),
    "output": Row(
        RELU, lambda p: setattr(p.graph.output[0].type.tensor_type, "elem_type", 7), "type-mismatch"
    ),
    "branch with an input": Row(INNER, lambda p: branch(p).input.append(declared("q", 1)), "invalid-node"),
    "branch with one more output": Row(
        INNER, lambda p: branch(p).output.append(declared("p", 1)), "invalid-node"
    ),
}

NEVER_RUN: dict[str, Row] = {
    "65 axes": Row(MUL, init(dims=[1] * 64 + [2], float_data=[5, 6]), "bad-dims"),
    "no output": Row(MUL, lambda p: p.graph.ClearField("output"), "output-not-produced"),
    "Split contradicts": Row(
        head('"": 18')
        + "g (float[4] x) => (float[2] y, float[2] z) { y, z = Split <axis = 0, num_outputs = 3> (x) }",
        as_is,
        "invalid-node",
    ),
    "Gelu approximate": Row(
        head('"": 20') + 'g (float[2] x) => (float[2] y) { y = Gelu <approximate = ""> (x) }',
        as_is,
        "no-such-value",
    ),
}
"""What ONNX Runtime loads and no input makes it run."""


def built(row: Row) -> ModelProto:
    proto = model(row.text)
    row.change(proto)
    return proto


def session(proto: ModelProto) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(proto: ModelProto) -> list[Any]:
    loaded, rng = session(proto), np.random.default_rng(0)
    known = {
        "c": np.array(True),
        "l": np.zeros(1, np.int64),
        "r": np.array([[0, 0, 3, 3.5]], np.float32),
    }
    feed = {
        item.name: np.resize(known[item.name], item.shape)
        if item.name in known
        else np.array(["b", "a"], object)
        if item.type == "tensor(string)"
        else rng.standard_normal([dim or 1 for dim in item.shape]).astype(np.float32)
        for item in loaded.get_inputs()
    }
    return [np.array(output) for output in loaded.run(None, feed)]  # one may be the memory of an input


@pytest.mark.parametrize("name", MENDED)
def test_what_onnx_runtime_runs_is_mended_as_it_reads_it(name: str) -> None:
    row = MENDED[name]
    proto = built(row)
    expected = run(proto)
    given = proto.SerializeToString()

    found = onnx_migrate.migrate(proto, verify="off", simplify=False)

    assert proto.SerializeToString() == given
    notes = [note for note in found.report.notes if note.code == "mended"]
    assert any(row.says in note.message for note in notes), notes
    onnx.checker.check_model(found.model)
    for before, after in zip(expected, run(found.model), strict=True):
        np.testing.assert_array_equal(before, after)
    with pytest.raises(InvalidModel) as caught:
        onnx_migrate.migrate(proto, verify="off", strict=True)
    assert caught.value.code == row.code


EARLIER = {
    "Pad wrap": (
        13,
        'g (float[4] x) => (float[n] y) <int64[2] p = {1, 2}> { y = Pad <mode = "wrap"> (x, p) }',
    ),
    "Resize cubic": (
        10,
        "g (float[1,1,4,4] x) => (float[1,1,h,w] y) <float[4] s = {1, 1, 2.5, 2.5}>"
        ' { y = Resize <mode = "cubic"> (x, s) }',
    ),
}
"""Values of attributes that the standard had later, with an opset before."""


@pytest.mark.parametrize("name", EARLIER)
@pytest.mark.parametrize("later", [0, 1, 9])
def test_values_that_onnx_runtime_computes_before_the_standard_had_them(name: str, later: int) -> None:
    opset, graph = EARLIER[name]
    proto, target = model(head(f'"": {opset}') + graph), min(opset + later, onnx.defs.onnx_opset_version())

    found = onnx_migrate.migrate(proto, opset=target, simplify=False, verify="require", isolated=False)

    np.testing.assert_array_equal(run(proto)[0], run(found.model)[0])


@pytest.mark.parametrize("listed", [False, True])
def test_an_initializer_that_nothing_reads_needs_no_data(tmp_path: Path, listed: bool) -> None:
    proto = model(MUL)
    lost = TensorProto(name="u", dims=[2], data_type=1, data_location=TensorProto.EXTERNAL)
    lost.external_data.add(key="location", value="gone.bin")
    proto.graph.initializer.append(lost)
    path = tmp_path / "model.onnx"
    if not listed:
        path.write_bytes(proto.SerializeToString())
        assert ort.InferenceSession(path, providers=["CPUExecutionProvider"])

        found = onnx_migrate.migrate(path, simplify=False, isolated=False)

        assert [note.subject for note in found.report.notes if note.code == "mended"] == ["u"]
        assert [tensor.name for tensor in found.model.graph.initializer] == ["w"]
        return
    proto.graph.input.append(declared("u", 1))  # a caller may override it
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(LoadError) as caught:
        onnx_migrate.migrate(path)
    assert caught.value.code == "missing-data"


PROVED = [name for name in MENDED if not name.startswith("unused:") and "auto_pad" not in name]


@pytest.mark.parametrize("name", PROVED[::4])
def test_the_proof_is_against_what_was_given(name: str) -> None:
    verdict = onnx_migrate.migrate(built(MENDED[name]), verify="require", isolated=False).report.verification

    assert verdict is not None
    assert "nothing was run" not in str(verdict.notes)


def test_inspect_and_verify_take_such_models() -> None:
    proto = built(MENDED["ai.onnx"])
    found = onnx_migrate.inspect(proto, runtime="onnxruntime")
    assert found.refusal is None
    assert found.reachability.opsets
    assert found.advice[0].refusal is None

    verdict = onnx_migrate.compare(proto, onnx_migrate.migrate(proto, verify="off").model, isolated=False)
    assert verdict.kind.value == "verified"


@pytest.mark.parametrize("name", REFUSED)
def test_what_onnx_runtime_refuses_is_refused(name: str) -> None:
    row = REFUSED[name]
    proto = built(row)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        session(proto)

    with pytest.raises(InvalidModel) as caught:
        onnx_migrate.migrate(proto, verify="off")
    assert caught.value.code == row.code


@pytest.mark.parametrize("name", NEVER_RUN)
def test_what_loads_and_never_runs_is_refused(name: str) -> None:
    row = NEVER_RUN[name]
    proto = built(row)
    if RUNTIME >= (1, 32):  # 1.21 runs the Split
        assert session(proto)
        with pytest.raises(Exception, match=r"ONNXRuntimeError|dimensions"):
            run(proto)

    with pytest.raises(InvalidModel) as caught:
        onnx_migrate.migrate(proto, verify="off")
    assert caught.value.code == row.code


RUN_BY_OLDER = {
    "sparse values: data of an empty tensor",
    "sparse values in two axes",
    "sparse indices too many",
    "a sparse index past the end",
    "sparse coordinates outside one axis",
    "two functions of one name",
}
"""What ONNX Runtime 1.21 runs, with values from outside of the tensor or an arbitrary one of two functions, and 1.32 refuses."""

NEEDS_OPSET_19 = {"Pad that wraps before 19"}
"""What the target, opset 18 here, does not have; at opset 19 and above it is migrated."""

ABORTS = ("sparse values", "function that calls", "functions that call")
"""What begins so makes ONNX Runtime 1.21 abort its process."""


@pytest.mark.parametrize("case", list(bad_models()), ids=lambda case: case.name)
def test_what_runs_of_the_bad_models_is_mended_and_the_rest_refused(case: BadModel) -> None:
    runs = False
    if RUNTIME >= (1, 32) or not case.name.startswith(ABORTS):
        try:
            run(case.proto)
            runs = case.name not in RUN_BY_OLDER | NEEDS_OPSET_19
        except Exception:
            pass

    if runs:
        found = onnx_migrate.migrate(case.proto, verify="off", simplify=False)
        assert "mended" in {note.code for note in found.report.notes}
    else:
        with pytest.raises(LoadError):
            onnx_migrate.migrate(case.proto, verify="off", simplify=False)
