"""Models in another precision: valid, loadable, and near the original with every value rounded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate import files
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.narrow_floats import is_narrow
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.evaluators import OPTIMIZED, STRICT, UNOPTIMIZED, EvaluationError, open_model
from onnx_migrate.verify.precision import closeness, groups
from onnx_migrate.verify.precision.errors import error_of
from onnx_migrate.verify.prover import Prover
from tests.harness import loads, model, random_feeds, run
from tests.steps import operators

F16, F32, I64 = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.INT64

SEARCH = Settings(isolated=False)


def converted(
    source: str | onnx.ModelProto, kind: str = "fp16", **options: Any
) -> tuple[onnx.ModelProto, ChangeLog]:
    """Return a model in another precision; it is valid and loads."""
    log = ChangeLog()
    result = make_pass("precision", kind=kind, **options).run(Model(model(source)), log)
    proto = files.inline(result)
    onnx.checker.check_model(proto, full_check=True)
    if kind != "bf16":
        assert loads(proto)
    return proto, log


def check(
    source: str | onnx.ModelProto, kind: str = "fp16", share: float = 5e-3, **options: Any
) -> onnx.ModelProto:
    """Return a model in another precision, whose outputs are within a share of the original's, each value rounded."""
    original = model(source)
    result, _ = converted(original, kind, **options)
    feeds = random_feeds(original)
    expected = run(original, feeds)
    given = open_model(Runnable(structure=result.SerializeToString()), STRICT).run(feeds)
    for output, value in zip(original.graph.output, expected, strict=True):
        assert error_of(np.asarray(value), np.asarray(given[output.name])) <= share, output.name
    return result


