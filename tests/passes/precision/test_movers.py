"""Casts stand where fewest are needed: before nodes that only move numbers, or behind them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx_migrate.passes.precision.planning import plan_of
from onnx_migrate.passes.precision.stored import StoredNumbers

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.facts.typed_graph import frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model

F16 = TensorProto.FLOAT16


def converted(nodes: str, **options: object) -> onnx.ModelProto:
    text = f"""13 (float[8,8] x) => (float[8,8] y) <float[8,8] w = {{{", ".join(["0.5"] * 64)}}}, int64[1] a = {{0}},
        int64[1] b = {{4}}, int64[1] c = {{8}}, int64[1] one = {{1}}> {{ {nodes} }}"""
    return make_pass("precision", kind="fp16", **options).run(Model(model(text)), ChangeLog()).proto


def casts(proto: onnx.ModelProto) -> list[tuple[str, str]]:
    """Return the input of each Cast that the pass wrote, and the operator behind it."""
    readers = {name: node.op_type for node in proto.graph.node for name in node.input}
    return [
        (node.input[0], readers.get(node.output[0], ""))
        for node in proto.graph.node
        if node.op_type == "Cast"
    ]


def test_one_cast_stands_before_slices_of_a_kept_value() -> None:
    nodes = """e = Exp (x)  p = Slice (e, a, b)  q = Slice (e, b, c)
        r = MatMul (p, w)  s = MatMul (q, w)  y = Concat <axis = 0> (r, s)"""
    assert casts(converted(nodes, keep=["Exp"]))[0] == ("e", "Slice")
    assert len(casts(converted(nodes, keep=["Exp"]))) == 2


def test_one_cast_stands_behind_what_joins_narrow_values() -> None:
    nodes = """r = MatMul (x, w)  s = MatMul (x, w)  p = Slice (r, a, b)  q = Slice (s, a, b)  j = Concat <axis = 0> (p, q)
        y = Exp (j)"""
    assert [source for source, _ in casts(converted(nodes, keep=["Exp"]))] == ["x", "j"]


def test_a_model_of_movers_alone_becomes_narrow_as_asked() -> None:
    result = converted("t = Transpose (x)  y = Relu (t)")
    assert [node.op_type for node in result.graph.node] == ["Cast", "Transpose", "Relu", "Cast"]


@pytest.mark.parametrize(("rows", "wide"), [(20, False), (400, True)])
def test_the_smallest_weights_of_kept_nodes_stay_if_their_casts_save_few_bytes(rows: int, wide: bool) -> None:
    proto = model(
        "13 (float[1,300] x) => (float[1,300] y) { h = MatMul (x, v)  g = MatMul (h, t)  y = Mul (g, s) }"
    )
    for name, shape in {"v": (300, rows), "t": (rows, 300), "s": (1, 300)}.items():
        values = np.linspace(-1, 1, shape[0] * shape[1], dtype=np.float32).reshape(shape)
        proto.graph.initializer.append(numpy_helper.from_array(values, name))
    frames = frames_of(proto, TypeTable(proto))
    stored = StoredNumbers(Model(proto).weights, F16)

    plan = plan_of(frames, F16, stored, islands={((), "y")})

    assert ("s" in {value.name for value in plan.wide_constants}) == wide
    assert ("s" in {value.name for value in plan.stored_narrow}) != wide
