"""Models without an open dim: sizes asked for, shape arithmetic folded, and what keeps a size open named."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_migrate
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.scope import scopes
from tests.harness import model

SHAPES = """17 (float[N,3,H,W] x) => (float[A,B] y) <int64[1] one = {-1}, int64 zero = {0}, int64[1] axes = {0}> {
  s = Shape(x)
  n = Gather(s, zero)
  u = Unsqueeze(n, axes)
  c = Concat<axis = 0>(u, one)
  y = Reshape(x, c)
}"""

PADDED = """17 (float[N,4] x) => (float[A,B] y)
  <int64 zero = {0}, int64[1] axes = {0}, int64[3] rest = {0, 1, 0}, float four = {4.0}> {
  s = Shape(x)
  n = Gather(s, zero)
  f = Cast<to = 1>(n)
  d = Div(f, four)
  e = Ceil(d)
  i = Cast<to = 7>(e)
  u = Unsqueeze(i, axes)
  p = Concat<axis = 0>(u, rest)
  y = Pad(x, p)
}"""

NET = """17 (float[N,4] x, int64[M] i) => (float[N,4] y, int64[M] j) { y = Relu(x)  j = Neg(i) }"""


def static(source: str, **options: Any) -> onnx_migrate.Migration:
    return onnx_migrate.migrate(model(source), static=True, simplify=False, verify="require", **options)


def operators(migration: onnx_migrate.Migration) -> list[str]:
    return [node.op_type for node in migration.model.graph.node if node.op_type != "Constant"]


def all_shapes(proto: onnx.ModelProto) -> list[tuple[int | None, ...] | None]:
    scope = scopes(proto, None, result_ir_version=8)[0]  # type: ignore[arg-type]
    return [scope.value_type(name).shape for node in proto.graph.node for name in node.output]


@pytest.mark.parametrize(
    ("source", "fix", "left", "shape"),
    [
        (SHAPES, "x:2,3,4,5", ["Reshape"], (2, 60)),
        (PADDED, "N=6", ["Pad"], (9, 4)),
        (PADDED, "N=8", ["Pad"], (11, 4)),
    ],
)
def test_shape_arithmetic_is_folded_and_every_value_has_a_shape(
    source: str, fix: str, left: list[str], shape: tuple[int, ...]
) -> None:
    migration = static(source, fix=fix)
    assert operators(migration) == left
    assert all_shapes(migration.model)[-1] == shape
    assert [dim.dim_value for dim in migration.model.graph.output[0].type.tensor_type.shape.dim] == [*shape]


def test_values_of_more_than_1024_elements_stay_computed() -> None:
    source = """17 (float[N] x) => (float[A] y) <int64 zero = {0}, float start = {0.}, float delta = {1.}> {
      s = Shape(x)  n = Gather(s, zero)  f = Cast<to = 1>(n)  r = Range(start, f, delta)  y = Add(x, r) }"""
    assert operators(static(source, fix="N=1024")) == ["Add"]
    assert operators(static(source, fix="N=1025")) == ["Range", "Add"]


@pytest.mark.parametrize(
    ("start", "delta", "folded"), [(0.5, 1.0, True), (2.0, 3.0, True), (6.0, -0.25, True), (0.0, 0.1, False)]
)
def test_a_range_of_fractions_is_folded_where_every_kernel_gives_the_same(
    start: float, delta: float, folded: bool
) -> None:
    source = f"""17 (float[N] x, float[A] k) => (float[A] y)
      <int64 zero = {{0}}, float start = {{{start}}}, float delta = {{{delta}}}> {{
      s = Shape(x)  n = Gather(s, zero)  f = Cast<to = 1>(n)  r = Range(start, f, delta)  y = Sub(k, r) }}"""
    numbers = np.arange(start, 5, delta, dtype=np.float32)
    migration = static(source, fix=["N=5", f"A={numbers.size}"])
    assert operators(migration) == (["Sub"] if folded else ["Range", "Sub"])
    feed = {"x": np.zeros(5, np.float32), "k": np.zeros(numbers.size, np.float32)}
    found: Any = ReferenceEvaluator(migration.model).run(None, feed)
    np.testing.assert_array_equal(found[0], -numbers)


def test_nodes_in_sub_graphs_are_folded_with_what_is_known_around_them() -> None:
    source = """17 (float[N,4] x, bool c) => (float[A] y) <int64[1] flat = {-1}> {
      s = Shape(x)
      y = If(c) <then_branch = t () => (float[A] a) { p = ReduceProd<keepdims = 1>(s)  a = Reshape(x, p) },
                 else_branch = e () => (float[B] b) { b = Reshape(x, flat) }>
    }"""
    migration = static(source, fix="N=2")
    (branch, *_) = (
        item.g for node in migration.model.graph.node for item in node.attribute if item.name == "then_branch"
    )
    assert [node.op_type for node in branch.node] == ["Constant", "Reshape"]


def test_all_open_dims_are_asked_for_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        static(NET)
    assert caught.value.code == "no-size"
    assert "axis 0 of 'x', called N; axis 0 of 'i', called M" in caught.value.with_hint
    assert (
        caught.value.hint
        == "give --fix-shape N=SIZE --fix-shape M=SIZE, of at least 1 as 0 stands for an open dim,"
        " or --input-data with inputs of these sizes"
    )


def test_input_data_says_the_sizes_that_fix_does_not() -> None:
    data = {"x": np.zeros((3, 4), np.float32), "i": np.arange(5)}
    assert all_shapes(static(NET, input_data=data).model) == [(3, 4), (5,)]
    with pytest.raises(UsageError) as caught:
        static(NET, fix="N=2", input_data={"x": data["x"]})
    assert "no value for input 'i' (expected inputs: x: float[N, 4], i: int64[M])" in caught.value.with_hint
    with pytest.raises(UsageError) as caught:
        onnx_migrate.migrate(model(NET), static=True, fix="N=3", input_data={"x": data["x"]}, verify="off")
    assert "axis 0 of 'i', called M" in caught.value.with_hint


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("17 (float[2,3] x) => (int64[2,A] y) { y = NonZero(x) }", "NonZero 'y' (at most 6 columns"),
        ("17 (float[2,3] x) => (float[A] y) { y, i = Unique(x) }", "Unique 'y' (at most 6 entries"),
        (
            "17 (float[2,3] x, bool[3] c) => (float[2,A] y) { y = Compress<axis = 1>(x, c) }",
            "Compress 'y' (at most 3 entries",
        ),
        (
            """17 (float[1,9,4] b, float[1,2,9] s) => (int64[A,3] y) <int64 most = {5}> {
               y = NonMaxSuppression(b, s, most) }""",
            "at most 10 rows, 5 for each class and image",
        ),
        (
            "17 (int64 n) => (int64[A] y) <int64 zero = {0}, int64 one = {1}> { y = Range(zero, n, one) }",
            "Range 'y' ('n' is computed",
        ),
        ("17 (float[4] x, int64[1] n) => (float[A] y) { y = Tile(x, n) }", "Tile 'y' (its size is 'n'"),
        (
            """17 (float[2] x, bool c) => (float[2] y, float[A,2] z) <int64 most = {7}> { y, z = Loop(most, c, x) <body = b
               (int64 i, bool d, float[2] v) => (bool e, float[2] w, float[2] o)
               { w = Add(v, v)  o = Neg(v)  s = ReduceSum<keepdims = 0>(v)  e = Greater(s, s) }> }""",
            "it stops by its condition, after at most 7 turns",
        ),
    ],
)  # fmt: skip
def test_a_size_that_depends_on_data_is_named_with_its_bound(source: str, text: str) -> None:
    with pytest.raises(CannotMigrate) as caught:
        static(source)
    assert caught.value.code == "open-size"
    assert text in caught.value.with_hint
    assert "--no-control-flow" not in caught.value.hint


def test_control_flow_is_written_with_plain_nodes_if_that_fixes_the_sizes() -> None:
    source = """17 (float[2] x) => (float[A] y) <int64 most = {3}, bool c = {1}> { y = Loop(most, c, x) <body = b
        (int64 i, bool d, float[A] v) => (bool d, float[B] w) { w = Concat<axis = 0>(v, v) }> }"""
    with pytest.raises(CannotMigrate) as caught:
        static(source)
    assert caught.value.hint.startswith(
        "give --no-control-flow too, which writes such nodes with plain ones; "
    )
    assert all_shapes(static(source, control_flow=False).model)


def test_only_the_first_node_behind_which_a_size_is_open_is_named() -> None:
    with pytest.raises(CannotMigrate) as caught:
        static("17 (float[2,3] x) => (int64[A,2] y) { n = NonZero(x)  t = Transpose(n)  y = Neg(t) }")
    assert "at 1 node: NonZero" in caught.value.with_hint


def test_best_effort_warns_and_writes_the_rest() -> None:
    migration = static("17 (float[N,3] x) => (int64[2,A] y) { y = NonZero(x) }", fix="N=2", best_effort=True)
    notes = [note for note in migration.report.notes if note.code == "open-size"]
    assert [note.severity for note in notes] == ["warning"]


def test_a_second_run_changes_nothing() -> None:
    once = static(PADDED, fix="N=6").model
    again = onnx_migrate.migrate(once, static=True, simplify=False).model
    assert again.graph == once.graph


def test_a_loop_of_no_rounds_keeps_the_shape_of_what_it_collects() -> None:
    """The shapes that a body declares stay where no dim is fixed: ONNX Runtime reads that of an empty scan output there."""
    source = model(
        "17 (float[2] x) => (float[K,2] y, float[2] z) <int64 n = {0}> { z, y = Loop (n, , x)"
        " <body = b (int64 i, bool d, float[2] a) => (bool e, float[2] s, float[2] r)"
        " { e = Identity (d) s = Sin (a) r = Cos (a) }> }"
    )
    result = onnx_migrate.migrate(source, static=True, control_flow=False, simplify=False)
    assert result.report.verification is not None
    assert result.report.verification.exact
    assert [dim.dim_value for dim in result.model.graph.output[0].type.tensor_type.shape.dim] == [0, 2]
