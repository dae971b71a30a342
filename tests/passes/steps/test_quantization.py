"""QuantizeLinear and DequantizeLinear: per tensor, per axis and by block, of all types and precisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.harness import loads, model, random_feeds, run
from tests.steps import check_down, lower, refuses, special_values

ENDS = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16, "int32": np.int32}


def dequantize(
    opset: int, kind: str, x: str = "[2,6,5]", scale: str = "", attributes: str = "", dtype: str = "float",
    zero: bool = True, out: str = "",
) -> str:  # fmt: skip
    zero_point = f", {kind}{scale} z" if zero else ""
    return f"""{opset} ({kind}{x} x, {dtype}{scale} s{zero_point}) => ({out or dtype}{x} y)
        {{ y = DequantizeLinear {f"<{attributes}>" if attributes else ""} (x, s{", z" if zero else ""}) }}"""


def quantize(
    opset: int, kind: str, x: str = "[2,6,5]", scale: str = "", attributes: str = "", dtype: str = "float",
    zero: bool = True,
) -> str:  # fmt: skip
    zero_point = f", {kind}{scale} z" if zero else ""
    return f"""{opset} ({dtype}{x} x, {dtype}{scale} s{zero_point}) => ({kind}{x} y)
        {{ y = QuantizeLinear {f"<{attributes}>" if attributes else ""} (x, s{", z" if zero else ""}) }}"""


def check(source: str, *targets: int, **more: Any) -> None:
    """Check with data that covers the type, positive scales and small zero points."""
    base = model(source)
    feeds = random_feeds(base)
    rng = np.random.default_rng(1)
    kind = feeds["x"].dtype
    if kind.kind in "iu":
        info = np.iinfo(kind)
        feeds["x"] = rng.integers(info.min, info.max, feeds["x"].shape, endpoint=True, dtype=np.int64).astype(
            kind
        )
    else:
        specials = special_values(kind)
        if kind == np.float16 or "block_size" in source:  # whose kernels turn infinities into the wrong end
            specials = specials[np.abs(specials) < 1e4]
        feeds["x"] = np.concatenate([specials, np.ravel(feeds["x"] * 9)])[: feeds["x"].size].reshape(
            feeds["x"].shape
        )
    if "s" in feeds:
        feeds["s"] = (np.abs(feeds["s"]) + 0.25).astype(feeds["s"].dtype)
    if "z" in feeds and feeds["z"].dtype == np.int32:  # for which the standard allows 0 alone
        feeds["z"] = np.zeros_like(feeds["z"])
    check_down(source, *targets, feeds=feeds, **more)


NO_RANK = {"unranked": "needs-rank"}


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32"])
def test_dequantize_per_tensor(kind: str) -> None:
    check(dequantize(10, kind), 9, 7)
    check(dequantize(13, kind), 12, 11, 9, refused=NO_RANK)
    check(dequantize(13, kind, scale="[1]", x="[4]"), 12, 9, refused=NO_RANK)
    check(dequantize(21, kind, zero=False), 20, 17, 10, refused=None, variants=("plain", "symbolic", "if"))


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_dequantize_per_axis(kind: str, axis: int | None) -> None:
    size = {0: 2, -1: 5}.get(axis, 6)  # type: ignore[arg-type]
    attributes = "" if axis is None else f"axis = {axis}"
    check(dequantize(13, kind, scale=f"[{size}]", attributes=attributes), 12, 10, 9, refused=NO_RANK)


@pytest.mark.parametrize("zeros", ["{0, 0, 0}", "{5, 5, 5}", "{1, 2, 3}"])
@pytest.mark.parametrize("kind", ["int8", "uint8", "int32"])
def test_dequantize_per_axis_with_known_zero_points(kind: str, zeros: str) -> None:
    if kind == "int32" and zeros != "{0, 0, 0}":
        return
    source = f"""13 ({kind}[2,3,4] x) => (float[2,3,4] y)
        <float[3] s = {{0.1, 0.7, 3.3}}, {kind}[3] z = {zeros}> {{ y = DequantizeLinear(x, s, z) }}"""
    check(source, 12, 10, 9, 7, refused=NO_RANK)
    check(source.replace(", z)", ")"), 12, 10, 9, 7, refused=NO_RANK)


@pytest.mark.parametrize("kind", ["int16", "uint16"])
def test_dequantize_words(kind: str) -> None:
    check(dequantize(21, kind), 20, 13, refused=NO_RANK)
    check(dequantize(21, kind, scale="[6]"), 20, 13, 10, refused=NO_RANK)
    check(dequantize(21, kind, zero=False, dtype="float16"), 20, 13, refused=NO_RANK)


@pytest.mark.parametrize(("axis", "scale"), [(1, "[2,2,5]"), (-1, "[2,6,3]"), (0, "[1,6,5]")])
@pytest.mark.parametrize("kind", ["int8", "uint16"])
def test_dequantize_blocks(kind: str, axis: int, scale: str) -> None:
    block = {1: 3, -1: 2, 0: 2}[axis]
    source = dequantize(21, kind, scale=scale, attributes=f"axis = {axis}, block_size = {block}")
    check(source, 20, 13, 11, refused=NO_RANK)


@pytest.mark.parametrize(
    ("dtype", "wanted", "number"), [("float", "float16", 10), ("float16", "float", 1), ("float", "float", 1)]
)
def test_dequantize_output_dtype(dtype: str, wanted: str, number: int) -> None:
    source = dequantize(
        23, "uint8", dtype=dtype, out=wanted, attributes=f"output_dtype = {number}", scale="[6]"
    )
    check(source, 22, 18, 12, variants=("plain", "symbolic", "if"))


def test_the_zero_point_tells_the_type() -> None:
    source = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> graph (uint8[2,3] a, uint8[2,3] b) => (float[2,3] y)
        <float s = {0.5}, uint8 z = {3}>
        { q = com.microsoft.QLinearAdd (a, s, z, b, s, z, s, z) y = DequantizeLinear(q, s, z) }"""
    check_down(source, 20, 13, 9, variants=("plain", "if"))