def types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the element types of all values of a model by name."""
    inferred = onnx.shape_inference.infer_shapes(proto).graph
    found = {
        value.name: value.type.tensor_type.elem_type for value in (*inferred.value_info, *inferred.output)
    }
    return found | {tensor.name: tensor.data_type for tensor in inferred.initializer}


def casts(proto: onnx.ModelProto) -> int:
    return operators(proto).count("Cast")


W = "float[4,4] w = {" + ", ".join(f"{value:.4f}" for value in np.linspace(-1, 1, 16)) + "}"


@pytest.mark.parametrize(
    ("text", "added"),
    [
        (f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = MatMul(x, w)  y = Relu(a) }}", 2),
        (f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = Transpose(x)  b = MatMul(w, a)  y = Transpose(b) }}", 2),
        # An input that is read twice, and an output that is read inside.
        (f"17 (float[4,4] x) => (float[4,4] a, float[4,4] y) <{W}> {{ a = MatMul(x, w)  y = Mul(a, x) }}", 3),
        # An output that is an input or an initializer keeps its type.
        (f"17 (float[4,4] x) => (float[4,4] w, float[4,4] y) <{W}> {{ y = MatMul(x, w) }}", 2),
        ("13 (float[2,3] x) => (int64[2] y) { a = Exp(x)  y = ArgMax<axis = 1, keepdims = 0>(a) }", 1),
        # A Cast of the model's own to the old type goes, one behind which nothing is read any more is the output's.
        ("13 (int64[2,3] i, float[2,3] x) => (float[2,3] y) { a = Cast<to = 1>(i)  b = Mul(a, x)  y = Cast<to = 1>(b) }", 1),
        ("13 (float[2,3] x) => (float[2,3] y) { s = Shape(x)  c = ConstantOfShape(s)  y = Add(x, c) }", 2),
        ("13 (float[2,3] x) => (float[2,3] y) { c = Constant<value_float = 1.5>()  y = Mul(x, c) }", 2),
        ("13 (float[2,3] x) => (float[2,3] y) { c = Constant<value = float[1] {1.5}>()  y = Mul(x, c) }", 2),
        # Scales of a Resize are float32 by its schema, and what computes them stays so.
        ("13 (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] s = {1.,1.,2.,2.}> { y = Resize<mode = \"linear\">(x, , s) }", 2),
        ("""13 (float[1,1,4,4] x) => (float[1,1,8,8] y) { s = Shape(x)  f = Cast<to = 1>(s)
             t = Constant<value = float[4] {1.,1.,2.,2.}>()  m = Mul(f, t)  z = Floor(m)  i = Cast<to = 7>(z)
             y = Resize<mode = "linear">(x, , , i) }""", 2),
        ("17 (float[2,8] x) => (float[2,8] y) <float[8] s = {1.,1.,1.,1.,1.,1.,1.,1.}> { y = LayerNormalization(x, s) }", 2),
        ("11 (float[1,2,6,6] x) => (float[1,2,3,3] y) { y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) }", 2),
        # Of x and y, and of a for the branch that overflows; that of q is inside.
        ("""13 (float[2,3] x, bool c) => (float[2,3] y) <float[1] w = {2.}> { a = Mul(x, w)
             b = If (c) <then_branch = t () => (float[2,3] p) { p = Sub(a, x) }, else_branch = e () => (float[2,3] q) {
               r = Constant<value = float {1e7}>()  s = Mul(a, r)  q = Div(s, r) }>
             y = Exp(b) }""", 3),
        # Sequences keep their element type.
        ("""13 (float[4,2] x) => (float[2,2] y) <int64 two = {2}, int64 i = {0}> { e = Exp(x)
             s = SplitToSequence<axis = 0>(e, two)  p = SequenceAt(s, i)  y = Exp(p) }""", 4),
        ("""11 (float[3,2] x) => (float[2] y, float[3,2] z) <float[2] s = {0., 0.}> {
             y, z = Scan <num_scan_inputs = 1, body = b (float[2] v, float[2] e) => (float[2] u, float[2] o) {
               u = Add(v, e)  o = Neg(u) }> (s, x) }""", 2),
        # Bounds that no number reaches are no reason to stay.
        ("""13 (float[2,3] x) => (float[2,3] y) <float low = {0.}, float high = {3.4e38}> {
             a = Exp(x)  y = Clip(a, low, high) }""", 2),
        # A loop that floats decide on keeps its type: a Cast of w, and one of what the loop reads.
        ("""13 (float[4,4] w, int64 n) => (int64[1] y) <bool go = {1}, int64[1] first = {0}> {
             v = Exp(w)
             y = Loop (n, go, first) <body = b (int64 i, bool c, int64[1] t) => (bool d, int64[1] u) {
               d = Identity(c)  r = Gather(v, t)  u0 = ArgMax<axis = 1, keepdims = 0>(r)  u = Identity(u0) }> }""", 2),
        # The operator does not take float16, and moving what it computes needs no Cast.
        ("11 () => (float[5] y) { a = Constant<value = float {0.}>()  b = Constant<value = float {5.}>()"
         "  c = Constant<value = float {1.}>()  y = Range(a, b, c) }", None),
    ],
)  # fmt: skip
def test_numbers_and_casts(text: str, added: int | None) -> None:
    if added is None:
        with pytest.raises(CannotMigrate, match="its operator does not support float16"):
            converted(text)
        return
    before = casts(model(text))
    assert casts(check(text)) - before == added


@pytest.mark.parametrize(
    ("nodes", "kept", "added"),
    [
        # Between two islands; two readers of an island. A product stays narrow.
        (
            "b = Exp(a)  c = Abs(b)  d = Log(c)  e = Neg(d)  f = Sigmoid(e)  y = MatMul(f, w)",
            "Exp Log Sigmoid",
            4,
        ),
        ("b = Exp(a)  c = Neg(b)  d = Abs(b)  e = Add(c, d)  y = MatMul(e, w)", "Exp", 4),
        ("b = MatMul(a, w)  c = Exp(b)  y = MatMul(c, w)", "Exp", 4),
    ],
)
def test_what_stands_between_islands_joins_them_if_casts_are_saved(nodes: str, kept: str, added: int) -> None:
    text = f"17 (float[4,4] x) => (float[4,4] y) <{W}> {{ a = MatMul(x, w)  {nodes} }}"

    assert casts(check(text, keep=kept.split())) == added


def test_a_loop_carries_the_type() -> None:
    result = check("""13 (float[2,3] x, int64 n) => (float[2,3] y, float[N,2,3] z) <float[1] w = {0.5}, bool go = {1}> {
      a = Mul(x, w)
      y, z = Loop (n, go, a) <body = b (int64 i, bool c, float[2,3] v) => (bool d, float[2,3] u, float[2,3] s) {
        d = Identity(c)  u = Mul(v, w)  s = Add(u, a) }> }""")

    loop = next(node for node in result.graph.node if node.op_type == "Loop")
    body = loop.attribute[0].g
    assert {value.type.tensor_type.elem_type for value in (*body.input, *body.output)} == {
        F16,
        I64,
        TensorProto.BOOL,
    }


@pytest.mark.parametrize(
    ("text", "searched", "expected"),
    [
        # A constant that overflows keeps its node, and one that becomes 0 what divides by it.
        ("""13 (float[2,3] x) => (float[2,3] y) <float[1] big = {1e7}, float[1] w = {2.}> {
             a = Mul(x, w)  b = Mul(a, big)  c = Div(b, big)  y = Mul(c, w) }""", False, {"big": F32, "w": F16}),
        ("""13 (float[2,3] x) => (float[2,3] y) <float[1] eps = {1e-10}> {
             z = Sub(x, x)  a = Add(z, eps)  b = Log(a)  y = Neg(b) }""", False, {"eps": F32, "b": F32}),
        # The Where is narrow, and so is the lowest number in it, while the mean of squares of 1000 is not.
        (f"""13 (float[2,4] x) => (float[2,4] y) <{W}, bool[4] c = {{1, 1, 0, 1}},
             float low = {{-3.4e38}}, float k = {{1000.}}> {{ a = MatMul(x, w)  m = Where(c, a, low)  s = Softmax(m)
             t = MatMul(s, w)  b = Mul(t, k)  d = Mul(b, b)  e = Sqrt(d)  f = Div(e, k)  y = MatMul(f, w) }}""", True,
         {"m": F16, "d": F32}),
        # Cancellation.
        ("""13 (float[4,64] x) => (float[4,1] y) <float[1] k = {30.}> { a = Add(x, k)  m = ReduceMean<axes = [1]>(a)
             s = Mul(a, a)  n = ReduceMean<axes = [1]>(s)  q = Mul(m, m)  v = Sub(n, q)  y = Sqrt(v) }""", True, {"v": F32}),
    ],
)  # fmt: skip
def test_the_types_of_values(text: str, searched: bool, expected: dict[str, int]) -> None:
    found = types(check(text, settings=SEARCH if searched else None))

    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        # 1e-9 more or less is rounding, but where the next node is steep at 0.
        ("c = Add(m, e)  y = Mul(c, m)", []),
        ("c = Add(m, e)  d = Pow(c, three)  y = Div(d, m)", []),
        ("b = Mul(m, m)  c = Add(b, e)  d = Log(c)  f = Mul(d, m)  y = MatMul(f, w)", ["Add", "Log"]),
        # A root of 1e-12 is none that float16 takes for 0, so that the rest of a normalisation is narrow.
        ("b = Mul(m, m)  c = Add(b, e)  d = Sqrt(c)  f = Div(m, d)  y = MatMul(f, w)", ["Add", "Sqrt"]),
        # The reciprocal of that overflows, where m is 0.
        ("b = Mul(m, m)  c = Add(b, e)  d = Sqrt(c)  i = Reciprocal(d)  y = Mul(m, i)",
         ["Add", "Mul", "Mul", "Reciprocal", "Sqrt"]),
        ("b = Mul(m, m)  c = Add(b, e)  d = Sqrt(c)  i = Div(one, d)  y = Mul(m, i)", ["Add", "Div", "Mul", "Mul", "Sqrt"]),
        # What is divided may be 0 too, and a node that only moves the bound changes nothing of that.
        ("b = Abs(m)  c = Clip(b, e)  s = Transpose(c)  t = Transpose(s)  y = Div(m, t)",
         ["Abs", "Clip", "Div", "Transpose", "Transpose"]),
    ],
)  # fmt: skip
def test_small_constants_keep_what_is_steep_at_zero(body: str, kept: list[str]) -> None:
    text = f"""13 (float[4,4] x) => (float[4,4] y) <{W}, float e = {{1e-12}}, float one = {{1.}}, float three = {{3.}}> {{
      m = MatMul(x, w)  {body} }}"""
    result = check(text)

    known = types(result)
    wide = [
        node.op_type for node in result.graph.node if node.op_type != "Cast" and known[node.output[0]] == F32
    ]
    assert sorted(wide) == kept
    silence = {"x": np.zeros((4, 4), np.float32)}
    one, other = (
        open_model(Runnable(structure=proto.SerializeToString()), STRICT).run(silence)["y"]
        for proto in (model(text), result)
    )
    assert np.array_equal(np.isfinite(one), np.isfinite(other))


@pytest.mark.parametrize("body", ["m = Where(c, a, k)", "z = Where(c, n, k)  m = Add(a, z)"])
def test_a_mask_of_minus_10000_is_no_number_near_the_largest(body: str) -> None:
    result = check(
        f"""13 (float[2,4] x) => (float[2,4] y) <{W}, bool[4] c = {{1, 1, 0, 1}}, float k = {{-10000.}}, float n = {{0.}}> {{
      a = MatMul(x, w)  {body}  s = Softmax(m)  y = MatMul(s, w) }}""",
        settings=SEARCH,
    )

    assert casts(result) == 2


def test_a_constant_read_in_two_types_is_stored_twice_if_small_and_cast_if_not() -> None:
    small = """13 (float[2,3] x) => (float[2,3] y) <float[1] w = {2.}, float[1] b = {1e7}> {
      a = Mul(x, w)  c = Add(w, b)  d = Div(b, c)  y = Mul(a, d) }"""
    large = model(
        "13 (float[600] x) => (float[600] y) <float[1] b = {1e7}> { a = Mul(x, w)  c = Add(w, b)  d = Div(b, c)  y = Mul(a, d) }"
    )
    large.graph.initializer.append(numpy_helper.from_array(np.linspace(1, 2, 600, dtype=np.float32), "w"))

    assert sorted(tensor.name for tensor in check(small).graph.initializer) == ["b", "w", "w_float16"]
    assert sorted(tensor.name for tensor in check(large).graph.initializer) == ["b", "w"]


def test_initializers_that_are_listed_as_inputs() -> None:
    source = model(f"13 (float[2,4] x) => (float[2,4] y) <{W}> {{ y = MatMul(x, w) }}")
    source.graph.input.append(helper.make_tensor_value_info("w", F32, [4, 4]))
    overridable = check(source)
    source.ir_version = 3
    constant = check(source)

    assert [tensor.data_type for tensor in overridable.graph.initializer] == [F32]
    assert [tensor.data_type for tensor in constant.graph.initializer] == [F16]
    assert constant.graph.input[1].type.tensor_type.elem_type == F16


def test_quantisation_keeps_float32_scales_until_the_opset_lets_them_be_narrow() -> None:
    text = """13 (float[2,4] x) => (float[2,4] y) <float s = {0.1}, uint8 z = {128}> { a = Exp(x)
      q = QuantizeLinear(a, s, z)  d = DequantizeLinear(q, s, z)  y = Neg(d) }"""
    kept, _ = converted(text)
    raised, log = converted(text, may_raise=True)

    assert types(kept)["s"] == F32
    assert types(raised)["s"] == F16
    assert "opset-raised" in {note.code for note in log.notes}


OVERFLOWING = """17 (float[2,3] x) => (float[2,3] y) <float[1] k = {1000.}, float two = {2.}> {
  a = Mul(x, k)  b = Pow(a, two)  c = Sqrt(b)  d = Div(c, k)  e = Exp(d)  y = Neg(e) }"""


def test_an_island_grows_where_a_value_overflows() -> None:
    without, _ = converted(OVERFLOWING)
    result = check(OVERFLOWING, settings=SEARCH)
    _, log = converted(OVERFLOWING, settings=SEARCH)

    assert "b" not in types(without) or types(without)["b"] == F16
    assert types(result)["b"] == F32
    assert types(result)["e"] == F16
    assert any(
        re.search(r"\(numbers from .* to \d.*its numbers become infinite or NaN", note.message)
        for note in log.notes
    )


def test_an_island_is_no_larger_than_it_must_be() -> None:
    """Of two roots of squares the search keeps what is around both, and needs the one that overflows; of a Loop one node."""
    result = check(
        """17 (float[2,3] x, float[2,3] z) => (float[2,3] y) <float k = {300.}, float s = {0.01}> {
      a = Mul(x, k)  b = Mul(a, a)  c = Sqrt(b)  d = Mul(c, s)  e = Sigmoid(z)  f = Mul(e, d)  y = Neg(f) }""",
        settings=SEARCH,
    )
    looped = check(
        """17 (float[2,3] x) => (float[2,3] y) <int64 n = {3}, bool go = {1}, float k = {300.}, float s = {0.002}> {
      a = Sigmoid(x)
      y = Loop (n, go, a) <body = b (int64 i, bool c, float[2,3] v) => (bool d, float[2,3] u) {
        d = Identity(c)  p = Exp(v)  q = Mul(p, k)  r = Mul(q, q)  t = Sqrt(r)  w = Mul(t, s)  u = Sigmoid(w) }> }""",
        settings=SEARCH,
    )

    assert {name for name, kind in types(result).items() if kind == F32} <= {"y", "a_float", "k", *"abc"}
    loop = next(node for node in looped.graph.node if node.op_type == "Loop")
    kinds = {item.name: item.type.tensor_type.elem_type for item in loop.attribute[0].g.output}
    assert kinds["u"] == F16


def test_a_model_that_no_node_can_leave_is_refused() -> None:
    """Left as it is, it would pass for a model of the type."""
    with pytest.raises(CannotMigrate, match="its error in float16 would be too large") as caught:
        converted(
            "17 (float[2,3] x) => (float[2,3] y) <float k = {6e4}> { a = Mul(x, k)  b = Mul(a, a)  y = Sqrt(b) }",
            settings=SEARCH,
        )
    assert caught.value.code == "precision-lost"


def test_onnx_runtime_alone_does_not_show_the_overflow() -> None:
    """Why the strict run is needed: without it this result would pass."""
    result, _ = converted(OVERFLOWING)
    feeds = random_feeds(model(OVERFLOWING))
    runnable = Runnable(structure=result.SerializeToString())

    assert np.isfinite(open_model(runnable, UNOPTIMIZED).run(feeds)["y"]).all()
    assert not np.isfinite(open_model(runnable, STRICT).run(feeds)["y"]).all()


def test_numbers_that_vanish_on_other_inputs_are_found() -> None:
    """The fourth power of numbers of size 1 is no trouble for float16, that of 0.01 is."""
    text = f"""13 (float[2,4] x) => (float[2,4] y) <{W}> {{
      a = Mul(x, x)  b = Mul(a, a)  c = Sqrt(b)  d = Sqrt(c)  y = MatMul(d, w) }}"""
    result, _ = converted(text, settings=SEARCH)

    small = {"x": np.float32([[0.01, -0.03, 0.002, 0.004], [0.001, 0.009, -0.02, 0.005]])}
    given = open_model(Runnable(structure=result.SerializeToString()), STRICT).run(small)
    assert error_of(run(model(text), small)[0], given["y"]) <= 5e-3


def test_nodes_that_overflow_are_found_in_both_branches() -> None:
    """One branch is measured after the other, as each input takes one of them."""
    body = """m{0} = MatMul(x, w)  a{0} = Mul(m{0}, k)  b{0} = Mul(a{0}, a{0})  c{0} = Sqrt(b{0})  d{0} = Div(c{0}, k)
      y{0} = MatMul(d{0}, w)"""
    result, log = converted(
        f"""13 (float[2,4] x, bool c) => (float[2,4] y) <{W}, float k = {{1000.}}> {{
      y = If (c) <then_branch = t () => (float[2,4] y1) {{ {body.format(1)} }},
                  else_branch = e () => (float[2,4] y2) {{ {body.format(2)} }}> }}""",
        settings=SEARCH,
    )

    assert types(result)["w"] == F16
    assert any(
        re.match(r"'b1'.* become infinite or NaN; the same applies to 3 other nodes", note.message)
        for note in log.notes
    )
    assert any(re.match(r"4 nodes stay in float32: 2 Mul, 2 Sqrt", note.message) for note in log.notes)


def test_a_branch_of_which_nothing_inside_changes_keeps_its_type() -> None:
    """Casts around it would do nothing but round, and what is inside of a branch alone counts as narrow too."""
    text = f"""13 (float[2,4] x, bool c) => (float[2,4] y) <{W}> {{
      y = If (c) <then_branch = t () => (float[2,4] p) {{
          a = If (c) <then_branch = tt () => (float[2,4] r) {{ r = Exp(x) }},
                      else_branch = te () => (float[2,4] s) {{ s = Sin(x) }}>
          p = MatMul(a, w) }}, else_branch = e () => (float[2,4] q) {{ q = Sin(x) }}> }}"""
    result, _ = converted(text, keep=("Exp", "Sin"))
    branch = result.graph.node[-2].attribute[0].g

    assert [node.op_type for node in branch.node] == ["If", "Cast", "MatMul"]
    assert is_narrow(result)
    result.graph.ClearField("initializer")
    assert is_narrow(result)


def test_a_model_that_has_the_type_where_it_can_stays_as_it_is() -> None:
    text = f"""13 (float[4,4] x) => (seq(float[2,4]) y) <{W}, int64 two = {{2}}> {{
      m = MatMul(x, w)  y = SplitToSequence<axis = 0>(m, two) }}"""
    once, _ = converted(text)
    again, _ = converted(once)
    assert again == once


def test_nodes_that_the_user_keeps() -> None:
    text = (
        "17 (float[2,3] x) => (float[2,3] y) { [one] a = Exp(x)  [two] b = Softmax(a)  [three] y = Neg(b) }"
    )
    for keep in ("Softmax", "tw*"):
        result, log = converted(text, keep=(keep,))
        assert types(result)["b"] == F32
        assert any(note.code == "kept-precision" and "you asked for it" in note.message for note in log.notes)
    for keep, hint in (("Sofmax", "did you mean Softmax"), ("/head/*", "inspect lists operators")):
        with pytest.raises(UsageError, match=rf"{re.escape(keep)}: no node (?s:.*){hint}"):
            converted(text, keep=("Exp", keep))


def test_inputs_and_outputs_too() -> None:
    result, _ = converted(
        f"17 (float[2,4] x, int64[2,4] i) => (float[2,4] y) <{W}> {{ f = Cast<to = 1>(i)  a = Mul(x, f)  y = MatMul(a, w) }}",
        interface=True,
    )

    assert [value.type.tensor_type.elem_type for value in (*result.graph.input, *result.graph.output)] == [
        F16,
        I64,
        F16,
    ]
    assert casts(result) == 1


def test_bfloat16() -> None:
    result = check(
        f"22 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = MatMul(x, w)  y = Softmax(a) }}", "bf16", 2e-2
    )

    assert types(result)["w"] == TensorProto.BFLOAT16


def test_a_model_whose_weights_have_the_type_stays_as_it_is_though_most_nodes_do_not() -> None:
    """What it computes in float32, between Casts or of an input before any, is meant so."""
    text = f"""17 (float[2,4] x) => (float[2,4] y) <{W}> {{
      a = Abs(x)  b = Exp(a)  c = Sqrt(b)  d = Sin(c)  m = MatMul(d, w)  e = Exp(m)  f = Sqrt(e)  y = MatMul(f, w) }}"""
    once, _ = converted(text, keep=("Abs", "Exp", "Sqrt", "Sin"))
    again, _ = converted(once)
    assert again == once


def test_again_changes_nothing_and_there_and_back_gives_the_same_bits() -> None:
    once, _ = converted(OVERFLOWING, settings=SEARCH)
    again, _ = converted(once, settings=SEARCH)
    plain = f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = MatMul(x, w)  y = Softmax(a) }}"
    narrow, _ = converted(plain)
    wide, _ = converted(narrow, "fp32")
    back, _ = converted(wide)

    assert again.SerializeToString() == once.SerializeToString()
    assert casts(wide) == 0
    assert back.graph.initializer == narrow.graph.initializer


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_every_number_of_a_narrow_model_comes_back(kind: str) -> None:
    """Subnormal numbers and infinities too, with inputs and outputs of the type; NaN is no weight."""
    element = {"fp16": F16, "bf16": TensorProto.BFLOAT16}[kind]
    bits = np.arange(0, 1 << 16, 3, dtype=np.uint16)
    infinity = 0x7C00 if kind == "fp16" else 0x7F80
    bits = bits[(bits & 0x7FFF) <= infinity]
    name = {"fp16": "float16", "bf16": "bfloat16"}[kind]
    narrow = model(f"22 ({name}[1] x) => ({name}[{len(bits)}] y) {{ y = Add(x, w) }}")
    narrow.graph.initializer.add(name="w", data_type=element, dims=[len(bits)], raw_data=bits.tobytes())

    wide = make_pass("precision", kind="fp32", interface=True).run(Model(narrow), ChangeLog())
    back = make_pass("precision", kind=kind, interface=True).run(Model(files.inline(wide)), ChangeLog())

    assert types(files.inline(wide)) == {"w": F32, "y": F32}
    assert files.inline(back).graph.initializer[0].raw_data == bits.tobytes()
    assert types(files.inline(back)) == {"w": element, "y": element}


@pytest.mark.parametrize("interface", [False, True])
def test_sparse_initializers(interface: bool) -> None:
    """Their values are converted where they are; ONNX Runtime reads one of float16, and computes with all its zeros."""
    source = model("17 (float[2,4] x) => (float[2,3] y) { a = MatMul(x, w)  y = Relu(a) }")
    values = numpy_helper.from_array(np.array([0.1, -0.7, 2.5], np.float32), "w")
    indices = numpy_helper.from_array(np.array([0, 5, 11]), "w_indices")
    source.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4, 3]))
    result = files.inline(make_pass("precision", interface=interface).run(Model(source), ChangeLog()))
    stored = result.graph.sparse_initializer[0]
    feed = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    given = run(result, {"x": feed.astype(np.float16) if interface else feed})[0]

    assert stored.values.data_type == F16
    assert numpy_helper.to_array(stored.values).tolist() == np.float16([0.1, -0.7, 2.5]).tolist()
    assert numpy_helper.to_array(stored.indices).tolist() == [0, 5, 11]
    assert error_of(run(source, {"x": feed})[0], given.astype(np.float32)) < 5e-3


def test_a_fusion_that_does_not_load_is_found() -> None:
    """ONNX Runtime fuses a mean and what subtracts it across a Cast from float32, and gets a LayerNormalization of two types."""
    text = """17 (float[2,8] x) => (float[2,8] y) <float[8] w = {1,1,1,1,1,1,1,1}, float two = {2.}, float e = {0.001}> {
      [one] a = Exp(x)  [mean] m = ReduceMean<axes = [-1]>(a)  [sub] s = Sub(a, m)  [pow] p = Pow(s, two)
      [mean2] v = ReduceMean<axes = [-1]>(p)  [add] g = Add(v, e)  [root] r = Sqrt(g)  [div] d = Div(s, r)
      [mul] h = Mul(d, w)  [bias] b = Add(h, w)  [last] y = Relu(b) }"""
    without = make_pass("precision", keep=("one",)).run(Model(model(text)), ChangeLog())
    with pytest.raises(EvaluationError, match="bound to different types"):
        open_model(Runnable(structure=files.inline(without).SerializeToString()), OPTIMIZED)

    result, _ = converted(text, keep=("one",), settings=SEARCH)

    open_model(Runnable(structure=result.SerializeToString()), OPTIMIZED)
    assert types(result)["b"] == F16 or types(result)["m"] == F32


def test_an_operator_of_onnx_runtime() -> None:
    source = model(f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = MatMul(x, w)  y = Relu(a) }}")
    source.graph.node[1].op_type, source.graph.node[1].domain = "Gelu", "com.microsoft"
    source.opset_import.add(domain="com.microsoft", version=1)
    result, _ = converted(source)

    assert casts(result) == 2


def test_large_weights_are_converted_from_file_to_file(tmp_path: Path) -> None:
    source = model("17 (float[2,512] x) => (float[2,512] y) { a = MatMul(x, w)  y = Relu(a) }")
    values = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    source.graph.initializer.append(numpy_helper.from_array(values, "w"))
    onnx.save(source, tmp_path / "a.onnx")
    result = make_pass("precision").run(files.load(tmp_path / "a.onnx"), ChangeLog())
    files.save(result, tmp_path / "b.onnx")
    stored = onnx.load(tmp_path / "b.onnx").graph.initializer[0]

    assert result.proto.ByteSize() < 2000
    assert numpy_helper.to_array(stored).tobytes() == values.astype(np.float16).tobytes()
    assert (tmp_path / "b.onnx").stat().st_size < values.nbytes * 0.51


def test_a_number_that_overflows_is_seen_in_each_piece_of_a_large_weight(tmp_path: Path) -> None:
    source = model("17 (float[2,512] x) => (float[2,512] y) { y = MatMul(x, w) }")
    values = np.ones((512, 512), np.float32)
    values[100, 0] = 1e7
    source.graph.initializer.append(numpy_helper.from_array(values, "w"))
    onnx.save(source, tmp_path / "a.onnx")

    with pytest.raises(CannotMigrate, match=r"1e\+07 overflows"):
        make_pass("precision").run(files.load(tmp_path / "a.onnx"), ChangeLog())


def test_a_concat_of_quantised_values_keeps_its_scales() -> None:
    """ONNX Runtime makes a QLinearConcat of it, with scales of a type that this does not take."""
    source = model("""19 (float[2,4] x, float[2,4] z) => (float[2,8] y) <float s = {0.1}, float t = {0.2}, uint8 o = {128}> {
      a = Exp(x)  b = Exp(z)  qa = QuantizeLinear(a, s, o)  qb = QuantizeLinear(b, t, o)  da = DequantizeLinear(qa, s, o)
      db = DequantizeLinear(qb, t, o)  c = Concat<axis = 1>(da, db)  qc = QuantizeLinear(c, t, o)
      y = DequantizeLinear(qc, t, o) }""")
    result, _ = converted(source)  # which asserts that it loads, optimised

    assert types(result)["a"] == F16


def test_the_users_inputs_are_cast_where_the_interface_changes() -> None:
    source = model(f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = MatMul(x, w)  y = Softmax(a) }}")
    data = {"x": np.ones((2, 4), np.float32)}

    found = onnx_migrate.migrate(
        source,
        precision="fp16",
        precision_io=True,
        input_data=data,
        simplify=False,
        isolated=False,
        verify="require",
    )

    assert found.model.graph.input[0].type.tensor_type.elem_type == F16
    assert found.report.verification.verified


def test_bfloat16_needs_opset_13() -> None:
    with pytest.raises(CannotMigrate, match="begins with opset 13"):
        converted("11 (float[2,3] x) => (float[2,3] y) { y = Exp(x) }", "bf16")


def test_an_operator_that_takes_the_type_by_its_schema_alone_keeps_its_own() -> None:
    text = "13 (float[2,3,4,4] x) => (float[2,3,4,4] y) { a = Exp(x)  y = MeanVarianceNormalization<axes = [0, 2, 3]>(a) }"
    result, _ = converted(text)

    assert types(result)["a"] == F16


def test_a_model_of_another_domain_alone_gets_the_import_of_its_casts() -> None:
    source = model("17 (float[2,4] x) => (float[2,4] y) { y = Relu(x) }")
    source.graph.node[0].op_type, source.graph.node[0].domain = "Gelu", "com.microsoft"
    del source.opset_import[:]
    source.opset_import.add(domain="com.microsoft", version=1)
    result, _ = converted(source)

    assert casts(result) == 2


def test_a_runtime_that_takes_float32_alone_gets_it_whole() -> None:
    source = model(f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = Concat<axis = 0>(x)  y = Gemm(a, w) }}")
    narrow, _ = converted(source, interface=True)

    found = onnx_migrate.migrate(narrow, runtime="armnn", simplify=False, isolated=False, verify="require")

    assert set(types(found.model).values()) == {F32}
    assert [
        value.type.tensor_type.elem_type for value in (*found.model.graph.input, *found.model.graph.output)
    ] == [F32, F32]
    assert any("which is all that Arm NN takes" in note.message for note in found.report.notes)


def test_what_the_runtime_does_not_take_in_the_type_keeps_its_own(tmp_path: Path) -> None:
    table = tmp_path / "chip.toml"
    table.write_text("""name = "chip"
