"""Three hundred small files that ask for too much: sizes, loops, growth, functions, names, shapes and bytes, from few patterns.

Each is the product of a place where a large number comes from and of what is done with it, so that no kind has one file alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.campaigns.hostile.building import function, graph, model, node, value
from tests.campaigns.hostile.case import Case, Made
from tests.campaigns.hostile.growth import doubling

__all__ = ["GENERATED"]

_ANY = (0, 1, 3, 4)
"""The exit codes of a command that ended by itself: done, refused, not migrated, or not a valid model."""


def _constant(name: str, array: object) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


Source = Callable[[str, np.ndarray], tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]]
"""Returns what gives a value of this name these int64 numbers."""


def _stored(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    return [], [_constant(name, numbers)], []


def _constant_node(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    return [node("Constant", [], [name], value=numpy_helper.from_array(numbers))], [], []


def _computed(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    """The numbers are the sum of their halves."""
    half = numbers // 2
    return (
        [node("Identity", [f"{name}_a"], [f"{name}_i"]), node("Add", [f"{name}_i", f"{name}_b"], [name])],
        [_constant(f"{name}_a", half), _constant(f"{name}_b", numbers - half)],
        [],
    )


def _of_function(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    """A function adds a number to itself."""
    twice = function("Twice", [node("Add", ["a", "a"], ["b"])])
    return (
        [node("Twice", [f"{name}_h"], [f"{name}_t"], "f"), node("Add", [f"{name}_t", f"{name}_r"], [name])],
        [_constant(f"{name}_h", numbers // 2), _constant(f"{name}_r", numbers % 2)],
        [twice],
    )


def _of_shape(
    name: str, numbers: np.ndarray
) -> tuple[list[NodeProto], list[TensorProto], list[onnx.FunctionProto]]:
    """The length of the input, 2, is divided by itself and multiplied."""
    return (
        [
            node("Shape", ["x"], [f"{name}_s"]),
            node("Div", [f"{name}_s", f"{name}_two"], [f"{name}_one"]),
            node("Mul", [f"{name}_one", f"{name}_n"], [f"{name}_m"]),
            node("Reshape", [f"{name}_m", f"{name}_shape"], [name]),
        ],
        [
            _constant(f"{name}_two", np.array([2])),
            _constant(f"{name}_n", numbers.reshape(-1)),
            _constant(f"{name}_shape", np.array(numbers.shape, np.int64)),
        ],
        [],
    )


SOURCES: dict[str, Source] = {
    "stored": _stored,
    "constant": _constant_node,
    "computed": _computed,
    "function": _of_function,
    "shape": _of_shape,
}


def _with(
    source: str, name: str, numbers: object, nodes: list[NodeProto], constants: list[TensorProto]
) -> ModelProto:
    """Return a model in which `nodes` read the numbers and give "big", which is added up and added to the input."""
    made, stored, functions = SOURCES[source](name, np.asarray(numbers, np.int64))
    end = [
        node("ReduceMax", ["big"], ["r"], keepdims=0),
        node("Cast", ["r"], ["c"], to=1),
        node("Add", ["x", "c"], ["y"]),
    ]
    return model([*made, *nodes, *end], initializers=[*stored, *constants], functions=functions)


def _sized(size: int) -> dict[str, tuple[object, list[NodeProto], list[TensorProto]]]:
    """Return operators whose output has `size` elements or more: the numbers that they read as "n", the nodes, other constants."""
    image, one = _constant("w", np.ones((1, 1, 2, 2), np.float32)), _constant("one", np.ones(1, np.float32))
    zero, step = _constant("z", np.int64(0)), _constant("step", np.int64(1))
    return {
        "Expand": ([size], [node("Expand", ["one", "n"], ["big"])], [one]),
        "Tile": ([size], [node("Tile", ["one", "n"], ["big"])], [one]),
        "ConstantOfShape": ([size], [node("ConstantOfShape", ["n"], ["big"])], []),
        "Range": (size, [node("Range", ["z", "n", "step"], ["big"])], [zero, step]),
        "Pad": ([0, size], [node("Pad", ["one", "n"], ["big"])], [one]),
        "OneHot": (
            size,
            [node("OneHot", ["i", "n", "v"], ["big"])],
            [_constant("i", [1]), _constant("v", np.array([0, 1], np.float32))],
        ),
        "Resize": ([1, 1, 1, size], [node("Resize", ["w", "", "", "n"], ["big"], mode="nearest")], [image]),
        "ResizeLinear": ([1, 1, size, 1], [node("Resize", ["w", "", "", "n"], ["big"], mode="linear")], [image]),
        "EyeLike": ([size, 1], [node("ConstantOfShape", ["n"], ["e"]), node("EyeLike", ["e"], ["big"])], []),
        "NonZero": ([size], [node("Expand", ["one", "n"], ["e"]), node("NonZero", ["e"], ["big"])], [one]),
        "CumSum": ([size], [node("Expand", ["one", "n"], ["e"]), node("CumSum", ["e", "z"], ["big"])], [one, zero]),
        "Gather": (
            [size],
            [node("ConstantOfShape", ["n"], ["e"], value=_constant("", np.zeros(1, np.int64))), node("Gather", ["one", "e"], ["big"])],
            [one],
        ),
        "RandomLike": ([size], [node("ConstantOfShape", ["n"], ["e"]), node("RandomNormalLike", ["e"], ["big"])], []),
        "TopK": ([size], [node("ConstantOfShape", ["n"], ["e"]), node("TopK", ["e", "n"], ["big", "places"])], []),
        "Slice": (
            [size],
            [node("ConstantOfShape", ["n"], ["e"]), node("Slice", ["e", "zs", "n"], ["big"])],
            [_constant("zs", [0])],
        ),
    }  # fmt: skip


def _sizes() -> Iterator[tuple[str, Made]]:
    for (source, power), operator in itertools.product(
        (("stored", 28), ("stored", 33), ("computed", 31), ("function", 40), ("shape", 62)), _sized(4)
    ):
        numbers, nodes, constants = _sized(2**power)[operator]
        if operator == "Pad" and source == "shape":
            source = "constant"
        yield f"size_{operator}_{source}_{power}", _with(source, "n", numbers, nodes, constants)
    for power in (14, 20, 31):
        size = 2**power
        image = value("x", (1, 1, 4, 4))
        weight = _constant("w", np.ones((1, 1, 2, 2), np.float32))
        for name, made in (
            ("ConvTranspose", node("ConvTranspose", ["x", "w"], ["y"], strides=[size, size])),
            ("Conv", node("Conv", ["x", "w"], ["y"], pads=[size] * 4)),
            ("MaxPool", node("MaxPool", ["x"], ["y"], kernel_shape=[1, 1], pads=[0, 0, size, size])),
            ("RandomNormal", node("RandomNormal", [], ["y"], shape=[size, size])),
            ("Multinomial", node("Multinomial", ["m"], ["y"], sample_size=size)),
        ):
            constants = [weight] if "Conv" in name else [_constant("m", np.ones((1, 4), np.float32))]
            yield (
                f"attribute_{name}_{power}",
                model([made], [image], [value("y", None, 6 if name == "Multinomial" else 1)], constants),
            )
        yield (
            f"upsample_{power}",
            model(
                [node("Upsample", ["x", "s"], ["y"], mode="nearest")],
                [image],
                [value("y", None)],
                [_constant("s", np.array([1, 1, size, size], np.float32))],
                opset=9,
            ),
        )


def _loop_body(kind: str) -> tuple[onnx.GraphProto, TensorProto]:
    """Return a body, and the initial state of the loop."""
    step = {
        "add": [node("Add", ["s", "s"], ["t"])],
        "concat": [node("Concat", ["s", "s"], ["t"], axis=0)],
        "append": [node("Concat", ["s", "init"], ["t"], axis=0)],
        "matmul": [node("MatMul", ["s", "s"], ["t"])],
        "tile": [node("Tile", ["s", "twice"], ["t"])],
        "pad": [node("Pad", ["s", "pads"], ["t"])],
    }[kind]
    body = graph(
        [*step, node("Identity", ["k"], ["l"])],
        [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s", None)],
        [value("l", (), TensorProto.BOOL), value("t", None)],
    )
    first = np.full((64, 64), 0.01, np.float32) if kind == "matmul" else np.ones(1, np.float32)
    return body, _constant("init", first)


def _loops() -> Iterator[tuple[str, Made]]:
    more = [_constant("twice", [2]), _constant("pads", [0, 1000])]
    for kind, source, power in itertools.product(
        ("add", "concat", "append", "matmul", "tile", "pad"),
        ("stored", "computed", "function", "shape"),
        (10, 26, 40),
    ):
        body, first = _loop_body(kind)
        loop = node("Loop", ["n", "", "init"], ["big"], body=body)
        yield f"loop_{kind}_{source}_{power}", _with(source, "n", 2**power, [loop], [first, *more])
    for rows in (2**16, 2**24, 2**33):
        body = graph([node("Add", ["a", "r"], ["b"]), node("Neg", ["r"], ["o"])], [value("a", ()), value("r", ())], [value("b", ()), value("o", ())])  # fmt: skip
        scan = [
            node("ConstantOfShape", ["n"], ["e"]),
            node("Scan", ["z", "e"], ["last", "big"], num_scan_inputs=1, body=body),
        ]
        yield f"scan_{rows}", _with("computed", "n", [rows], scan, [_constant("z", np.float32(0))])
    for operator, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = [
            _constant("w", np.ones((1, gates * 4, 4), np.float32)),
            _constant("r", np.ones((1, gates * 4, 4), np.float32)),
        ]
        yield (
            f"steps_of_{operator}",
            model(
                [node(operator, ["x", "w", "r"], ["y"], hidden_size=4)],
                [value("x", (2**20, 1, 4))],
                [value("y", None)],
                weights,
            ),
        )
    for depth in (6, 12, 30):
        inner, _ = _loop_body("add")
        for _level in range(depth):
            inner = graph(
                [node("Loop", ["n", "", "s"], ["t"], body=inner), node("Identity", ["k"], ["l"])],
                [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s", None)],
                [value("l", (), TensorProto.BOOL), value("t", None)],
            )
        loop = node("Loop", ["n", "", "init"], ["big"], body=inner)
        yield (
            f"loops_in_loops_{depth}",
            _with("computed", "n", 10, [loop], [_constant("init", np.ones(1, np.float32))]),
        )
    for name, last in (("counter", 2**40), ("endless", 2**63 - 1)):
        body = graph(
            [node("Add", ["s", "s"], ["t"]), node("Less", ["i", "last"], ["l"])],
            [value("i", (), TensorProto.INT64), value("k", (), TensorProto.BOOL), value("s", None)],
            [value("l", (), TensorProto.BOOL), value("t", None)],
        )
        loop = node("Loop", ["", "", "init"], ["big"], body=body)
        yield (
            f"loop_{name}",
            _with("stored", "last", last, [loop], [_constant("init", np.ones(1, np.float32))]),
        )


def _work() -> Iterator[tuple[str, Made]]:
    for side in (2**10, 2**13, 2**15):
        filled = node("ConstantOfShape", ["n"], ["e"], value=_constant("", np.ones(1, np.float32)))
        for name, nodes in (
            ("MatMul", [node("MatMul", ["e", "e"], ["big"])]),
            ("Gemm", [node("Gemm", ["e", "e"], ["big"])]),
            ("Einsum", [node("Einsum", ["e", "e"], ["big"], equation="ij,jk->ik")]),
            (
                "MatMulChain",
                [
                    node("MatMul", ["e", "e"], ["f"]),
                    node("MatMul", ["f", "e"], ["g"]),
                    node("MatMul", ["g", "f"], ["big"]),
                ],
            ),
            ("Softmax", [node("Softmax", ["e"], ["big"])]),
            ("TopKOfConstant", [node("TopK", ["e", "k"], ["big", "places"])]),
        ):
            yield (
                f"work_{name}_{side}",
                _with("computed", "n", [side, side], [filled, *nodes], [_constant("k", [5])]),
            )
    for letters in (8, 16, 26):
        names = [chr(97 + place) for place in range(letters)]
        equation = ",".join(names) + "->" + "".join(names)
        yield (
            f"einsum_of_{letters}",
            model(
                [
                    node("Einsum", ["v"] * letters, ["big"], equation=equation),
                    node("ReduceSum", ["big"], ["r"], keepdims=0),
                    node("Add", ["x", "r"], ["y"]),
                ],
                initializers=[_constant("v", np.ones(16, np.float32))],
            ),
        )
    for place, equation in enumerate(
        (
            "a-",
            "a.b->ab",
            "......",
            "a->a->a",
            "é->é",
            "a->b",
            "ab->a",
            "a,b->ab",
            "a...a...->a",
            "a-->a",
            "a->",
            ">",
            "\0",
        )
    ):
        yield (
            f"equation_{place}",
            model([node("Einsum", ["x"], ["y"], equation=equation)], outputs=[value("y", None)]),
        )
    for boxes in (2**12, 2**16):
        nodes = [
            node("ConstantOfShape", ["n"], ["b"], value=_constant("", np.ones(1, np.float32))),
            node("ConstantOfShape", ["m"], ["s"], value=_constant("", np.ones(1, np.float32))),
            node("NonMaxSuppression", ["b", "s", "most"], ["big"]),
        ]
        yield (
            f"boxes_{boxes}",
            _with(
                "stored", "n", [1, boxes, 4], nodes, [_constant("m", [1, 1, boxes]), _constant("most", boxes)]
            ),
        )


def _growth() -> Iterator[tuple[str, Made]]:
    for count, (name, make) in itertools.product(
        (12, 27, 60),
        (
            ("Concat", lambda a, b: node("Concat", [a, a], [b], axis=0)),
            ("Tile", lambda a, b: node("Tile", [a, "twice"], [b])),
            ("Expand", lambda a, b: node("Unsqueeze", [a, "first"], [b])),
            ("Sum", lambda a, b: node("Add", [a, a], [b])),
        ),
    ):
        nodes, before = [], "x"
        for place in range(count):
            nodes.append(make(before, f"v{place}"))
            before = f"v{place}"
        yield (
            f"chain_of_{name}_{count}",
            model(
                nodes,
                outputs=[value(before, None)],
                initializers=[_constant("twice", [2]), _constant("first", [0])],
            ),
        )
    for count in (20, 60):
        text = _constant("s", np.array(["ab"], np.object_))
        nodes, before = [], "s"
        for place in range(count):
            nodes.append(node("StringConcat", [before, before], [f"v{place}"]))
            before = f"v{place}"
        yield (
            f"chain_of_texts_{count}",
            model(
                [*nodes, node("Relu", ["x"], ["y"])],
                outputs=[value("y"), value(before, (1,), TensorProto.STRING)],
                initializers=[text],
                opset=20,
            ),
        )
    for levels, calls in ((8, 2), (30, 2), (12, 10), (500, 1)):
        yield (
            f"functions_{levels}_{calls}",
            model([node("F0", ["x"], ["y"], "f")], functions=doubling(levels, calls)),
        )
    for levels in (10, 27, 40):
        twice = [
            function(
                f"D{level}",
                [node("Concat", ["a", "a"], ["c"], axis=0), node(f"D{level + 1}", ["c"], ["b"], "f")],
            )
            for level in range(levels)
        ]
        last = function(f"D{levels}", [node("ReduceMax", ["a"], ["b"], keepdims=1)])
        yield (
            f"functions_that_double_{levels}",
            model([node("D0", ["x"], ["y"], "f")], outputs=[value("y", None)], functions=[*twice, last]),
        )
    for ring in (1, 2, 5):
        functions = [
            function(f"R{place}", [node(f"R{(place + 1) % ring}", ["a"], ["b"], "f")])
            for place in range(ring)
        ]
        yield f"functions_in_a_ring_{ring}", model([node("R0", ["x"], ["y"], "f")], functions=functions)


def _names() -> Iterator[tuple[str, Made]]:
    texts = (
        "\0", "\uffff", "\ufffe", "\ud7ff", "\U0010ffff", "\u202e", "a" * 100_000, "../../etc/passwd", "a\nb", "\x1b[31m", "%s%n", "{0}", "$(id)",
        " ", "<script>", "😀", "'\"", "graph", "-o", "\t",
    )  # fmt: skip
    for place, text in enumerate(texts):
        yield f"name_of_a_value_{place}", model([node("Relu", ["x"], [text]), node("Neg", [text], ["y"])])
        yield (
            f"name_of_a_node_{place}",
            model([node("Gelu" if place % 2 else "Relu", ["x"], ["y"], name=text)]),
        )
        if place % 4 == 0:
            yield f"name_of_an_input_{place}", model([node("Relu", [text], ["y"])], [value(text)])
            yield f"name_of_an_operator_{place}", model([node(text, ["x"], ["y"])])
            yield f"name_of_a_dim_{place}", model([node("Relu", ["x"], ["y"])], [value("x", (text,))])


def _shapes() -> Iterator[tuple[str, Made]]:
    for place, dims in enumerate(
        ([-1], [-(2**63)], [2**63 - 1], [0, 2**62], [2**31, 2**31, 2**31], [1] * 5_000, [2**16] * 4, [])
    ):
        yield (
            f"dims_of_an_input_{place}",
            model([node("Relu", ["x"], ["y"])], [value("x", tuple(dims))], [value("y", None)]),
        )
        weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
        yield (
            f"dims_of_a_weight_{place}",
            model([node("Add", ["x", "w"], ["y"])], outputs=[value("y", None)], initializers=[weight]),
        )
    for dims in ((2**26,), (2**14, 2**14), (64, 3, 1024, 1024)):
        yield (
            f"declared_{len(dims)}",
            model([node("Relu", ["x"], ["y"])], [value("x", dims)], [value("y", None)]),
        )


def _bytes() -> Iterator[tuple[str, Made]]:
    whole = model(
        [node("Conv", ["x", "w"], ["c"]), node("Resize", ["c", "", "", "n"], ["y"], mode="nearest")],
        [value("x", (1, 1, 4, 4))],
        [value("y", None)],
        [_constant("w", np.ones((1, 1, 2, 2), np.float32)), _constant("n", [1, 1, 6, 6])],
    ).SerializeToString()
    random = np.random.default_rng(0)
    for number in range(24):
        data = bytearray(whole)
        for place in random.integers(0, len(data), 1 + number % 5):
            data[place] ^= 1 << int(random.integers(0, 8))
        yield f"bits_{number}", bytes(data)
    for cut in (0, 1, 2, 10, len(whole) // 2, len(whole) - 1):
        yield f"cut_{cut}", whole[:cut]
    yield "repeated", whole * 3
    yield "length_of_two_gigabytes", whole + b"\x3a\xff\xff\xff\xff\x07"
    yield "zeros", bytes(100_000)
    yield "ones", b"\xff" * 100_000
    nested = graph([node("Relu", ["x"], ["y"])], [], [value("y")])
    for _ in range(20):
        nested = graph(
            [
                node(
                    "If",
                    ["c"],
                    ["y"],
                    then_branch=nested,
                    else_branch=graph([node("Relu", ["x"], ["y"])], [], [value("y")]),
                )
            ],
            [],
            [value("y")],
        )
    yield (
        "branches_20_deep",
        helper.make_model(
            graph(nested.node, [value("x"), value("c", (), TensorProto.BOOL)], [value("y")]),
            opset_imports=[helper.make_opsetid("", 13)],
            ir_version=8,
        ),
    )


def _cases() -> Iterator[Case]:
    for name, made in itertools.chain(_sizes(), _loops(), _work(), _growth(), _names(), _shapes(), _bytes()):
        data = made if isinstance(made, bytes) else made.SerializeToString()
        yield Case("".join(c if c.isalnum() else "_" for c in name), partial(_data, data), _ANY, "", False)


def _data(data: bytes) -> bytes:
    return data


GENERATED: list[Case] = list(_cases())
"""The files; the same ones each time."""
