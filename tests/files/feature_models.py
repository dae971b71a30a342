"""Models that together use every feature of onnx.proto that reading or writing could lose."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.model.payloads import byte_size

LARGE = 3000
"""Elements of a tensor that is over the inline limit in every type of 2 bytes and more."""

UNKNOWN = b"\xc2\x3e\x03abc" + b"\xc5\x3e\x01\x02\x03\x04" + b"\xc1\x3e12345678" + b"\xc8\x3e\x07"
"""Fields numbered 1000 and 1001, as a newer onnx.proto might have."""


def weight(name: str, seed: int = 0, count: int = LARGE) -> TensorProto:
    """A large FLOAT tensor in raw_data; its bits, NaNs among them, are all of the generator's."""
    data = np.random.default_rng(seed).bytes(4 * count)
    return TensorProto(name=name, dims=[count], data_type=TensorProto.FLOAT, raw_data=data)


def model(
    initializers: list[TensorProto] = (),
    nodes: list[onnx.NodeProto] = (),
    **kwargs: Any,  # type: ignore[assignment]
) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", LARGE])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", LARGE])
    nodes = list(nodes) or [helper.make_node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=list(initializers))
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10, producer_name="tests", **kwargs
    )


def plain() -> onnx.ModelProto:
    return model([weight("w"), weight("v", 1)], [
        helper.make_node("Add", ["x", "w"], ["t"]), helper.make_node("Mul", ["t", "v"], ["y"])
    ])  # fmt: skip


