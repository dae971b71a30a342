"""MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv below opset 10."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.harness import model, random_feeds, reference
from tests.steps import check_down, lower, refuses

Feeds = dict[str, np.ndarray[Any, Any]]


def whole(source: str, seed: int = 0) -> Feeds:
    """Return feeds over the whole range of each integer type, and small positive scales."""
    rng = np.random.default_rng(seed)
    feeds: Feeds = {}
    for name, value in random_feeds(model(source)).items():
        if value.dtype.kind in "iu" and value.dtype.itemsize == 1:
            info = np.iinfo(value.dtype)
            feeds[name] = rng.integers(info.min, info.max, value.shape, endpoint=True).astype(value.dtype)
        else:
            feeds[name] = (
                (np.abs(value) / 50 + 0.01).astype(value.dtype) if value.dtype.kind == "f" else value
            )
    return feeds


@pytest.mark.parametrize(("a", "b"), [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
def test_mat_mul_integer(a: str, b: str) -> None:
    header = '<ir_version: 5, opset_import: ["": 10]> graph'
    for zeros, names in (
        (f", {a} za, {b} zb", ", za, zb"), (f", {a} za, {b}[4] zb", ", za, zb"), (f", {a}[3] za", ", za"), ("", ""),
    ):  # fmt: skip
        source = f"{header} ({a}[2,3,5] a, {b}[5,4] b{zeros}) => (int32[2,3,4] y) {{ y = MatMulInteger(a, b{names}) }}"
        feeds = whole(source)
        expected = None if (a, b) != ("int8", "int8") and "[3]" not in zeros else by_hand(feeds)
        variants = ("plain", "symbolic", "if")
        check_down(source, 9, 8, 7, feeds=feeds, expected=expected, variants=variants)


def by_hand(feeds: Feeds) -> list[np.ndarray[Any, Any]]:
    rows = feeds.get("za", np.array(0)).astype(np.int32)
    rows = rows[:, None] if rows.ndim else rows
    return [
        (feeds["a"].astype(np.int32) - rows)
        @ (feeds["b"].astype(np.int32) - feeds.get("zb", np.array(0)).astype(np.int32))
    ]


def test_conv_integer() -> None:
    header = '<ir_version: 5, opset_import: ["": 10]> graph'
    for kind, attributes, zeros, names in (
        ("uint8", "pads = [1, 1, 1, 1], strides = [2, 1]", ", uint8 zx, uint8 zw", ", zx, zw"),
        ("uint8", "group = 2", ", uint8 zx", ", zx"),
        ("uint8", 'auto_pad = "SAME_UPPER"', "", ""),
    ):
        channels = 2 if "group" in attributes else 4
        source = f"""{header} (uint8[1,4,6,5] x, {kind}[4,{channels},3,3] w{zeros}) => (int32[a,b,c,d] y)
            {{ y = ConvInteger<{attributes}> (x, w{names}) }}"""
        check_down(
            source, 9, 7, feeds=whole(source), refused={"symbolic": "needs-shape", "unranked": "needs-shape"}
        )


def large(channels: int, fixed: bool = False) -> onnx.ModelProto:
    weights = np.random.default_rng(0).integers(0, 255, (2, channels, 3, 3), endpoint=True).astype(np.uint8)
    proto = model(f"""10 (uint8[1,{channels},4,4] x, uint8[2,{channels},3,3] w, uint8 zx)
        => (int32[1,2,2,2] y) {{ y = ConvInteger(x, w, zx) }}""")
    if fixed:
        del proto.graph.input[1]
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return proto


def test_conv_integer_of_large_sums() -> None:
    for proto in (large(200), large(900, fixed=True)):
        lowered = check_down(proto, 9, feeds=whole_of(proto), variants=("plain",))
        assert [node.op_type for node in lowered.graph.node].count("Conv") == 2
    refuses("no-equal", lower, large(900), 9)


def whole_of(proto: onnx.ModelProto) -> Feeds:
    rng = np.random.default_rng(0)
    return {
        name: rng.integers(0, 255, value.shape, endpoint=True).astype(np.uint8)
        for name, value in random_feeds(proto).items()
    }


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("columns", ["", "[4]"])
def test_q_linear_mat_mul(kind: str, columns: str) -> None:
    source = f"""10 ({kind}[3,5] a, float sa, {kind} za, {kind}[5,4] b, float{columns} sb,
        {kind}{columns} zb, float sy, {kind} zy) => ({kind}[3,4] y) {{ y = QLinearMatMul(a, sa, za, b, sb, zb, sy, zy) }}"""
    feeds = whole(source)
    feeds["sy"] = np.array(1.1, np.float32)
    check_down(source, 9, 8, feeds=feeds, variants=("plain", "symbolic", "if"))


def test_q_linear_mat_mul_of_half_scales() -> None:
    source = """21 (uint8[3,5] a, float16 sa, uint8 za, int8[5,4] b, float16 sb, int8 zb,
        float16 sy, uint8 zy) => (uint8[3,4] y) { y = QLinearMatMul(a, sa, za, b, sb, zb, sy, zy) }"""
    feeds = whole(source)
    feeds["sy"] = np.array(0.5, np.float16)
    wide = {**feeds, **{name: feeds[name].astype(np.float32) for name in ("sa", "sb", "sy")}}
    expected = reference(model(source.replace("float16", "float")), wide, None)
    check_down(source, 20, 10, feeds=feeds, expected=expected, variants=("plain", "if"))
    small = source.replace("uint8[3,5] a", "float8e4m3fn[3,5] a").replace("uint8 za", "float8e4m3fn za")
    refuses("no-equal", lower, small, 20)


@pytest.mark.parametrize(("kind", "weights"), [("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8")])
@pytest.mark.parametrize("channels", ["", "[4]"])
@pytest.mark.parametrize("bias", [True, False])
def test_q_linear_conv(kind: str, weights: str, channels: str, bias: bool) -> None:
    zeros = "" if weights == "int8" else channels
    source = f"""10 ({kind}[1,4,6,5] x, float sx, {kind} zx, {weights}[4,2,3,3] w,
        float{channels} sw, {weights}{channels} zw, float sy, {kind} zy{", int32[4] b" if bias else ""}) => ({kind}[a,b,c,d] y)
        {{ y = QLinearConv<group = 2, pads = [1, 0, 1, 0], dilations = [1, 2]>
            (x, sx, zx, w, sw, zw, sy, zy{", b" if bias else ""}) }}"""
    feeds = whole(source)
    feeds["sy"] = np.array(1.3, np.float32)
    if channels and not zeros:
        feeds["zw"] = np.zeros(4, np.int8)
    if channels and weights == "uint8":
        feeds["zw"] = np.full(4, 7, np.uint8)  # ONNX Runtime takes one zero point for all channels of uint8
    if bias:
        feeds["b"] = np.array([100, -2000, 3, 0], np.int32)
    check_down(source, 9, 7, feeds=feeds, refused={"symbolic": "needs-shape", "unranked": "needs-shape"})
