"""Generated models of few nodes that multiply for hours, or that double a value with each node or call of a function."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from onnx import TensorProto

from tests.campaigns.hostile.building import function, model, node, value
from tests.campaigns.hostile.case import Made
from tests.campaigns.hostile.growth import doubling
from tests.campaigns.hostile.numbers import constant, reading

__all__ = ["growth", "work"]


def work() -> Iterator[tuple[str, Made]]:
    for side in (2**10, 2**13, 2**15):
        filled = node("ConstantOfShape", ["n"], ["e"], value=constant("", np.ones(1, np.float32)))
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
                reading("computed", "n", [side, side], [filled, *nodes], [constant("k", [5])]),
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
                initializers=[constant("v", np.ones(16, np.float32))],
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
            node("ConstantOfShape", ["n"], ["b"], value=constant("", np.ones(1, np.float32))),
            node("ConstantOfShape", ["m"], ["s"], value=constant("", np.ones(1, np.float32))),
            node("NonMaxSuppression", ["b", "s", "most"], ["big"]),
        ]
        yield (
            f"boxes_{boxes}",
            reading(
                "stored", "n", [1, boxes, 4], nodes, [constant("m", [1, 1, boxes]), constant("most", boxes)]
            ),
        )


def growth() -> Iterator[tuple[str, Made]]:
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
                initializers=[constant("twice", [2]), constant("first", [0])],
            ),
        )
    for count in (20, 60):
        text = constant("s", np.array(["ab"], np.object_))
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
