"""Masks that a narrow type cannot hold: the lowest number where all readers allow it, else float32; never NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from onnx_migrate import files
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.evaluators import STRICT, open_model
from tests.harness import model, require_opset

F16, F32 = TensorProto.FLOAT16, TensorProto.FLOAT
LOWEST = -3.4028234663852886e38

W = "float[4,4] w = {" + ", ".join(f"{value:.4f}" for value in np.linspace(-1, 1, 16)) + "}"

MASKS = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]])


def attention(nodes: str, opset: int = 17, constants: str = "", number: float = LOWEST) -> onnx.ModelProto:
    """Return attention whose `nodes` make `p` of `scores`, the truth values `k` of a mask, and the constant `c`."""
    return model(
        f"""{opset} (float[4,4] x, int64[4,4] mask) => (float[4,4] y) <{W}, float c = {{{number!r}}}, float zero = {{0}},
        float one = {{1}}, float gain = {{40}}{constants}> {{
        q = MatMul(x, w)  s0 = MatMul(q, x)  scores = Mul(s0, gain)  k = Cast<to = 9>(mask)  {nodes}  y = MatMul(p, w) }}"""
    )


def converted(original: onnx.ModelProto, kind: str, **options: Any) -> onnx.ModelProto:
    return files.inline(make_pass("precision", kind=kind, **options).run(Model(original), ChangeLog()))


def node_types(proto: onnx.ModelProto) -> dict[str, int]:
    values = onnx.shape_inference.infer_shapes(proto).graph.value_info
    return {value.name: value.type.tensor_type.elem_type for value in values}


def check(original: onnx.ModelProto, result: onnx.ModelProto, share: float) -> None:
    """Compare on masks that hide rows: no NaN or infinity, and the attention of a hidden row spreads as the original's."""
    rng = np.random.default_rng(0)
    for masks in (MASKS, np.zeros_like(MASKS), np.ones_like(MASKS)):
        feeds = {"x": rng.standard_normal((4, 4)).astype(np.float32), "mask": masks}
        expected, given = (
            open_model(Runnable(structure=proto.SerializeToString()), STRICT).run(feeds)["y"]
            for proto in (original, result)
        )
        finite = np.isfinite(expected)
        assert np.isfinite(given[finite]).all()
        off = np.abs(given - expected)[finite].max(initial=0)
        assert off <= share * np.abs(expected[finite]).max(initial=0)


NARROW = {
    "where": "m = Where(k, scores, c)  p = Softmax(m)",
    "where, the other way": "n = Not(k)  m = Where(n, c, scores)  p = Softmax(m)",
    "behind an Expand": "h = Shape(scores)  e = Expand(c, h)  m = Where(k, scores, e)  p = Softmax(m)",
    "a made constant": f"h = Shape(scores)  e = ConstantOfShape<value = float[1] {{{LOWEST!r}}}>(h)"
    "  m = Where(k, scores, e)  p = Softmax(m)",
    "two masks": "m0 = Where(k, scores, c)  m = Where(k, m0, c)  p = Softmax(m)",
    "a bound": "n = Neg(c)  b = Clip(scores, c, n)  m = Where(k, b, c)  p = Softmax(m)",
    "Max with it": "b = Max(scores, c)  m = Where(k, b, c)  p = Softmax(m)",
    "moved": "m0 = Where(k, scores, c)  t = Transpose(m0)  m = Transpose(t)  p = Softmax(m)",
    "in a branch": """any = ReduceMax<keepdims = 0>(x)  b = Greater(any, zero)
        p = If (b) <then_branch = t () => (float[4,4] o) { m = Where(k, scores, c)  o = Softmax(m) },
                    else_branch = e () => (float[4,4] n) { l = Where(k, scores, c)  n = Softmax(l) }>""",
}

WIDE = {
    "added": "b = Where(k, zero, c)  m = Add(scores, b)  p = Softmax(m)",
    "1 - mask": "f = Cast<to = 1>(mask)  i = Sub(one, f)  b = Mul(i, c)  m = Add(scores, b)  p = Softmax(m)",
    "subtracted": "f = Cast<to = 1>(mask)  i = Sub(one, f)  n = Neg(c)  b = Mul(i, n)  m = Sub(scores, b)  p = Softmax(m)",
    "added twice": "b = Where(k, zero, c)  m0 = Add(scores, b)  m = Add(m0, b)  p = Softmax(m)",
    "the least of both": "b = Where(k, zero, c)  m0 = Add(scores, b)  m = Max(m0, c)  p = Softmax(m)",
    "scaled": "m0 = Where(k, scores, c)  m = Div(m0, gain)  p = Softmax(m)",
    "a logarithm": "m = Where(k, scores, c)  l = LogSoftmax(m)  p = Exp(l)",
    "written out": """m = Where(k, scores, c)  t = ReduceMax<axes = [-1], keepdims = 1>(m)  d = Sub(m, t)  e = Exp(d)
        a = Constant<value = int64[1] {-1}>()  r = ReduceSum(e, a)  p = Div(e, r)""",
    "a cast constant": "d = Constant<value = double {-1e30}>()  e = Cast<to = 1>(d)  m = Where(k, scores, e)  p = Softmax(m)",
    "integers": """i1 = Constant<value = int64 {1}>()  i = Sub(i1, mask)  n = Constant<value = int64 {-1000000000}>()
        j = Mul(i, n)  b = Cast<to = 1>(j)  m = Add(scores, b)  p = Softmax(m)""",
    "two numbers": """d = Constant<value = float {-1e30}>()  f = Cast<to = 9>(x)  m0 = Where(f, scores, d)
        m = Where(k, m0, c)  p = Softmax(m)""",
    "carried by a loop": """n = Constant<value = int64 {2}>()  go = Constant<value = bool {1}>()
        m = Loop (n, go, scores) <body = b (int64 i, bool g, float[4,4] v) => (bool h, float[4,4] o) {
          h = Identity(g)  o = Where(k, v, c) }>  p = Softmax(m)""",
    "given out by a branch": """any = ReduceMax<keepdims = 0>(x)  b = Greater(any, zero)
        m = If (b) <then_branch = t () => (float[4,4] o) { o = Where(k, scores, c) },
                    else_branch = e () => (float[4,4] q) <float c2 = {-1e30}> { q = Where(k, scores, c2) }>  p = Softmax(m)""",
}


