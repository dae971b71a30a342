"""Generated models with names, dims and bytes that nobody writes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto, helper

from tests.campaigns.hostile.building import graph, model, node, value
from tests.campaigns.hostile.case import Made
from tests.campaigns.hostile.numbers import constant

__all__ = ["damaged", "dims", "names"]


def names() -> Iterator[tuple[str, Made]]:
    texts = (
        "\0", "\uffff", "\ufffe", "\ud7ff", "\U0010ffff", "\u202e", "a" * 100_000, "../../etc/passwd", "a\nb",
        "\x1b[31m", "%s%n", "{0}", "$(id)",
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


def dims() -> Iterator[tuple[str, Made]]:
    for place, sizes in enumerate(
        ([-1], [-(2**63)], [2**63 - 1], [0, 2**62], [2**31, 2**31, 2**31], [1] * 5_000, [2**16] * 4, [])
    ):
        yield (
            f"dims_of_an_input_{place}",
            model([node("Relu", ["x"], ["y"])], [value("x", tuple(sizes))], [value("y", None)]),
        )
        weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=sizes)
        yield (
            f"dims_of_a_weight_{place}",
            model([node("Add", ["x", "w"], ["y"])], outputs=[value("y", None)], initializers=[weight]),
        )
    for sizes in ((2**26,), (2**14, 2**14), (64, 3, 1024, 1024)):
        yield (
            f"declared_{len(sizes)}",
            model([node("Relu", ["x"], ["y"])], [value("x", sizes)], [value("y", None)]),
        )


def damaged() -> Iterator[tuple[str, Made]]:
    whole = model(
        [node("Conv", ["x", "w"], ["c"]), node("Resize", ["c", "", "", "n"], ["y"], mode="nearest")],
        [value("x", (1, 1, 4, 4))],
        [value("y", None)],
        [constant("w", np.ones((1, 1, 2, 2), np.float32)), constant("n", [1, 1, 6, 6])],
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
