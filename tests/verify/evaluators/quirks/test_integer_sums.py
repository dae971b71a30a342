"""Sums of products of 8-bit integers are those of the standard, also where ONNX Runtime's own saturate."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError, open_model
from onnx_migrate.verify.evaluators.quirks import integer_sums
from onnx_migrate.verify.evaluators.quirks.integer_sums import exact_sums, saturates, with_exact_sums
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import RUNTIME
from tests.verify.harness import net, runnable, verdict

Array = np.ndarray[Any, Any]

A, B = np.full((4, 64), 255, np.uint8), np.full((64, 16), 127, np.int8)
A[0, ::3], B[::5, 0] = 7, -128

MAT_MUL = "(uint8[4,64] a, int8[64,16] b) => (int32[4,16] y) { y = MatMulInteger (a, b) }"


@pytest.fixture
def without_vnni(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the evaluator take the processor for one without VNNI, whatever it is."""
    monkeypatch.setattr(integer_sums, "saturates", lambda: True)


def product(a: Array, b: Array, za: Any = 0, zb: Any = 0) -> Array:
    return (a.astype(np.int64) - za) @ (b.astype(np.int64) - zb)


def outputs(model: str | onnx.ModelProto, **feeds: Array) -> list[Array]:
    """Return the output y of a model without optimisation and with it."""
    return [open_model(runnable(model), level).run(feeds)["y"] for level in LEVELS]


@pytest.mark.usefixtures("without_vnni")
@pytest.mark.parametrize("zero", ["", ", za", ", za, zb", ", za, zb of columns"])
def test_mat_mul_integer(zero: str) -> None:
    shape = "[16]" if "columns" in zero else ""
    zb = np.arange(16, dtype=np.int8) - 100 if shape else np.array(-3, np.int8)
    za = np.array(9, np.uint8)
    graph = f"""(uint8[4,64] a, int8[64,16] b, uint8 za, int8{shape} zb) => (int32[4,16] y)
        {{ y = MatMulInteger (a, b{zero.removesuffix(" of columns")}) }}"""
    expected = product(A, B, za.astype(np.int64) if zero else 0, zb.astype(np.int64) if "zb" in zero else 0)

    for found in outputs(graph, a=A, b=B, za=za, zb=zb):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("without_vnni")
@skip_if(RUNTIME < (1, 32), "ONNX Runtime before 1.32 convolves uint8 alone", Elsewhere.NEWEST)
def test_conv_integer_of_int8_pixels() -> None:
    x, w = np.full((1, 32, 3, 3), 127, np.int8), np.full((4, 32, 3, 3), 255, np.uint8)
    zero = np.array(-100, np.int8)
    graph = """(int8[1,32,3,3] x, uint8[4,32,3,3] w, int8 zx) => (int32[1,4,3,3] y)
        { y = ConvInteger <pads = [1, 1, 1, 1]> (x, w, zx) }"""

    for found in outputs(graph, x=x, w=w, zx=zero):
        assert found[0, 0, 1, 1] == 227 * 255 * 32 * 9
        assert found[0, 0, 0, 0] == 227 * 255 * 32 * 4, "what is padded is the zero point"


QUANTIZED = "uint8[4,64] a, float sa, uint8 za, int8[64,16] b, float sb, int8 zb, float sy, uint8 zy"
SCALES = {
    "sa": np.float32(0.5), "sb": np.float32(0.25), "sy": np.float32(2000),
    "za": np.uint8(3), "zb": np.int8(5), "zy": np.uint8(1),
}  # fmt: skip


@pytest.mark.usefixtures("without_vnni")
def test_q_linear_mat_mul_and_q_linear_conv() -> None:
    feeds = {"a": A, "b": B, **{name: np.asarray(value) for name, value in SCALES.items()}}
    expected = np.round(product(A, B, 3, 5) * (0.5 * 0.25 / 2000)) + 1
    matrix = f"({QUANTIZED}) => (uint8[4,16] y) {{ y = QLinearMatMul (a, sa, za, b, sb, zb, sy, zy) }}"
    image = f"""({QUANTIZED}) => (uint8[4,16] y) <int64[4] pixels = {{4, 64, 1, 1}}, int64[4] weights = {{16, 64, 1, 1}},
        int64[2] flat = {{4, 16}}> {{
        x = Reshape (a, pixels) t = Transpose (b) w = Reshape (t, weights)
        c = QLinearConv (x, sa, za, w, sb, zb, sy, zy) y = Reshape (c, flat) }}"""

    for graph in (matrix, image):
        for found in outputs(graph, **feeds):
            np.testing.assert_array_equal(found, expected)
    assert len(np.unique(expected)) > 3