@pytest.mark.parametrize("nodes", NARROW.values(), ids=NARROW.keys())
def test_a_mask_that_is_only_moved_becomes_the_lowest_number(nodes: str) -> None:
    original = attention(nodes)
    result = converted(original, "fp16")

    assert all(kind == F16 for name, kind in node_types(result).items() if name in ("m", "m0", "p"))
    check(original, result, 0.05)


@pytest.mark.parametrize("nodes", WIDE.values(), ids=WIDE.keys())
def test_a_mask_that_would_overflow_or_be_told_apart_stays_float32(nodes: str) -> None:
    original = attention(nodes)
    result = converted(original, "fp16")

    known = node_types(result)
    assert known["m"] == F32
    assert known["q"] == F16
    check(original, result, 0.05)


def test_a_mask_that_is_compared_stays_float32_as_far_as_that() -> None:
    original = attention("b = Where(k, zero, c)  e = Equal(b, c)  m = Where(e, c, scores)  p = Softmax(m)")
    result = converted(original, "fp16")

    known = node_types(result)
    assert (known["b"], known["m"]) == (F32, F16)
    check(original, result, 0.05)


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
@pytest.mark.parametrize("number", [LOWEST, -1e9, -1e5, -65505, -65504, -40000])
@pytest.mark.parametrize("nodes", [NARROW["where"], WIDE["added"], WIDE["1 - mask"], WIDE["added twice"]])
def test_no_number_of_a_mask_makes_nan(nodes: str, number: float, kind: str) -> None:
    require_opset(22 if kind == "bf16" else 17)
    original = attention(nodes, number=number)

    check(original, converted(original, kind, may_raise=True), 0.05 if kind == "fp16" else 2.0)


def test_bfloat16_absorbs_what_is_added_to_a_mask_once() -> None:
    once, twice = (converted(attention(WIDE[name]), "bf16") for name in ("added", "added twice"))

    assert node_types(once)["m"] == TensorProto.BFLOAT16
    assert node_types(twice)["m"] == F32


def test_a_large_mask_that_is_read_in_both_types_stays_float32() -> None:
    """It would be cast to the narrow type, in which it is infinite."""
    table = ", ".join([repr(LOWEST), "0"] * 200)
    source = model(
        f"""17 (float[2,400] x, bool[2,400] k) => (float[2,400] y, float[2,400] z)
        <float[400] t = {{{table}}}, float one = {{1}}> {{
        v = Mul(x, one)  m = Where(k, v, t)  y = Softmax(m)  a = Add(v, t)  z = Softmax(a) }}"""
    )
    result = converted(source, "fp16")

    known = node_types(result)
    assert (known["m"], known["a"], known["v"]) == (F32, F32, F16)
    assert next(t for t in result.graph.initializer if t.name == "t").data_type == F32


def test_a_scale_is_no_mask() -> None:
    """The product of a constant and any floats may be small, so that what adds to it is narrow."""
    source = model(
        f"17 (float[4,4] x) => (float[4,4] y) <{W}, float k = {{20000}}> {{ a = MatMul(x, w)  b = Mul(a, k)  c = Add(b, a)"
        "  d = Tanh(c)  y = MatMul(d, w) }"
    )
    assert node_types(converted(source, "fp16"))["c"] == F16


@pytest.mark.parametrize(
    ("node", "kept"),
    [
        ("b = LeakyRelu<alpha = 1e9>(a)", F32),
        ("b = LeakyRelu<alpha = 0.1>(a)", F16),
        ("b = Elu<alpha = 70000.0>(a)", F32),
    ],
)
def test_an_attribute_that_overflows_keeps_its_node(node: str, kept: int) -> None:
    source = model(
        f"17 (float[4,4] x) => (float[4,4] y) <{W}> {{ a = MatMul(x, w)  {node}  y = MatMul(b, w) }}"
    )

    assert node_types(converted(source, "fp16")).get("b", F16) == kept


def test_an_overridable_mask_stays_float32() -> None:
    """A caller may give the input another number than its default."""
    original = attention(NARROW["where"])
    original.graph.input.append(onnx.helper.make_tensor_value_info("c", F32, []))
    result = converted(original, "fp16")

    assert node_types(result)["m"] == F32
    check(original, result, 0.05)


def test_the_search_keeps_what_a_float_mask_of_the_caller_makes_infinite() -> None:
    source = model(
        f"""17 (float[4,4] x, float[4,4] mask) => (float[4,4] y) <{W}> {{
        q = MatMul(x, w)  m = Add(q, mask)  p = Softmax(m)  y = MatMul(p, w) }}"""
    )
    result = converted(source, "fp16", settings=Settings(isolated=False))
    feeds = {"x": np.ones((4, 4), np.float32), "mask": np.full((4, 4), LOWEST, np.float32)}

    given = open_model(Runnable(structure=result.SerializeToString()), STRICT).run(feeds)["y"]
    assert np.isfinite(given).all()