title = "Chip"
newer = "refused"
[[release]]
opset = 17
source = "test"
[[operator]]
names = ["Exp"]
types = ["float32"]
source = "test"
""")
    source = model(
        f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = MatMul(x, w)  b = Exp(a)  y = MatMul(b, w) }}"
    )

    found = onnx_migrate.migrate(
        source, precision="fp16", runtime=str(table), simplify=False, isolated=False, verify="require"
    )

    assert types(found.model)["a"] == F16
    assert types(found.model)["b"] == F32
    assert any("Chip does not support it in float16" in note.message for note in found.report.notes)


def test_the_way_back_leaves_nothing_narrow() -> None:
    """What stays float32 on the way down for the sake of its numbers does not stay float16 on the way up."""
    text = """17 (float16[4,4] w, int64 n) => (int64[1] y, float16[2,2] z) <bool go = {1}, int64[1] first = {0}> {
      v = Exp(w)  z = RandomNormal<shape = [2,2], dtype = 10>()
      y = Loop (n, go, first) <body = b (int64 i, bool c, int64[1] t) => (bool d, int64[1] u) {
        d = Identity(c)  r = Gather(v, t)  u0 = ArgMax<axis = 1, keepdims = 0>(r)  u = Identity(u0) }> }"""
    result = make_pass("precision", kind="fp32", interface=True).run(Model(model(text)), ChangeLog()).proto

    assert F16 not in types(result).values()
    assert loads(result)


def test_the_report_has_the_range_of_each_node() -> None:
    report = onnx_migrate.migrate(model(OVERFLOWING), precision="fp16", simplify=False).report
    printed = report.as_dict()["ranges"]

    assert (printed["type"], printed["highest"], printed["lowest"]) == ("float16", 65504.0, 2.0**-24)
    assert [(row["node"], row["kept"]) for row in printed["nodes"]][:2] == [("a", False), ("b", True)]
    assert 1e3 < printed["nodes"][0]["largest"] < 1e4
    assert printed["nodes"][1]["largest"] == pytest.approx(printed["nodes"][0]["largest"] ** 2, rel=1e-3)
    assert "Numbers of nodes" in report.html()
    assert onnx_migrate.migrate(model(OVERFLOWING), simplify=False).report.as_dict()["ranges"] is None


_DECIDING = [
    # What chooses among many stays float32 with all before it; what computes on is narrow.
    ("j = ArgMax<axis = 1, keepdims = 0>(a)  g = Gather<axis = 0>(w, j)  b = MatMul(g, w)  y = Exp(b)", F32, True),
    # A choice for each element changes few of them.
    ("c = Greater(a, x)  n = Neg(x)  g = Where(c, n, a)  b = MatMul(g, w)  y = Exp(b)", F16, True),
    ("f = Floor(a)  b = MatMul(f, w)  y = Exp(b)", F16, True),
    # Both sides are alike at the tie.
    ("z = Sub(a, a)  c = Greater(a, z)  b = Where(c, a, z)  y = Sin(b)", F16, True),
    # All is before the choice.
    ("q = ReduceSum<keepdims = 0>(x)  s = Sub(a, q)  y = Floor(s)", F32, False),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "chooses_in", "is_narrow_behind"), _DECIDING)
def test_what_jumps_near_a_tie_stays_float32(nodes: str, chooses_in: int, is_narrow_behind: bool) -> None:
    text = f"17 (float[64,4] x) => (float[64,4] y) <{W}> {{ a = MatMul(x, w)  {nodes} }}"
    if not is_narrow_behind:
        with pytest.raises(CannotMigrate, match=r"'y'.*: in float16, output 'y': error .* of the elements"):
            converted(text, settings=SEARCH)
        return
    result, _ = converted(text, settings=SEARCH)

    assert types(result)["a"] == chooses_in
    assert types(result)["b"] == F16


def test_a_model_of_which_nothing_may_be_narrow_is_refused_for_what_jumps() -> None:
    """As a reader of tables, whose loop decides the next word by what all nodes before it compute."""
    text = f"""17 (float[64,4] x) => (float[64,4] y) <{W}, int64[1] rows = {{0}}, int64 n = {{2}}, bool go = {{1}},
      int64[64] first = {{{", ".join(["0"] * 64)}}}> {{
      a = MatMul(x, w)  q = ReduceSum<keepdims = 0>(x)
      t, f = Loop (n, go, first) <body = b (int64 i, bool c, int64[64] s) => (bool d, int64[64] u, float[64,4] v) {{
        d = Identity(c)  r = Gather(w, s)  v = Add(a, r)  u = ArgMax<axis = 1, keepdims = 0>(v) }}>
      g = ReduceSum<keepdims = 0>(f, rows)  p = Sub(g, q)  y = Floor(p) }}"""
    with pytest.raises(CannotMigrate, match=r"'y'.*: in float16, output 'y' jumps(?s:.*)--input-data"):
        converted(text, settings=SEARCH)


def test_a_node_on_which_onnx_runtime_fails_as_it_runs_stays_float32() -> None:
    """Of ScatterND with a reduction it has a kernel of float16 that says that it has none (1.32)."""
    source = """18 (float[4] x, float[2] u) => (float[4] y) <int64[2,1] places = {0, 2}> {
        a = Exp(x) [sum] b = ScatterND<reduction = "add">(a, places, u) y = Tanh(b) }"""
    result = check(source, settings=SEARCH)
    feeds = random_feeds(result)
    for way in (UNOPTIMIZED, OPTIMIZED):
        open_model(Runnable(structure=result.SerializeToString()), way).run(feeds)
    assert is_narrow(result)


def test_a_long_chain_of_numbers_that_overflow_stays_float32() -> None:
    """Of each round the first value that leaves the original is the next of the chain."""
    links = "".join(
        f"  c{place + 1} = Sin(c{place})  b{place + 1} = Add(b{place}, c{place + 1})" for place in range(24)
    )
    source = f"""17 (float[4,4] x) => (float[4,4] y) <{W}, float big = {{3e6}}, float small = {{3e-6}}> {{
        a = MatMul(x, w)  c0 = Sigmoid(a)  b0 = Add(c0, big){links}  d = Mul(b24, small)  y = MatMul(d, w) }}"""
    result = check(source, settings=SEARCH)

    assert types(result)["a"] == F16


ADDING_UP = f"""17 (float[2,64] a0) => (float[2,64] y) <float up = {{1.5}}, float down = {{0.66650390625}},
    float half = {{0.5}}> {{
    b = Mul (a0, half)
    {"".join(f"a{at + 1} = Mul (a{at}, {('up', 'down')[at % 2]}) " for at in range(30))}
    y = Sub (a30, b) }}"""


def test_what_optimisation_changes_of_a_narrow_original_is_no_fault_of_the_result() -> None:
    """Optimised, ONNX Runtime fuses BatchNormalization and rounds the weights of the Conv, which nearly cancel, once more."""
    near, one, scale = (int(np.float16(number).view(np.uint16)) for number in (1 + 2**-10, 1, 1.1))
    source = model(f"""17 (float[1,1,4,4] x) => (float[1,1,4,4] y) <float16[1,2,1,1] w = {{{near}, {one | 1 << 15}}},
      float16[1] s = {{{scale}}}, float16[1] zero = {{0}}, float16[1] one = {{{one}}}> {{
      h = Cast <to = 10> (x)  c = Concat <axis = 1> (h, h)  a = Conv (c, w)  n = BatchNormalization (a, s, zero, zero, one)
      k = Shape (x)  l = Cast <to = 7> (k)  r = Reshape (n, l)  y = Cast <to = 1> (r) }}""")

    result, _ = converted(source, settings=SEARCH)

    assert len(result.graph.node) == len(source.graph.node) - 1  # the Cast that changes nothing


def test_where_rounding_adds_up_parts_of_the_model_stay_float32() -> None:
    """No node makes the error alone: each adds its rounding, and the difference makes all of them twice as large."""
    result = check(ADDING_UP, settings=SEARCH)
    narrow = [name for name, kind in types(result).items() if kind == F16 and name.startswith("a")]
    assert len(narrow) >= 8


def test_a_model_beyond_its_limit_is_refused_though_integers_could_be_given_back() -> None:
    """Each half of what floats compute is needed, and the model that is narrow whole is 1.1 times beyond the limit."""
    with pytest.raises(
        CannotMigrate, match=r"output 'y': error 0\.5\d %.*limit 0\.5 %.*whichever nodes stay"
    ):
        converted(
            """17 (float[2,64] x) => (float[2,64] y, int64 k) <float up = {1.5}, float part = {1.37109375}> {
            s = Shape (x) z = Size (x) t = Add (s, z) k = ReduceMax <keepdims = 0, axes = [0]> (t)
            b = Mul (x, part) a = Mul (x, up) y = Sub (a, b) }""",
            settings=SEARCH,
        )


def test_a_reshape_of_weights_is_not_all_that_becomes_narrow() -> None:
    """Simplification folds it; of a model that is narrow already, nothing need change."""
    source = model("""17 (float[64,65] x) => (float[64,65] y) <int64[2] to = {64, 65}> {
      e = Exp (x)  r = Reshape (w, to)  y = Mul (e, r) }""")
    source.graph.initializer.append(numpy_helper.from_array(np.ones((65, 64), np.float32), "w"))

    result, _ = converted(source, keep=("Exp",))
    assert types(result)["y_float16"] == F16

    simplified = onnx_migrate.migrate(source, precision="fp16", keep_fp32=("Exp",), verify=False).model
    again = onnx_migrate.migrate(simplified, precision="fp16", keep_fp32=("Exp",), verify=False)
    assert again.report.outcome == "unchanged"


def test_without_islands_no_groups_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "switched", lambda *given: pytest.fail("nothing is to be given back"))
    text = f"17 (float[2,4] x) => (float[2,4] y) <{W}> {{ a = MatMul(x, w)  y = Relu(a) }}"
    assert types(check(text, settings=SEARCH))["a"] == F16


def test_jumps_are_looked_for_where_outputs_are_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is off by little is no jump, and the result is converted again."""
    errors: list[float] = []
    monkeypatch.setattr(
        closeness, "jump", lambda reference, result, found, shares: errors.append(max(found.values()))
    )
    text = ADDING_UP.replace("float[2,64] y)", "float[2,64] y, int64[2] k)").replace(
        "b = Mul", "k = ArgMax<axis = 1, keepdims = 0> (a0)  b = Mul"
    )
    check(text, settings=SEARCH)
    assert errors
    assert max(errors) <= 5e-3