CONTRIB = '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g '


@pytest.mark.usefixtures("without_vnni")
@pytest.mark.parametrize(
    ("node", "extra", "scale"),
    [
        ("com.microsoft.MatMulIntegerToFloat (a, b, sa, sb, za, zb)", "", 0.5 * 0.25),
        ("com.microsoft.QGemm (a, sa, za, b, sb, zb)", "", 0.5 * 0.25),
        (
            "com.microsoft.DynamicQuantizeMatMul (f, b, sb, zb)",
            "f = DequantizeLinear (a, sa, za)",
            0.5 * 0.25,
        ),
    ],
)
def test_operators_of_the_runtime(node: str, extra: str, scale: float) -> None:
    a = A.copy()
    a[0, 0] = 0  # the range of the float numbers is that of uint8
    feeds = {"a": a, "b": B, **{name: np.asarray(value) for name, value in SCALES.items()}}
    model = onnx.parser.parse_model(f"{CONTRIB} ({QUANTIZED}) => (float[4,16] y) {{ {extra} y = {node} }}")

    for found in outputs(model, **feeds):
        np.testing.assert_allclose(found, product(a, B, 3, 5) * scale, rtol=1e-5)


@pytest.mark.usefixtures("without_vnni")
def test_q_attention_is_that_of_its_floats() -> None:
    """Of one head and equal keys: the values are averaged, so that each sum of the product of integers is in the output."""
    weights = np.full((64, 48), 127, np.int8)
    weights[:, 32:] -= np.arange(16, dtype=np.int8)
    x = np.full((1, 4, 64), 255, np.uint8)
    graph = """(uint8[1,4,64] x, int8[64,48] w, float[48] b, float xs, float ws, uint8 xz, int8 wz) => (float[1,4,16] y)
        { y = com.microsoft.QAttention <num_heads = 1> (x, w, b, xs, ws, , xz, wz) }"""
    feeds = {
        "x": x,
        "w": weights,
        "b": np.zeros(48, np.float32),
        "xz": np.array(3, np.uint8),
        "wz": np.array(5, np.int8),
    }
    feeds |= {"xs": np.array(0.01, np.float32), "ws": np.array(0.02, np.float32)}
    expected = (255 - 3) * 64 * (122 - np.arange(16)) * 0.01 * 0.02

    for found in outputs(onnx.parser.parse_model(f"{CONTRIB} {graph}"), **feeds):
        np.testing.assert_allclose(found, np.broadcast_to(expected, (1, 4, 16)), rtol=1e-5)


@pytest.mark.usefixtures("without_vnni")
def test_dynamic_quantize_lstm_is_near_an_lstm_of_floats() -> None:
    """Its weights are so large that two products do not fit in int16, and its scales so small that the gates do not saturate."""
    x = np.linspace(0.5, 1, 4 * 64, dtype=np.float32).reshape(4, 1, 64)
    sign = np.resize([1, -1, 1], 12)
    weights = {"w": np.full((1, 64, 12), 127) * sign, "r": np.full((1, 3, 12), 127) * sign}
    text = """(float[4,1,64] x, int8[1,64,12] w, int8[1,3,12] r, float[1] s, int8[1] z) => (float[4,1,1,3] y)
        { y = com.microsoft.DynamicQuantizeLSTM <hidden_size = 3> (x, w, r, , , , , , s, z, s, z) }"""
    feeds: dict[str, Any] = {name: value.astype(np.int8) for name, value in weights.items()}
    feeds |= {"x": x, "s": np.array([2e-4], np.float32), "z": np.zeros(1, np.int8)}
    floats = """(float[4,1,64] x, float[1,12,64] w, float[1,12,3] r) => (float[4,1,1,3] y)
        { y = LSTM <hidden_size = 3> (x, w, r) }"""
    real = {name: np.float32(value * 2e-4).transpose(0, 2, 1) for name, value in weights.items()}
    expected = outputs(floats, x=x, **real)[0]

    for found in outputs(onnx.parser.parse_model(f"{CONTRIB} {text}"), **feeds):
        np.testing.assert_allclose(found, expected, atol=0.01)
    assert np.ptp(expected) > 0.1