def test_dequantize_half_scale() -> None:
    check(dequantize(19, "int8", dtype="float16"), 18, 13)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_quantize_per_tensor(kind: str) -> None:
    check(quantize(10, kind), 9, 8, 7)
    check(quantize(13, kind), 12, 11, 9, refused=NO_RANK)
    check(quantize(21, kind, scale="[1]", x="[30]"), 20, 17, 10, variants=("plain", "symbolic", "if"))


def test_quantize_without_zero_point_gives_uint8() -> None:
    check(quantize(13, "uint8", zero=False), 12, 9, refused=NO_RANK)


def test_quantize_of_integers() -> None:
    check(quantize(13, "uint8", dtype="int32").replace("int32 s", "float s"), 12, 9, refused=NO_RANK)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_quantize_per_axis(axis: int) -> None:
    size = {0: 2, -1: 5}.get(axis, 6)
    check(quantize(13, "int8", scale=f"[{size}]", attributes=f"axis = {axis}"), 12, 10, 9, refused=NO_RANK)


@pytest.mark.parametrize("kind", ["int16", "uint16"])
def test_quantize_words(kind: str) -> None:
    check(quantize(21, kind), 20, 13, refused=NO_RANK)
    check(quantize(21, kind, scale="[6]", dtype="float16"), 20, 13, refused=NO_RANK)


@pytest.mark.parametrize(("kind", "number"), [("int8", 3), ("uint16", 4), ("uint8", 2)])
def test_quantize_output_dtype(kind: str, number: int) -> None:
    source = quantize(21, kind, zero=False, attributes=f"output_dtype = {number}")
    check(source, 20, 13, variants=("plain", "symbolic", "if"))
    check(source.replace("float s", "float[6] s"), 20, 13, variants=("plain", "symbolic", "if"))


@pytest.mark.parametrize("kind", ["int8", "uint16"])
def test_quantize_blocks(kind: str) -> None:
    source = quantize(21, kind, scale="[2,2,5]", attributes="axis = 1, block_size = 3")
    check(source, 20, 13, 11, refused=NO_RANK)