def test_large_weights_of_a_result_are_not_copied_to_be_run(tmp_path: Path) -> None:
    proto = model("17 (float[2,64] x) => (float[2,64] y) { a = MatMul(x, w)  y = MatMul(a, v) }")
    weights = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    proto.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    proto.graph.initializer.append(numpy_helper.from_array(weights[::-1], "v"))
    onnx.save(proto, tmp_path / "m.onnx")
    result = make_pass("precision", kind="fp16").run(files.load(tmp_path / "m.onnx"), ChangeLog())
    feeds = {"x": np.ones((2, 64), np.float32)}
    expected = open_model(Runnable(structure=files.inline(result).SerializeToString()), STRICT).run(feeds)
    with Prover(Settings()) as prover:
        runnable = prover.runnable(result)
        given = open_model(runnable, STRICT).run(feeds)

    assert runnable.weights is result.weights
    np.testing.assert_array_equal(given["y"], expected["y"])


def test_a_search_says_how_far_it_has_come() -> None:
    heard: list[str] = []
    onnx_migrate.migrate(
        model(OVERFLOWING), precision="fp16", simplify=False, progress=lambda event: heard.append(str(event))
    )

    rounds = [text.partition(": ")[2] for text in heard if ": round" in text]
    assert re.fullmatch(r"round 1: error inf times its limit, \d+ bytes of weights in float32", rounds[0])
    assert re.fullmatch(r"round \d: error 0\.\d+ times its limit, \d+ bytes .*", rounds[-1])