def typed() -> onnx.ModelProto:
    """Every data type, small and large, in typed fields and raw."""
    out = []
    for name, number in TensorProto.DataType.items():
        for elements in (0, 3, 50_000):
            size = byte_size([elements], number)
            if size is not None:  # not a string
                raw = np.random.default_rng(number).bytes(size)
                tensor = TensorProto(
                    name=f"{name}_{elements}", dims=[elements], data_type=number, raw_data=raw
                )
                out.append(tensor)
    values = np.arange(LARGE) % 7
    for number, dim in ((TensorProto.FLOAT, LARGE), (TensorProto.COMPLEX64, LARGE // 2)):
        out += [TensorProto(name=f"f{number}", dims=[dim], data_type=number, float_data=values * 0.5)]
    for number, dim in ((TensorProto.DOUBLE, LARGE), (TensorProto.COMPLEX128, LARGE // 2)):
        out += [TensorProto(name=f"d{number}", dims=[dim], data_type=number, double_data=values * 0.1)]
    for number in (TensorProto.INT32, TensorProto.FLOAT16, TensorProto.INT4, TensorProto.FLOAT8E4M3FN):
        out += [TensorProto(name=f"i{number}", dims=[LARGE], data_type=number, int32_data=values)]
    out.append(TensorProto(name="i64", dims=[LARGE], data_type=TensorProto.INT64, int64_data=-values))
    out.append(TensorProto(name="u64", dims=[LARGE], data_type=TensorProto.UINT64, uint64_data=values))
    out.append(
        TensorProto(name="s", dims=[LARGE], data_type=TensorProto.STRING, string_data=[b"word"] * LARGE)
    )
    return model(out)


def signalling_nan() -> onnx.ModelProto:
    proto = model([TensorProto(name="w", dims=[LARGE], data_type=TensorProto.FLOAT)])
    bits = np.full(LARGE, 0x7FA00001, "<u4").tobytes()
    proto.graph.initializer[0].MergeFromString(b"\x22" + b"\xe0\x5d" + bits)
    return proto


def marked() -> onnx.ModelProto:
    """What onnx.load leaves behind after external data, and stale entries beside data in the tensor."""
    first, second, third = weight("default"), weight("stale", 1), weight("documented", 2)
    first.data_location = TensorProto.DEFAULT
    second.external_data.add(key="location", value="gone.bin")
    second.data_location = TensorProto.DEFAULT
    third.doc_string = "says so"
    third.metadata_props.add(key="location", value="nowhere")
    return model([first, second, third])


def sparse() -> onnx.ModelProto:
    proto = model()
    values = weight("sv")
    indices = numpy_helper.from_array(np.arange(LARGE, dtype=np.int64), "si")
    proto.graph.sparse_initializer.add(values=values, indices=indices, dims=[LARGE * 2])
    node = helper.make_node("Constant", [], ["c"])
    node.attribute.append(helper.make_attribute("sparse_value", proto.graph.sparse_initializer[0]))
    proto.graph.node.append(node)
    return proto


def nested() -> onnx.ModelProto:
    """Tensors in attributes of sub-graphs of sub-graphs, and in lists of tensors and graphs."""
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["k"], value=weight("kv"))],
        "inner",
        [],
        [],
        initializer=[weight("iw", 1)],
    )
    middle = helper.make_graph(
        [helper.make_node("If", ["c"], ["k"], then_branch=inner, else_branch=inner)], "m", [], []
    )
    custom = helper.make_node("Custom", [], ["z"], domain="com.acme")
    custom.attribute.append(helper.make_attribute("many", [weight("a", 2), weight("b", 3)]))
    custom.attribute.append(helper.make_attribute("graphs", [inner, middle]))
    loop = helper.make_node("If", ["c"], ["k2"], then_branch=middle, else_branch=inner)
    return model([], [custom, loop])


def functions() -> onnx.ModelProto:
    body = [
        helper.make_node("Constant", [], ["c"], value=weight("fw")),
        helper.make_node("Add", ["a", "c"], ["b"]),
    ]
    function = helper.make_function(
        "com.acme", "F", ["a"], ["b"], body, [helper.make_opsetid("", 17)], ["alpha"]
    )
    function.attribute_proto.append(helper.make_attribute("table", weight("default", 4)))
    return model([], [helper.make_node("F", ["x"], ["y"], domain="com.acme")], functions=[function])


def training() -> onnx.ModelProto:
    proto = model([weight("w")])
    info = proto.training_info.add()
    info.algorithm.CopyFrom(helper.make_graph([], "alg", [], [], initializer=[weight("state", 5)]))
    info.initialization.SetInParent()
    info.update_binding.add(key="w", value="state")
    return proto


def annotated() -> onnx.ModelProto:
    """Metadata everywhere, types that are not tensors, quantization annotations."""
    proto = model([weight("w")])
    proto.metadata_props.add(key="author", value="me")
    proto.graph.metadata_props.add(key="location", value="a graph's")
    proto.graph.node[0].metadata_props.add(key="namespace", value="/net")
    note = proto.graph.quantization_annotation.add(tensor_name="w")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    kind = proto.graph.output.add(name="m").type
    kind.map_type.key_type = TensorProto.INT64
    kind.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
    proto.graph.output.add(name="o").type.optional_type.elem_type.sequence_type.elem_type.SetInParent()
    proto.graph.value_info.add(name="t").type.denotation = "IMAGE"
    proto.domain, proto.model_version, proto.doc_string = "com.acme", -3, "über"
    return proto


def future() -> onnx.ModelProto:
    """Fields and a type that no onnx of today knows, at every level on the way to a tensor."""
    proto = functions()
    proto.graph.initializer.extend([weight("w"), weight("n", 6)])
    proto.graph.initializer[1].data_type = 99
    for message in (
        proto, proto.graph, proto.graph.initializer[0], proto.graph.node[0], proto.functions[0],
        proto.functions[0].node[0], proto.functions[0].node[0].attribute[0],
        proto.functions[0].node[0].attribute[0].t,
    ):  # fmt: skip
        message.MergeFromString(UNKNOWN)
    return proto


def unusual() -> onnx.ModelProto:
    """An IR 1 attribute without a type, a tensor without a name, one with two data fields, negative dims."""
    proto = model([weight("both"), weight("odd", 1), weight("", 2)])
    proto.graph.initializer[0].float_data.extend([1.0] * LARGE)
    proto.graph.initializer[1].dims[:] = [-1]
    proto.graph.node[0].attribute.add(name="untyped").t.CopyFrom(weight("t", 3))
    return proto


def everywhere() -> onnx.ModelProto:
    """A large tensor in each field of onnx.proto that can hold one, found from the descriptors, six fields deep."""
    proto = model()
    fill(proto, 6)
    return proto


def fill(message: Any, depth: int) -> bool:
    """Set each field of a message through which a tensor can be reached; return whether there was one."""
    if isinstance(message, TensorProto):
        message.CopyFrom(weight("w", depth))
        return True
    filled = False
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None or not depth:
            continue
        value = type(message)()
        inner = getattr(value, field.name)
        if fill(inner.add() if hasattr(inner, "add") else inner, depth - 1):
            message.MergeFrom(value)
            filled = True
    return filled


def with_one_tensor() -> Iterator[onnx.ModelProto]:
    """Yield models that each have one large tensor, every time in another of the fields of `everywhere`."""

    def extended(message: Any, depth: int) -> Iterator[Any]:
        if isinstance(message, TensorProto):
            yield weight("w")
            return
        for field in message.DESCRIPTOR.fields if depth else ():
            if field.message_type is not None:
                value = type(message)()
                inner = getattr(value, field.name)
                repeated = hasattr(inner, "add")
                for filled in extended(inner.add() if repeated else inner, depth - 1):
                    yield type(message)(**{field.name: [filled] if repeated else filled})

    for place in extended(onnx.ModelProto(), 6):
        proto = model()
        proto.MergeFrom(place)
        yield proto


FEATURES: dict[str, Callable[[], onnx.ModelProto]] = {
    make.__name__: make
    for make in (
        plain, typed, signalling_nan, marked, sparse, nested, functions, training, annotated, future, unusual,
        everywhere
    )
}  # fmt: skip


def with_external_data(proto: onnx.ModelProto, path: os.PathLike[str], data: str, threshold: int = 0) -> None:
    """Save `proto` by onnx itself, its data in the file `data` beside it."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    onnx.save(copy, path, save_as_external_data=True, location=data, size_threshold=threshold)
