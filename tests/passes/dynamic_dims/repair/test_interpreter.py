"""The interpreter enters bodies and functions, and does not edit what needs no repair."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.harness import model, run
from tests.steps import operators
from tests.support.repairs import check_items, repaired, text

table = importlib.import_module("onnx_migrate.passes.dynamic_dims.repair.rule_table")


def test_a_model_without_frozen_constants_is_not_changed() -> None:
    source = model(
        text("float[1,4] x", "float[1,4] y", "a = Reshape(x, k) y = Relu(a)", "int64[2] k = {-1, 4}")
    )
    before = [node.SerializeToString() for node in source.graph.node]

    result, log = repaired(source, {"x": {0: "N"}})

    assert not log.changes
    assert [node.SerializeToString() for node in result.graph.node] == before


def test_a_loop_carries_the_batch() -> None:
    source = text(
        "float[1,4] x", "float[1,4] y",
        """trips = Constant<value_int=3>() go = Constant<value = bool {1}>()
        y = Loop(trips, go, x) <body = b (int64 i, bool c, float[1,4] s) => (bool d, float[1,4] t) {
          d = Identity(c) k = Constant<value_ints=[1, 2, 2]>() j = Constant<value_ints=[1, 4]>()
          r = Reshape(s, k) m = Transpose<perm=[0,2,1]>(r) n = Reshape(m, j) t = Add(n, s) }>""",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0])

    assert len(reasons) == 2


def test_a_function_called_twice_is_repaired_for_both_calls() -> None:
    source = """<ir_version: 8, opset_import: ["":17, "me":1]>
g (float[1,8] x) => (float[1,2,4] y) { a = me.f(x) b = Relu(x) c = me.f(b) y = Add(a, c) }
<domain: "me", opset_import: ["":17]> f (a) => (b) { k = Constant<value_ints=[1, 2, 4]>() b = Reshape(a, k) }"""

    check_items(source, {"x": 0}, [0])


def test_constants_are_nodes_in_ir_version_3() -> None:
    source = model(
        "9 ir3 (float[1,8] x) => (float[1,2,4] y) { k = Constant<value = int64[3] {1, 2, 4}>() y = Reshape(x, k) }"
    )

    result, _ = repaired(source, {"x": {0: "N"}})

    x = np.ones((3, 8), np.float32)
    assert run(result, {"x": x})[0].shape == (3, 2, 4)
    assert not result.graph.initializer


def test_nodes_that_a_rule_writes_around_its_node_stay_and_a_removed_node_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def surround(context: Any) -> None:
        context.set_input(0, context.rw.before("Neg", [context.rw.input(0)]), "surrounded")
        output = context.rw.output(0)
        context.rw.after("Abs", [context.rw.detach_output(0)], [output])

    def replace(context: Any) -> list[Any]:
        context.rw.after("Exp", [context.rw.input(0)], [context.rw.output(0)])
        context.rw.remove()
        context.rw.note("replaced")
        return [context.input(0)]

    monkeypatch.setitem(table.RULES, ("", "Relu"), surround)
    monkeypatch.setitem(table.RULES, ("", "Sigmoid"), replace)
    source = model(text("float[1,4] x", "float[1,4] y", "a = Relu(x) y = Sigmoid(a)"))

    result, log = repaired(source, {"x": {0: "N"}})

    assert operators(result) == ["Neg", "Relu", "Abs", "Exp"]
    assert [change.emitted for change in log.changes] == [("Neg", "Abs"), ("Exp",)]
    assert [change.reason for change in log.changes] == ["surrounded", "replaced"]
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
    assert np.allclose(run(result, {"x": x})[0], np.ones((3, 4)))
