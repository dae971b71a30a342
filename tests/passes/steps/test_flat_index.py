"""What steps share: dims and indices as one number, and who reads a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx_migrate.passes.steps.control_flow import readers, rename_reads
from onnx_migrate.passes.steps.gather import Dims, along, non_negative, to_int64

from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.expressions import Value
from onnx_migrate.rewrite.op import Op
from tests.harness import model
from tests.steps import refuses
from tests.support.written import Written

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
FAR = pytest.mark.parametrize("to", [12, 9, 7])


@FAR
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (lambda dims: dims.some([0, 1, 2]), [2, 3, 4]),
        (lambda dims: dims.some([2, 0]), [4, 2]),
        (lambda dims: dims.product([1, 2]), [12]),
        (lambda dims: dims.product([1]), [3]),
        (lambda dims: dims.product([]), [1]),
        (lambda dims: dims.strides(3), [12, 4, 1]),
        (lambda dims: dims.strides(2), [3, 1]),
        (lambda dims: dims.strides(1), [1]),
        (lambda dims: dims.places(2), [0, 1, 2, 3]),
    ],
)
def test_dims(
    monkeypatch: pytest.MonkeyPatch, of: Callable[[Dims], Value], expected: list[int], static: bool, to: int
) -> None:
    known: list[bool] = []

    def build(op: Op, x: Value) -> Value:
        result = of(Dims(op, x))
        known.append(result.constant is not None)
        return result

    found = Written(monkeypatch).run(build, X, 13, to, static=static, to_type=np.int64)
    assert found.tolist() == expected
    assert known[0] or not static


@FAR
@pytest.mark.parametrize("source", [np.float32, np.int32])
def test_indices_are_counted_from_the_front(monkeypatch: pytest.MonkeyPatch, source: type, to: int) -> None:
    def build(op: Op, x: Value) -> Value:
        typed = op.Cast(x, to={np.float32: 7, np.int32: 6}[source])
        size = op.constant([5])
        return non_negative(op, to_int64(typed), size)

    x = np.array([0, 4, -1, -5, 2], np.float32)
    assert Written(monkeypatch).run(build, x, 13, to, to_type=np.int64).tolist() == [0, 4, 4, 0, 2]


def test_of_known_indices_no_node_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    def build(op: Op, x: Value) -> Value:
        size = op.constant([5])
        before = len(op.rw.preceding)
        front = op.constant([0, 4])
        assert non_negative(op, front, size) is front
        result = non_negative(op, op.constant([-1, 1]), size)
        written.append(len(op.rw.preceding) - before)
        return result

    assert Written(monkeypatch).run(build, X, 13, 9, to_type=np.int64).tolist() == [4, 1]
    assert written == [0]


@FAR
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along(monkeypatch: pytest.MonkeyPatch, axis: int, to: int) -> None:
    def build(op: Op, x: Value) -> Value:
        return along(Dims(op, x).places(axis), axis, 3)

    found = Written(monkeypatch).run(build, X, 13, to, to_type=np.int64)
    assert found.shape == tuple(X.shape[i] if i == axis else 1 for i in range(3))
    assert found.ravel().tolist() == list(range(X.shape[axis]))


def test_a_rank_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(op: Op, x: Value) -> Value:
        shape = op.Cast(x, to=7)
        return Dims(op, op.Reshape(x, shape)).places(0)

    refuses("needs-rank", Written(monkeypatch).run, build, X[0, 0], 13, 9)


SOURCE = """13 (float[2] x, bool c) => (float[2] a, float[2] y) { a = Abs (x) b = Add (x, a) y = If (c) <
    then_branch = t () => (float[2] p) { p = Mul (b, a) },
    else_branch = e () => (float[2] q) {
      d = Neg (b)
      q = If (c) < then_branch = tt () => (float[2] r) { r = Sub (d, a) },
                   else_branch = ee () => (float[2] s) { s = Identity (d) } > } >
}"""
LOOP = """13 (float[2] x, int64 n, bool c) => (float[2] y) { a = Abs (x)
  y = Loop (n, c, a) < body = b (int64 i, bool go, float[2] a) => (bool on, float[2] next)
    { on = Identity (go)  next = Add (a, a) } >
}"""


def _scope(proto: onnx.ModelProto) -> Scope:
    return next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))


def test_readers_are_found_in_all_sub_graphs() -> None:
    scope = _scope(model(SOURCE))

    assert sorted(readers(scope, "a")) == [("", 0), ("Add", 1), ("Mul", 1), ("Sub", 1)]
    assert sorted(readers(scope, "b")) == [("Mul", 0), ("Neg", 0)]
    assert sorted(readers(scope, "c")) == [("If", 0), ("If", 0)]
    assert not list(readers(scope, "y2"))


def test_all_reads_are_renamed() -> None:
    proto = model(SOURCE)

    rename_reads(proto.graph, "a", "z")

    scope = _scope(proto)
    assert not list(readers(scope, "a"))
    assert sorted(readers(scope, "z")) == [("", 0), ("Add", 1), ("Mul", 1), ("Sub", 1)]
    assert [list(node.output) for node in proto.graph.node] == [["a"], ["b"], ["y"]]


def test_a_value_of_the_same_name_inside_a_sub_graph_is_another_one() -> None:
    proto = model(LOOP)
    body = proto.graph.node[1].attribute[0].g

    rename_reads(proto.graph, "a", "z")

    assert list(proto.graph.node[1].input) == ["n", "c", "z"]
    assert list(body.node[1].input) == ["a", "a"]


def test_a_function_has_no_value_infos_to_rename() -> None:
    proto = model("""13 (float[2] x) => (float[2] y) { y = local.F (x) }
<domain: "local", opset_import: ["": 13]> F (x) => (y) { a = Abs (x)  y = Neg (a) }""")

    rename_reads(proto.functions[0], "a", "z")

    assert [list(node.input) for node in proto.functions[0].node] == [["x"], ["z"]]
