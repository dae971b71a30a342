"""Generated models whose loops turn for long, or whose state grows in each round."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto

from tests.campaigns.hostile.building import graph, model, node, value
from tests.campaigns.hostile.case import Made
from tests.campaigns.hostile.numbers import constant, reading

__all__ = ["loops"]


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
    return body, constant("init", first)


def loops() -> Iterator[tuple[str, Made]]:
    more = [constant("twice", [2]), constant("pads", [0, 1000])]
    for kind, source, power in itertools.product(
        ("add", "concat", "append", "matmul", "tile", "pad"),
        ("stored", "computed", "function", "shape"),
        (10, 26, 40),
    ):
        body, first = _loop_body(kind)
        loop = node("Loop", ["n", "", "init"], ["big"], body=body)
        yield f"loop_{kind}_{source}_{power}", reading(source, "n", 2**power, [loop], [first, *more])
    for rows in (2**16, 2**24, 2**33):
        body = graph(
            [node("Add", ["a", "r"], ["b"]), node("Neg", ["r"], ["o"])],
            [value("a", ()), value("r", ())],
            [value("b", ()), value("o", ())],
        )
        scan = [
            node("ConstantOfShape", ["n"], ["e"]),
            node("Scan", ["z", "e"], ["last", "big"], num_scan_inputs=1, body=body),
        ]
        yield f"scan_{rows}", reading("computed", "n", [rows], scan, [constant("z", np.float32(0))])
    for operator, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        weights = [
            constant("w", np.ones((1, gates * 4, 4), np.float32)),
            constant("r", np.ones((1, gates * 4, 4), np.float32)),
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
            reading("computed", "n", 10, [loop], [constant("init", np.ones(1, np.float32))]),
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
            reading("stored", "last", last, [loop], [constant("init", np.ones(1, np.float32))]),
        )
