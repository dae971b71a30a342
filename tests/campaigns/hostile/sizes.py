"""Models of few nodes whose tensors, strings or dims are too large."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.campaigns.hostile.building import function, graph, model, nested_bytes, node, value, varint
from tests.campaigns.hostile.case import hostile

__all__: list[str] = []


def _constant(name: str, array: object) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


@hostile(4, code="bad-dims")
def dims_whose_product_overflows() -> ModelProto:
    """An initializer of 2^63 · 2^63 elements."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**62, 2**62])
    return model([node("Add", ["x", "w"], ["y"])], initializers=[tensor])


@hostile(4)
def dims_without_data() -> ModelProto:
    """An initializer of 10^15 elements, without data."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[10**15])
    return model([node("Add", ["x", "w"], ["y"])], initializers=[tensor])


@hostile(4)
def attribute_tensor_without_data() -> ModelProto:
    """A Constant of 10^15 elements, without data."""
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[10**9, 10**6])
    return model([node("Constant", [], ["w"], value=tensor), node("Add", ["x", "w"], ["y"])])


@hostile(4)
def attribute_tensor_of_no_elements_and_huge_dims() -> ModelProto:
    """A Constant of 0 · 2^62 · 2^62 elements."""
    tensor = TensorProto(data_type=TensorProto.FLOAT, dims=[0, 2**62, 2**62])
    return model([node("Constant", [], ["w"], value=tensor), node("Add", ["x", "x"], ["y"])])


@hostile(0, 1, 4)
def sparse_tensor_of_a_million_million() -> ModelProto:
    """One value in a tensor of 10^12."""
    values, indices = _constant("w", np.ones(1, np.float32)), _constant("", [5])
    made = model([node("ReduceSum", ["w"], ["r"], keepdims=0), node("Add", ["x", "r"], ["y"])])
    made.graph.sparse_initializer.add(values=values, indices=indices, dims=[10**12])
    return made


@hostile(0, 1, 4)
def sparse_tensor_lowered_to_an_old_file() -> ModelProto:
    """A sparse Constant of 10^12 elements."""
    sparse = helper.make_sparse_tensor(_constant("", np.ones(1, np.float32)), _constant("", [5]), [10**12])
    return model(
        [
            node("Constant", [], ["w"], sparse_value=sparse),
            node("ReduceSum", ["w"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ]
    )


@hostile(0, 1)
def constant_of_a_huge_shape() -> ModelProto:
    """ConstantOfShape of 10^12 elements, all of it constant."""
    return model(
        [
            node("ConstantOfShape", ["n"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
        initializers=[_constant("n", [10**6, 10**6])],
    )


@hostile(0, 1)
def constant_of_a_huge_shape_from_a_symbol() -> ModelProto:
    """ConstantOfShape of a size that is computed from the input."""
    return model(
        [
            node("Shape", ["x"], ["s"]),
            node("Mul", ["s", "n"], ["m"]),
            node("ConstantOfShape", ["m"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
        inputs=[value("x", ("N",))],
        outputs=[value("y", ("N",))],
        initializers=[_constant("n", [10**12])],
    )


@hostile(0, 1)
def expand_to_a_huge_shape() -> ModelProto:
    return model(
        [
            node("Expand", ["x", "n"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
        initializers=[_constant("n", [10**6, 10**6, 2])],
    )


@hostile(0, 1)
def expand_a_constant_to_a_huge_shape() -> ModelProto:
    """A folder of constants would compute 10^11 integers, which a Reshape reads as its shape."""
    return model(
        [
            node("Expand", ["one", "n"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=1),
            node("Reshape", ["x", "r"], ["y"]),
        ],
        outputs=[value("y", None)],
        initializers=[_constant("one", [1]), _constant("n", [10**11])],
    )


@hostile(0, 1)
def tile_to_a_huge_shape() -> ModelProto:
    return model(
        [
            node("Tile", ["one", "n"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
        initializers=[_constant("one", np.ones(4, np.float32)), _constant("n", [10**11])],
    )


@hostile(0, 1)
def range_of_a_million_million() -> ModelProto:
    return model(
        [
            node("Range", ["a", "b", "c"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=1),
            node("Reshape", ["x", "r"], ["y"]),
        ],
        outputs=[value("y", None)],
        initializers=[_constant("a", 0), _constant("b", 10**12), _constant("c", 1)],
    )


@hostile(0, 1)
def one_hot_of_a_huge_depth() -> ModelProto:
    return model(
        [
            node("OneHot", ["i", "depth", "values"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
        initializers=[
            _constant("i", [1, 2]),
            _constant("depth", 10**12),
            _constant("values", np.array([0, 1], np.float32)),
        ],
    )


@hostile(0, 1)
def pad_by_a_huge_number() -> ModelProto:
    return model(
        [
            node("Pad", ["x", "p"], ["k"]),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
        initializers=[_constant("p", [10**11, 10**11])],
    )


@hostile(0, 1)
def resize_by_a_huge_number() -> ModelProto:
    return model(
        [
            node("Resize", ["x", "", "scales"], ["k"], mode="nearest"),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
        inputs=[value("x", (1, 1, 8, 8))],
        outputs=[value("y", (1, 1, 8, 8))],
        initializers=[_constant("scales", np.array([1, 1, 1e6, 1e6], np.float32))],
    )


@hostile(0, 1)
def upsample_by_a_huge_number() -> ModelProto:
    """Of opset 9, which a step rewrites."""
    return model(
        [node("Upsample", ["x", "scales"], ["y"], mode="nearest")],
        inputs=[value("x", (1, 1, 8, 8))],
        outputs=[value("y", None)],
        initializers=[_constant("scales", np.array([1, 1, 1e6, 1e6], np.float32))],
        opset=9,
    )


@hostile(0, 1)
def convolution_with_a_huge_padding() -> ModelProto:
    return model(
        [node("Conv", ["x", "w"], ["y"], pads=[10**6] * 4)],
        inputs=[value("x", (1, 1, 8, 8))],
        outputs=[value("y", None)],
        initializers=[_constant("w", np.ones((1, 1, 3, 3), np.float32))],
    )


@hostile(0, 1)
def input_of_a_huge_declared_shape() -> ModelProto:
    return model(
        [node("Relu", ["x"], ["y"])],
        inputs=[value("x", (10**6, 10**6))],
        outputs=[value("y", (10**6, 10**6))],
    )


@hostile(0, 1)
def matrix_product_of_a_huge_side() -> ModelProto:
    """A column by a row: 10^12 elements from two small inputs."""
    return model(
        [node("MatMul", ["x", "w"], ["k"]), node("ReduceSum", ["k"], ["y"], keepdims=0)],
        inputs=[value("x", (10**6, 1)), value("w", (1, 10**6))],
        outputs=[value("y", ())],
    )


@hostile(0, 1)
def eye_like_and_random_of_a_huge_shape() -> ModelProto:
    return model(
        [
            node("RandomNormal", [], ["k"], shape=[10**6, 10**6]),
            node("ReduceSum", ["k"], ["r"], keepdims=0),
            node("Add", ["x", "r"], ["y"]),
        ],
    )


@hostile(4, code="too-large")
def split_into_a_million() -> ModelProto:
    """A node of a million outputs."""
    outputs = [f"o{index}" for index in range(1_000_000)]
    return model(
        [node("Split", ["x"], outputs, axis=0)],
        inputs=[value("x", (1_000_000,))],
        outputs=[value("o0", (1,))],
    )


@hostile(4, code="invalid-node")
def name_of_8_megabytes_in_a_message() -> ModelProto:
    """A runtime's message holds the name, and patterns that look for a place in it took the square of its length."""
    return model([node("Gelu", ["x"], ["y"], name="n" * 8_000_000)])