@pytest.mark.usefixtures("without_vnni")
def test_in_sub_graphs_and_functions_and_read_twice() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "own": 1]>
        g (uint8[4,64] a, int8[64,16] b, bool c) => (int32[4,16] y) {
          u = If (c) <then_branch = t () => (int32[4,16] p) { p = MatMulInteger (a, b) },
                      else_branch = e () => (int32[4,16] q) { r = MatMulInteger (a, b) s = MatMulInteger (a, b) q = Add (r, s) }>
          v = own.Product (a, b)
          y = Add (u, v)
        }
        <domain: "own", opset_import: ["": 17]> Product (k, l) => (m) { m = MatMulInteger (k, l) }""")

    for c, times in ((True, 2), (False, 3)):
        for found in outputs(model, a=A, b=B, c=np.array(c)):
            np.testing.assert_array_equal(found, times * product(A, B))
    assert with_exact_sums(model) == 4


@pytest.mark.usefixtures("without_vnni")
def test_products_that_the_optimiser_makes() -> None:
    """Of constant int8 weights, dequantized; without optimisation they are products of floats."""
    graph = """(uint8[4,64] a) => (uint8[4,16] y)
        <float sa = {0.5}, uint8 za = {3}, float sb = {0.25}, int8 zb = {5}, float sy = {2000.0}, uint8 zy = {1}> {
        f = DequantizeLinear (a, sa, za) g = DequantizeLinear (b, sb, zb) h = MatMul (f, g) y = QuantizeLinear (h, sy, zy) }"""
    proto = net(graph)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(B, "b"))
    expected = np.round(product(A, B, 3, 5) * (0.5 * 0.25 / 2000)) + 1

    for found in outputs(proto, a=A):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures("without_vnni")
def test_constants_that_share_a_zero_point_load() -> None:
    """With the option of ONNX Runtime 1.32 alone, they do not."""
    graph = """(float[2] x) => (float[2] y) <float s = {0.5}, int8 z = {1}, int8[2] w = {100, 2}, int8[2] v = {-100, 3}>
        { a = DequantizeLinear (w, s, z) b = DequantizeLinear (v, s, z) c = Mul (a, x) y = Mul (b, c) }"""

    for found in outputs(graph, x=np.ones(2, np.float32)):
        np.testing.assert_array_equal(found, [49.5 * -50.5, 0.5])


@pytest.mark.parametrize(
    "graph",
    [
        "(uint8[4,64] a, uint8[64,16] b) => (int32[4,16] y) { y = MatMulInteger (a, b) }",
        "(int8[4,64] a, int8[64,16] b) => (int32[4,16] y) { y = MatMulInteger (a, b) }",
        "(uint8[1,1,4,4] a, int8[1,1,2,2] b) => (int32[1,1,3,3] y) { y = ConvInteger (a, b) }",
        "(float[N,4] x) => (float[N,4] y) { y = Relu (x) }",
    ],
)
def test_what_is_right_anyway_stays(graph: str) -> None:
    model = net(graph)
    before = model.SerializeToString()

    assert with_exact_sums(model) == 0
    assert model.SerializeToString() == before


@pytest.mark.usefixtures("without_vnni")
def test_an_operand_of_unknown_type_is_a_limit_of_the_runtime() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "own": 1]>
        g (uint8[4,64] a) => (int32[4,16] y) { b = own.Weights () y = MatMulInteger (a, b) }""")
    with pytest.raises(EvaluationError, match="the element type of 'b' is not known") as caught:
        with_exact_sums(model)
    assert (caught.value.loading, caught.value.limit) == (True, True)


def test_the_processor_is_asked_only_for_models_of_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> bool:
        raise AssertionError("asked")

    monkeypatch.setattr(integer_sums, "saturates", asked)
    plain = runnable("(float[N,4] x) => (float[N,4] y) { y = Relu (x) }")
    assert exact_sums(plain, True).runnable is plain
    with pytest.raises(AssertionError, match="asked"):
        exact_sums(runnable(MAT_MUL), True)


FLOATS = """(uint8[4,64] a, int8[64,16] b) => (int32[4,16] y)
    { f = Cast <to = 1> (a) g = Cast <to = 1> (b) h = MatMul (f, g) y = Cast <to = 6> (h) }"""


@pytest.mark.usefixtures("saturating")
def test_a_result_that_is_right_is_not_refused_for_the_processor() -> None:
    """The original is what ONNX Runtime computes wrongly: the result multiplies floats."""
    found = verdict(MAT_MUL, FLOATS)
    assert found.kind is Kind.VERIFIED
    assert any("no VNNI" in note for note in found.notes)


@pytest.mark.usefixtures("saturating")
def test_without_the_remedy_the_right_result_would_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated processor is one."""
    assert saturates()
    monkeypatch.setattr(integer_sums, "saturates", lambda: False)
    assert verdict(MAT_MUL, FLOATS).kind is Kind.DIFFERS
