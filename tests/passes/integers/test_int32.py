"""Integers in int32 where ranges prove that they fit: the same numbers, of inputs chosen to overflow too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_migrate
from onnx_migrate.errors import CannotMigrate, UsageError
from tests.harness import model

BIG = (0, 1, -1, 2**31 - 1, 2**31, 2**32, 2**32 + 1, -(2**31) - 1, 2**40)


def narrow(source: str, int32: Any = True, **options: Any) -> onnx_migrate.Migration:
    return onnx_migrate.migrate(model(source), int32=int32, simplify=False, verify="require", **options)


def run(proto: onnx.ModelProto, feed: dict[str, Any]) -> list[Any]:
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feed)


def same(source: str, feed: dict[str, Any], **options: Any) -> onnx_migrate.Migration:
    migration = narrow(source, **options)
    for one, other in zip(run(model(source), feed), run(migration.model, feed), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    return migration


def kinds(migration: onnx_migrate.Migration) -> dict[str, int]:
    """Return the element types of inner values that onnx infers, by name."""
    inferred = onnx.shape_inference.infer_shapes(migration.model)
    return {value.name: value.type.tensor_type.elem_type for value in inferred.graph.value_info}


def codes(migration: onnx_migrate.Migration) -> set[str]:
    return {note.code for note in migration.report.notes}


EMBEDDING = """17 (int64[2,4] ids) => (float[2,4,3] y, bool[2,4] pad)
  <float[9,3] table = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}, int64 one = {1}> {
  e = Gather(table, ids)
  pad = Equal(ids, one)
  y = Relu(e)
}"""


def test_an_input_that_is_an_index_is_cast_once_and_compared_in_int32() -> None:
    migration = same(EMBEDDING, {"ids": np.array([[0, 1, 8, -9], [1, 1, 2, 3]])})
    assert [node.op_type for node in migration.model.graph.node] == ["Cast", "Gather", "Equal", "Relu"]
    assert kinds(migration)["ids_int32"] == onnx.TensorProto.INT32
    assert "assumed-indices" in codes(migration)
    assert "kept-int64" not in codes(migration)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("y = Add(x, x)", True),
        ("y = Mul(x, two)", True),
        ("c = Clip(x, zero, most)  y = Add(c, two)", False),
        ("m = Mod(x, most)  y = Mul(m, m)", False),
        ("m = Mod(x, most)  n = Mul(m, m)  o = Mul(n, n)  y = Mul(o, o)", True),
        ("b = Greater(x, two)  i = Cast<to = 7>(b)  s = CumSum(i, zero)  y = Sub(s, two)", False),
        ("a = Abs(x)  y = Div(a, two)", True),
        ("m = Min(x, two)  n = Max(m, zero)  y = Neg(n)", False),
        ("n = NonZero(x)  y = Squeeze(n, zeros)", False),
        ("f = Cast<to = 1>(x)  g = Mul(f, half)  y = Cast<to = 7>(g)", True),
        ("m = Mod(x, most)  f = Cast<to = 1>(m)  g = Mul(f, half)  h = Floor(g)  y = Cast<to = 7>(h)", False),
        (
            "m = Mod(x, two)  f = Cast<to = 1>(m)  g = Mul(f, near)  h = Round(g)  i = Cast<to = 7>(h)  n = Mul(i, end)"
            " y = Add(n, n)",
            True,
        ),
    ],
)
def test_ranges_say_which_arithmetic_is_int32(body: str, kept: bool) -> None:
    source = f"""17 (int64[9] x) => (int64[N] y) <int64 zero = {{0}}, int64[1] zeros = {{0}}, int64 two = {{2}},
      int64 most = {{100}}, float half = {{0.5}}, float near = {{0.9}}, int64 end = {{2147483647}}> {{ {body} }}"""
    migration = same(source, {"x": np.array(BIG)})
    made = {kind for name, kind in kinds(migration).items() if "int32" in name}
    assert made <= {onnx.TensorProto.INT32}
    assert bool(made) or kept
    last = migration.model.graph.node[-1]
    assert (last.op_type == "Cast" and "int32" in last.input[0]) != kept


def test_casts_are_moved_in_front_of_what_moves_numbers_beyond_int32() -> None:
    source = """17 (int64[1,4] mask) => (float[1,1,3,4] y, bool[4] b) <int64[2] axes = {1, 2}, int64[4] to = {1, 1, 3, 4},
      int64[1] flat = {-1}> {
      u = Unsqueeze(mask, axes)  e = Expand(u, to)  y = Cast<to = 1>(e)  r = Reshape(mask, flat)  b = Cast<to = 9>(r) }"""
    migration = same(source, {"mask": np.array([[0, 1, 2**32, 2**40]])})
    assert [node.op_type for node in migration.model.graph.node] == [
        "Cast",
        "Cast",
        "Unsqueeze",
        "Expand",
        "Reshape",
    ]
    assert {onnx.TensorProto.INT64} & set(kinds(migration).values()) == set()


def test_what_wraps_around_on_the_way_to_an_index_does_not_count() -> None:
    source = """17 (int64[1,4] mask) => (float[1,4,1] y) <float[7,1] t = {0,1,2,3,4,5,6}, int64 one = {1}> {
      c = CumSum(mask, one)  p = Mul(c, mask)  q = Add(p, one)  y = Gather(t, q) }"""
    migration = same(source, {"mask": np.array([[1, 1, 0, 1]])})
    assert set(kinds(migration).values()) & {onnx.TensorProto.INT64} == set()
    assert "assumed-wrapping" in codes(migration)
    far = {
        "mask": np.array([[2**32, 0, 0, 0]])
    }  # 2**64 wraps around in int64, too, and (1 - 2**32) * 2**32 in int32
    np.testing.assert_array_equal(run(model(source), far)[0], run(migration.model, far)[0])


def test_what_a_schema_takes_in_int64_alone_stays_and_ends_of_a_slice_are_clamped() -> None:
    source = """17 (float[2,6] x) => (float[2,3] y, int64[2,2] i, float[3,4] z) <int64[1] k = {2}, int64[1] from = {1},
      int64[1] end = {9223372036854775807}, int64[1] step = {2}, int64[1] axis = {1}, int64[2] shape = {3, 4}> {
      v, i = TopK(x, k)  y = Slice(x, from, end, axis, step)  z = Reshape(x, shape) }"""
    migration = same(source, {"x": np.arange(12, dtype=np.float32).reshape(2, 6)})
    types = {tensor.name: tensor.data_type for tensor in migration.model.graph.initializer}
    assert types["end"] == types["from"] == onnx.TensorProto.INT32
    assert types["shape"] == types["k"] == onnx.TensorProto.INT64


def test_branches_of_an_if_give_int32_where_both_fit_and_loops_keep_their_states() -> None:
    source = """17 (bool c, int64[2] x) => (int64[2] y, int64[2] z) <int64 most = {3}, int64[2] seven = {7, 7}, bool on = {1}> {
      m = Mod(x, most)
      y = If(c) <then_branch = t () => (int64[2] a) { a = Add(m, seven) }, else_branch = e () => (int64[2] b) { b = Neg(m) }>
      z = Loop(most, on, m) <body = l (int64 i, bool d, int64[2] v) => (bool f, int64[2] w) { f = Identity(d)  w = Add(v, v) }>
    }"""
    for flag in (True, False):
        migration = same(source, {"c": np.array(flag), "x": np.array([2**40, -5])})
    (choice,) = (node for node in migration.model.graph.node if node.op_type == "If")
    assert [item.g.output[0].type.tensor_type.elem_type for item in choice.attribute] == [
        onnx.TensorProto.INT32
    ] * 2
    assert "kept-int64" in codes(migration)


def test_a_shape_that_is_computed_in_int32_is_cast_for_constant_of_shape() -> None:
    source = """17 (float[3,2] x, int64[2] k) => (float[A,B] y) <int64 most = {4}, int64 one = {1}> {
      m = Mod(k, most)  s = Add(m, one)  y = ConstantOfShape(s) }"""
    migration = same(source, {"x": np.ones((3, 2), np.float32), "k": np.array([7, 2**40])})
    assert [node.op_type for node in migration.model.graph.node][-2:] == ["Cast", "ConstantOfShape"]


def test_inputs_and_outputs_become_int32_where_that_is_asked_for() -> None:
    source = "17 (int64[3] x, int64[3] z) => (int64[3] y, int64[3] s) <int64 most = {5}> { y = Min(x, most)  s = Add(z, z) }"
    migration = narrow(source, "io")
    ports = (*migration.model.graph.input, *migration.model.graph.output)
    types = [port.type.tensor_type.elem_type for port in ports]
    assert types == [*[onnx.TensorProto.INT32] * 3, onnx.TensorProto.INT64], (
        "what may be beyond int32 is left"
    )
    texts = [note.message for note in migration.report.notes if note.code == "kept-int64"]
    assert "output 's', from -4,294,967,296 to 4,294,967,294, may be beyond int32 and keeps int64" in texts
    x = np.array([-(2**31), 0, 2**31 - 1], np.int32)
    found = run(migration.model, {"x": x, "z": x})
    np.testing.assert_array_equal(found[0], np.minimum(x, 5))
    np.testing.assert_array_equal(found[1], x.astype(np.int64) * 2)


def test_what_may_overflow_is_refused_where_that_is_asked_for() -> None:
    source = "17 (int64[3] x) => (int64[3] y) { y = Add(x, x) }"
    assert "kept-int64" in codes(narrow(source))
    with pytest.raises(CannotMigrate) as caught:
        narrow(source, "require")
    assert caught.value.code == "int32-overflow"
    assert "'x', of any number, may be beyond int32" in str(caught.value)
    with pytest.raises(UsageError):
        narrow(source, "all")


def test_operators_that_onnx_runtime_lacks_in_int32_stay() -> None:
    source = """17 (int64[4] x) => (int64[4,3] y, int64[N] u) <int64 depth = {3}, int64[2] values = {0, 1}, int64 most = {3}> {
      m = Mod(x, most)  y = OneHot(m, depth, values)  u = Unique(m) }"""
    same(source, {"x": np.array([0, 5, -7, 2**40])})


def test_a_second_run_changes_nothing() -> None:
    once = narrow(EMBEDDING).model
    again = onnx_migrate.migrate(once, int32=True, simplify=False).model
    assert again.graph == once.graph


def test_a_runtime_without_int64_gets_int32(tmp_path: Path) -> None:
    path = tmp_path / "chip.toml"
    path.write_text('name = "chip"\n[[release]]\nopset = 17\ninteger = "int32"\n', encoding="utf-8")
    migration = onnx_migrate.migrate(model(EMBEDDING), runtime=str(path), simplify=False)
    opened = onnx_migrate.migrate(
        model(EMBEDDING.replace("[2,4] ids", "[N,4] ids")), runtime=str(path), simplify=False
    )
    assert migration.model.graph.node[0].op_type == "Cast"
    assert opened.model.graph.node[0].op_type == "Gather"


def test_a_range_of_sizes_in_a_branch() -> None:
    """ONNX Runtime 1.32 takes a limit that it infers from sizes for int64, and refused the Range of int32."""
    branches = ", ".join(
        f"{attribute} = b{number} () => (int64[K{number}] z{number}) {{"
        f" s{number} = Shape (x) l{number} = Gather (s{number}, {place}) z{number} = Range (zero, l{number}, one) }}"
        for number, (attribute, place) in enumerate([("then_branch", "zero1"), ("else_branch", "one1")])
    )
    source = model(
        f"17 (float[2,3] x, bool c) => (int64[K] y) <int64 zero = {{0}}, int64 one = {{1}}, int64 zero1 = {{0}},"
        f" int64 one1 = {{1}}> {{ y = If (c) <{branches}> }}"
    )
    verdict = onnx_migrate.migrate(source, int32=True, simplify=False).report.verification
    assert verdict is not None
    assert verdict.verified


@pytest.mark.parametrize("asked", [True, "io"])
def test_each_thing_is_told_once(asked: Any) -> None:
    source = """17 (int64[6] x, float[8] t) => (float[6] z, int64[6] y) <int64 two = {2}>
    { s = Add (x, two) y = Mul (s, s) z = Gather (t, x) }"""

    found = onnx_migrate.migrate(model(source), int32=asked, verify="off")

    texts = [(note.code, note.message) for note in found.report.notes]
    assert len(texts) == len(set(texts))
    assert [code for code, _ in texts].count("int32") == 1
