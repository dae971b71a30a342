"""One-node models of ONNX Runtime's quantised operators and those with weights of few bits, with all options varied."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from tests.passes.contrib.level_1 import floats, integers
from tests.passes.contrib.one_node import Array, Case

KINDS = ("uint8", "int8")


def data(kind: str, *shape: int) -> Array:
    """Return integers of all sizes."""
    return (
        integers(0, 256, *shape, dtype="uint8")
        if kind == "uint8"
        else integers(-128, 128, *shape, dtype="int8")
    )


def small(kind: str, *shape: int) -> Array:
    """Return integers whose products do not saturate on a processor without VNNI."""
    return (
        integers(64, 192, *shape, dtype="uint8")
        if kind == "uint8"
        else integers(-64, 64, *shape, dtype="int8")
    )


def scale(value: float) -> Array:
    return np.array(value, np.float32)


def zero(kind: str, value: int) -> Array:
    return np.array(value + (128 if kind == "uint8" else 0), kind)


def element_wise() -> Iterator[Case]:
    """Yield sums, products and activations of quantised values."""
    for operator, kind, fixed in product(("QLinearAdd", "QLinearMul"), KINDS, (True, False)):
        given = {
            "a": data(kind, 2, 3, 8), "as": scale(0.0313), "az": zero(kind, 3),
            "b": data(kind, 3, 8), "bs": scale(0.0527), "bz": zero(kind, -7),
            "cs": scale(0.0719), "cz": zero(kind, 5),
        }  # fmt: skip
        constants = ("as", "az", "bs", "bz", "cs", "cz") if fixed else ()
        yield Case(operator, given, {}, constants, opsets=(10, 13, 21), label=f"{kind}-{fixed}")
    for operator, kind, points in product(("QLinearSigmoid", "QLinearLeakyRelu"), KINDS, (True, False)):
        given = {
            "x": data(kind, 2, 3, 50), "xs": scale(0.04), "xz": zero(kind, 3) if points else None, "ys": scale(1 / 200),
            "yz": zero(kind, -100),
        }  # fmt: skip
        attributes = {"alpha": 0.2} if operator == "QLinearLeakyRelu" and points else {}
        yield Case(
            operator,
            given,
            attributes,
            ("xs", "xz", "ys", "yz"),
            opsets=(10, 13),
            label=f"{operator}-{kind}-{points}",
        )
    for kind, (opset, axis), points in product(
        KINDS, ((13, -1), (13, 1), (12, 1), (12, 2), (12, -1), (9, None), (13, None)), (True, False)
    ):
        given = {
            "x": data(kind, 2, 3, 5),
            "xs": scale(0.05),
            "xz": zero(kind, 2) if points else None,
            "ys": scale(1 / 255),
            "yz": zero(kind, -128),
        }
        attributes = {"opset": opset} | ({} if axis is None else {"axis": axis})
        yield Case(
            "QLinearSoftmax",
            given,
            attributes,
            ("xs", "xz", "ys", "yz"),
            opsets=(13,),
            label=f"{kind}-{opset}-{axis}-{points}",
        )
    for kind in KINDS:
        given = {"ys": scale(0.06), "yz": zero(kind, 1)}
        for place in range(3):
            given |= {
                f"x{place}": data(kind, 2, 2 + place, 4),
                f"s{place}": scale(0.03 * (1 + place)),
                f"z{place}": zero(kind, place),
            }
        constants = [name for name in given if name[0] != "x"]
        yield Case("QLinearConcat", given, {"axis": 1}, constants, opsets=(10, 13, 21), label=kind)
        given = {
            "c": np.array([[True], [False], [True]]), "x": data(kind, 3, 40), "xs": scale(0.05), "xz": zero(kind, 2),
            "w": data(kind, 3, 40), "ys": scale(0.03), "yz": zero(kind, -3), "zs": scale(0.06), "zz": zero(kind, 4),
        }  # fmt: skip
        yield Case(
            "QLinearWhere", given, {}, ("xs", "xz", "ys", "yz", "zs", "zz"), opsets=(10, 13), label=kind
        )


def pools() -> Iterator[Case]:
    """Yield pools of quantised values."""
    for kind, last in product(KINDS, (0, 1)):
        shape = (2, 6, 7, 4) if last else (2, 4, 6, 7)
        given = {
            "x": data(kind, *shape),
            "xs": scale(0.0527),
            "xz": zero(kind, 2),
            "ys": scale(0.0313),
            "yz": zero(kind, -9),
        }
        constants = ("xs", "xz", "ys", "yz")
        label = f"{kind}-{last}"
        yield Case(
            "QLinearGlobalAveragePool",
            given,
            {"channels_last": last},
            constants,
            opsets=(10, 13),
            label=label,
        )
        for more in (
            {},
            {"pads": [1, 1, 1, 1]},
            {"pads": [1, 1, 1, 1], "count_include_pad": 1},
            {"strides": [2, 2], "ceil_mode": 1},
        ):
            attributes = {"kernel_shape": [2, 3], "channels_last": last, **more}
            for opsets, steps in (
                ((10, 13), 0.03),
                ((19,), 0.0),
            ):  # from 19 on AveragePool adds in the same order
                yield Case(
                    "QLinearAveragePool", given, attributes, constants, opsets=opsets, steps=steps, label=f"{label}-{list(more)}"
                )  # fmt: skip
    for kind, last in product(KINDS, (0, 1)):
        shape = (1, 6, 7, 4) if last else (1, 4, 6, 7)
        w = small("int8", 3, 4, 3, 3)
        given = {
            "x": data(kind, *shape), "xs": scale(0.05), "xz": zero(kind, 2), "w": w, "ws": scale(0.02),
            "wz": np.zeros((), "int8"), "ys": scale(0.2), "yz": zero(kind, 3), "b": integers(-99, 99, 3, dtype="int32"),
        }  # fmt: skip
        constants = [name for name in given if name != "x"]
        yield Case(
            "QLinearConv",
            given,
            {"channels_last": last, "pads": [1, 1, 1, 1]},
            constants,
            opsets=(10, 13),
            label=f"{kind}-{last}",
        )


def products() -> Iterator[Case]:
    """Yield products of quantised matrices."""
    for kind, ta, tb, columns, c, requantised in product(
        KINDS, (0, 1), (0, 1), (False, True), (False, True), (False, True)
    ):
        a, b = data(kind, *((8, 5) if ta else (5, 8))), small("int8", *((6, 8) if tb else (8, 6)))
        given = {
            "a": a, "as": scale(0.0527), "az": zero(kind, 3), "b": b,
            "bs": np.asarray(np.linspace(0.01, 0.04, 6), "float32") if columns else scale(0.02),
            "bz": np.zeros(6 if columns else (), "int8"), "c": integers(-500, 500, 6, dtype="int32") if c else None,
            "ys": scale(0.3137) if requantised else None, "yz": zero(kind, 4) if requantised else None,
        }  # fmt: skip
        constants = [name for name in given if name != "a"]
        attributes = {"transA": ta, "transB": tb, "alpha": 0.5 if columns else 1.0}
        yield Case(
            "QGemm",
            given,
            attributes,
            constants,
            opsets=(11, 21),
            within=1e-7,
            steps=0.001 if requantised else 0,
            label=f"{kind}-{ta}{tb}-{columns}-{c}-{requantised}",
        )
    for kind, columns, points, bias in product(KINDS, (False, True), (False, True), (False, True)):
        scales = np.asarray(np.linspace(0.01, 0.04, 6), "float32") if columns else scale(0.02)
        b = small(kind, 8, 6)
        bz = (
            None
            if not points
            else (np.full(6, 130 if kind == "uint8" else 3, kind) if columns else zero(kind, 3))
        )
        more = floats(6) if bias else None
        label = f"{kind}-{columns}-{points}-{bias}"
        given = {"a": floats(2, 5, 8), "b": b, "bs": scales, "bz": bz, "bias": more}
        yield Case(
            "DynamicQuantizeMatMul",
            given,
            {},
            ("b", "bs", "bz", "bias"),
            opsets=(11, 21),
            within=1e-7,
            label=label,
        )
        for first in KINDS if kind == "int8" else ("uint8",):
            given = {
                "a": data(first, 2, 5, 8),
                "b": b,
                "as": scale(0.05),
                "bs": scales,
                "az": zero(first, 2) if points else None,
                "bz": bz,
                "bias": more,
            }
            yield Case(
                "MatMulIntegerToFloat",
                given,
                {},
                ("b", "as", "bs", "az", "bz", "bias"),
                opsets=(10, 21),
                within=1e-7,
                label=f"{first}-{label}",
            )


def linear() -> Iterator[Case]:
    """Yield QuantizeLinear and DequantizeLinear."""
    for kind, axis in product(("uint8", "int8", "uint16", "int16"), (None, 1, -1)):
        shape = () if axis is None else (3,) if axis == 1 else (4,)
        points = np.full(shape, 5, kind)
        scales = np.asarray(np.linspace(0.02, 0.05, math.prod(shape)).reshape(shape), "float32")
        attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
        opsets = (10, 13, 21) if axis is None else (13, 21)
        x = floats(2, 3, 4)
        yield Case(
            "QuantizeLinear",
            {"x": x, "s": scales, "z": points},
            attributes,
            ("s", "z"),
            opsets=opsets,
            label=f"{kind}-{axis}",
        )
        numbers = integers(0, 99, 2, 3, 4, dtype=kind)
        yield Case(
            "DequantizeLinear",
            {"x": numbers, "s": scales, "z": points},
            attributes,
            ("s", "z"),
            opsets=opsets,
            label=f"{kind}-{axis}",
        )
    yield Case("QuantizeLinear", {"x": floats(2, 3), "s": scale(0.1)}, {}, ("s",), label="no-zero")
    yield Case("DequantizeLinear", {"x": data("int8", 2, 3), "s": scale(0.1)}, {}, ("s",), label="no-zero")
    yield Case(
        "DequantizeLinear",
        {"x": data("int8", 2, 3), "s": np.array([0.1], "float32")},
        {},
        ("s",),
        label="one",
    )
    yield Case(
        "DequantizeLinear",
        {"x": integers(-99, 99, 2, 3, dtype="int32"), "s": scale(0.1)},
        {},
        ("s",),
        label="int32",
    )


def few_bits() -> Iterator[Case]:
    """Yield MatMulNBits with all shapes of blocks, zero points and kinds of inputs."""
    for bits, (k, block), points, bias, fixed in product(
        (4, 8, 2),
        ((64, 32), (48, 16), (40, 16), (96, 32)),
        (None, "packed", "float"),
        (False, True),
        (True, False),
    ):
        n, blocks = 5, math.ceil(k / block)
        zeros = None
        if points == "packed":
            zeros = integers(0, 256, n * math.ceil(blocks * bits / 8), dtype="uint8")
        elif points == "float":
            zeros = np.asarray(floats(n * blocks) + 2 ** (bits - 1), "float32")
        given = {
            "a": floats(2, 3, k), "b": integers(0, 256, n, blocks, block * bits // 8, dtype="uint8"),
            "s": np.abs(floats(n * blocks)) / 10, "z": zeros, "g": None, "bias": floats(n) if bias else None,
        }  # fmt: skip
        if (bits == 2 and not fixed) or (bits == 8 and points == "float"):
            continue
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        constants = ("b", "s", "z", "bias") if fixed else ()
        yield Case(
            "MatMulNBits",
            given,
            attributes,
            constants,
            opsets=(13, 21),
            within=1e-6,
            label=f"{bits}-{k}-{block}-{points}-{bias}-{fixed}",
        )
    for kind, (k, block) in product((0, 1), ((64, 16), (48, 64))):
        n = 6
        count = math.ceil(n * k / block)
        given = {
            "a": floats(3, k),
            "b": integers(0, 256, math.ceil(n * k / 2), dtype="uint8"),
            "m": np.abs(floats(count)),
        }
        attributes = {"K": k, "N": n, "block_size": block, "quant_type": kind}
        yield Case(
            "MatMulBnb4",
            given,
            attributes,
            ("b", "m"),
            opsets=(13, 21),
            within=1e-6,
            label=f"{kind}-{k}-{block}",
        )


def gathers() -> Iterator[Case]:
    """Yield GatherBlockQuantized of bytes."""
    for bits, points, indices, (gathered, blocked), fixed in product(
        (4, 8), (False, True), ((3,), (2, 3), ()), ((0, -1),), (True, False)
    ):
        block, width = 16, 48
        shape = (7, 5, width)
        per = 8 // bits
        packed = integers(0, 256, *shape[:-1], width // per, dtype="uint8")
        scales = np.abs(floats(7, 5, width // block))
        zeros = integers(0, 256, 7, 5, math.ceil(width // block / per), dtype="uint8") if points else None
        given = {"d": packed, "i": integers(0, 5, *indices), "s": scales, "z": zeros}
        attributes = {"bits": bits, "block_size": block, "gather_axis": gathered, "quantize_axis": blocked}
        constants = ("d", "s", "z") if fixed else ()
        yield Case(
            "GatherBlockQuantized",
            given,
            attributes,
            constants,
            opsets=(11, 21),
            label=f"{bits}-{points}-{len(indices)}-{gathered}-{fixed}",
            fixed=not fixed,
        )


def nibbles() -> Iterator[Case]:
    """Yield GatherBlockQuantized of int4 and uint4; nothing where onnx does not have these in numpy, before 1.19."""
    if find_spec("ml_dtypes") is None:
        return
    import ml_dtypes

    for kind, points, indices, (gathered, blocked) in product(
        ("int4", "uint4"), (False, True), ((3,), (2, 3)), ((0, -1), (1, 2), (1, 0), (2, 1))
    ):
        shape, block = (32, 32, 48), 16
        low = -8 if kind == "int4" else 0
        numbers = integers(low, low + 16, *shape).astype(getattr(ml_dtypes, kind))
        sizes = tuple(size // (block if axis == blocked % 3 else 1) for axis, size in enumerate(shape))
        zeros = integers(low, low + 16, *sizes).astype(getattr(ml_dtypes, kind)) if points else None
        given = {"d": numbers, "i": integers(0, 5, *indices), "s": np.abs(floats(*sizes)), "z": zeros}
        attributes = {"block_size": block, "gather_axis": gathered, "quantize_axis": blocked}
        yield Case(
            "GatherBlockQuantized",
            given,
            attributes,
            ("d", "s", "z"),
            opsets=(17, 21),
            label=f"{kind}-{points}-{len(indices)}-{gathered}-{blocked}",
        )


GRIDS = (element_wise, pools, products, linear, few_bits, gathers, nibbles)