@hostile(0)
def name_of_8_megabytes_that_no_runtime_takes() -> ModelProto:
    """As above, of a node that is valid and has no kernel."""
    made = model([node("Own", ["x"], ["y"], "acme", name="a/onnxruntime/b:1 ( " * 400_000)])
    made.opset_import.add(domain="acme", version=1)
    return made


@hostile(4, code="invalid-node")
def scan_of_more_inputs_than_there_are() -> ModelProto:
    """ONNX Runtime allocates for each of 2^62 inputs."""
    body = graph([node("Relu", ["a"], ["b"])], [value("a", ())], [value("b", ())])
    return model([node("Scan", ["x"], ["y"], num_scan_inputs=2**62, body=body)])


@hostile(4, code="bad-dims")
def tensor_of_hundred_thousand_axes() -> ModelProto:
    tensor = TensorProto(name="w", data_type=1, dims=[1] * 100_000, raw_data=b"1234")
    return model([node("Add", ["x", "w"], ["y"])], initializers=[tensor])


@hostile(0, 1, slow=True)
def name_of_64_megabytes() -> ModelProto:
    name = "n" * 2**26
    return model([node("Relu", ["x"], [name]), node("Relu", [name], ["y"])])


@hostile(0, 1, slow=True)
def doc_string_of_a_gigabyte() -> bytes:
    """A field that nothing reads."""
    made = model([node("Relu", ["x"], ["y"])]).SerializeToString()
    return made + nested_bytes([6], b"d" * 2**30)