def test_quantize_half_floats() -> None:
    check(quantize(19, "int8", dtype="float16"), 18, 13, 10, variants=("plain", "symbolic", "if"))


def test_quantize_precision() -> None:
    check(quantize(23, "int8", dtype="float16", attributes="precision = 1"), 22, 18)
    mixed = quantize(23, "int8", attributes="precision = 1").replace("float s", "float16 s")
    x = np.linspace(-200, 200, 60, dtype=np.float32).reshape(2, 6, 5)
    feeds = {"x": x, "s": np.array(0.3, np.float16), "z": np.array(3, np.int8)}
    wanted = np.clip(np.rint(x / np.float32(np.float16(0.3))) + 3, -128, 127).astype(np.int8)
    check_down(mixed, 22, 13, feeds=feeds, expected=[wanted], variants=("plain", "if"))
    refuses("no-equal", lower, quantize(23, "int8").replace("float s", "int32 s"), 22)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (quantize(21, "int4"), 20),
        (quantize(19, "float8e4m3fn"), 18),
        (quantize(21, "uint4", zero=False, attributes="output_dtype = 21"), 13),
        (dequantize(21, "uint4"), 20),
        (dequantize(19, "float8e5m2"), 13),
        (dequantize(23, "float4e2m1", zero=False), 22),
        (dequantize(25, "int2"), 24),
    ],
)
def test_values_of_newer_types_are_refused(source: str, target: int) -> None:
    refuses("no-such-type", lower, source, target)


def test_newest_versions_stay() -> None:
    for source in (dequantize(25, "int8"), quantize(25, "uint16")):
        assert len(lower(source, 23)[0].graph.node) == 1
        feeds = random_feeds(model(source))
        feeds["s"] = np.abs(feeds["s"]) + 1
        check_down(source, 24, 23, feeds=feeds)


def test_a_lowered_pair_runs_where_it_should() -> None:
    source = """21 (float[1,3,4] x) => (float[1,3,4] y)
        <float[3] s = {0.1, 0.2, 0.3}, int8[3] z = {0, 1, 2}> { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }"""
    lowered = check_down(source, 17, 13)
    check_down(source, 11, 10, 9, refused=NO_RANK)
    assert loads(lowered)
    assert run(lowered, random_feeds(model(source)))[0].shape == (1, 3, 4)


def words_network(kind: str, weight: str = "int8") -> str:
    """Return a network whose values are quantised to 16 bits and whose weights to 8, as quantisation tools write it."""
    return f"""21 (float[2,4] x) => (float[2,3] y)
        <{weight}[4,3] w = {{90, -100, 3, 127, -128, 5, 7, 33, -77, 12, 100, -1}}, float ws = {{0.01}}, {weight} wz = {{0}},
         float s = {{0.0001}}, {kind} z = {{0}}>
        {{ q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z) b = DequantizeLinear (w, ws, wz)
           m = MatMul (a, b) p = QuantizeLinear (m, s, z) y = DequantizeLinear (p, s, z) }}"""


def test_weights_between_values_of_words_are_written_out() -> None:
    """ONNX Runtime's optimisations would otherwise round the data of such a MatMul to 8 bits, as with quantised weights alone."""
    source = model(words_network("int16"))
    result, _ = lower(source, 17)
    assert not [node for node in result.graph.node if node.op_type == "DequantizeLinear"]
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)}
    before = run(source, feeds)[0]
    optimized = ort.InferenceSession(result.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(run(result, feeds)[0], before)
    np.testing.assert_allclose(optimized.run(None, feeds)[0], before, rtol=0, atol=1.01e-4)  # one step


def test_weights_between_values_of_bytes_stay() -> None:
    """Weights whose neighbours stay quantised to 8 bits stay with them."""
    result, _ = lower(model(words_network("int8")), 17)
    assert [node.op_type for node in result.graph.node].count("DequantizeLinear") == 3