@hostile(0, 1, slow=True)
def string_attribute_of_half_a_gigabyte() -> bytes:
    """In an operator of another domain, as a plug-in's engine is."""
    attribute = nested_bytes([1], b"engine") + nested_bytes([4], b"e" * 2**29) + varint(20 << 3) + varint(3)
    inner = (
        nested_bytes([1], b"x")
        + nested_bytes([2], b"y")
        + nested_bytes([4], b"Engine")
        + nested_bytes([7], b"acme")
    )
    inner += nested_bytes([5], attribute)
    made = model([], outputs=[value("y")])
    made.opset_import.add(domain="acme", version=1)
    return made.SerializeToString() + nested_bytes([7, 1], inner)


@hostile(0, 1, slow=True)
def string_tensor_of_a_million_words() -> ModelProto:
    tensor = helper.make_tensor("w", TensorProto.STRING, [1_000_000], [b"word"] * 1_000_000)
    return model(
        [node("Identity", ["w"], ["k"]), node("Relu", ["x"], ["y"])],
        initializers=[tensor],
        outputs=[value("y"), value("k", (1_000_000,), TensorProto.STRING)],
    )


@hostile(0, 1, slow=True)
def ints_of_ten_million() -> ModelProto:
    """An attribute of ten million integers."""
    return model(
        [node("Acme", ["x"], ["y"], "acme", numbers=list(range(2_000_000)))],
        functions=[function("G", [node("Relu", ["a"], ["b"])])],
    )


@hostile(0, 1, 4, slow=True)
def perm_of_a_million_axes() -> ModelProto:
    return model([node("Transpose", ["x"], ["y"], perm=list(range(1_000_000)))])


@hostile(0, 1)
def negative_and_huge_axes() -> ModelProto:
    """Axes at the ends of 64 bits."""
    return model(
        [node("Softmax", ["x"], ["s"], axis=-(2**63)), node("Concat", ["s", "s"], ["y"], axis=2**63 - 1)],
        outputs=[value("y", None)],
    )


@hostile(0, 1)
def slice_with_huge_steps() -> ModelProto:
    most = 2**63 - 1
    return model(
        [node("Slice", ["x", "a", "b", "c", "d"], ["y"])],
        outputs=[value("y", None)],
        initializers=[
            _constant("a", [most]),
            _constant("b", [-most - 1]),
            _constant("c", [0]),
            _constant("d", [-most - 1]),
        ],
    )


@hostile(0, 1, slow=True)
def sequence_of_a_huge_length() -> ModelProto:
    """SplitToSequence of a vector that a Loop doubles 60 times."""
    body = graph(
        [node("Concat", ["s", "s"], ["t"], axis=0), node("Identity", ["k"], ["l"])],
        [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s", None)],
        [value("l", (), TensorProto.BOOL), value("t", None)],
    )
    return model(
        [
            node("Loop", ["m", "", "x"], ["w"], body=body),
            node("SplitToSequence", ["w"], ["q"]),
            node("SequenceLength", ["q"], ["y"]),
        ],
        outputs=[value("y", (), TensorProto.INT64)],
        initializers=[_constant("m", 60)],
    )
