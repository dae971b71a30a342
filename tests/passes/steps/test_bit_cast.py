"""BitCast between types of one width."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.change_log import Exactness
from tests.lowering import check_down, lower, special_values
from tests.passes.steps.test_bits import pool

ml_dtypes = pytest.importorskip("ml_dtypes", reason="onnx before 1.19 does not bring it")

CASTS = [("int32", "uint32", 12), ("uint8", "int8", 3), ("int64", "int64", 7), ("uint64", "int64", 7), ("int16", "uint16", 4),
         ("float", "float", 1), ("bool", "uint8", 2)]  # fmt: skip


@pytest.mark.parametrize(("source", "target", "to"), CASTS)
def test_bit_cast_of_integers(source: str, target: str, to: int) -> None:
    plain = {"float": np.float32, "bool": np.bool_}.get(source)
    x = pool(source) if plain is None else special_values(np.dtype(plain))
    check_down(
        f"""<ir_version: 13, opset_import: ["": 26]> g ({source}[{x.size}] x) => ({target}[{x.size}] y)
                {{ y = BitCast <to = {to}> (x) }}""",
        25,
        13,
        7,
        feeds={"x": x},
        expected=[x.view(np.dtype({"float": "float32"}.get(target, target)))],
    )


FLOATS = [("float", "int32"), ("float", "uint32"), ("double", "int64"), ("double", "uint64"), ("float16", "int16"),
          ("float16", "uint16")]  # fmt: skip
CODES = {
    "float": 1,
    "double": 11,
    "float16": 10,
    "int32": 6,
    "uint32": 12,
    "int64": 7,
    "uint64": 13,
    "int16": 5,
    "uint16": 4,
}


def numbers(name: str) -> np.ndarray:  # type: ignore[type-arg]
    """All special values but NaN, powers of two and their neighbours, and numbers of random bits."""
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(name, name))
    info = np.finfo(dtype)
    powers = np.ldexp(
        np.ones(40, dtype), np.linspace(info.minexp - info.nmant, info.maxexp - 1, 40).astype(np.int32)
    )
    bits = np.random.default_rng(0).integers(0, 256, 400 * dtype.itemsize, np.uint8).view(dtype)
    near = [np.nextafter(powers, dtype.type(side)) for side in (0, np.inf)]
    found = np.concatenate([special_values(dtype), powers, *near, -powers, bits])
    return found[~np.isnan(found)]


@pytest.mark.parametrize(("real", "integer"), FLOATS)
def test_bits_of_floats(real: str, integer: str) -> None:
    x = numbers(real)
    source = f"""<ir_version: 13, opset_import: ["": 26]> g ({real}[{x.size}] x) => ({integer}[{x.size}] y)
        {{ y = BitCast <to = {CODES[integer]}> (x) }}"""
    check_down(
        source,
        25,
        13,
        10,
        7,
        feeds={"x": x},
        expected=[x.view(np.dtype(integer))],
        variants=("plain", "symbolic"),
    )
    _, log = lower(source, 25)
    assert log.changes[0].exactness is Exactness.ASSUMED


@pytest.mark.parametrize(("real", "integer"), FLOATS)
def test_floats_of_bits(real: str, integer: str) -> None:
    y = numbers(real)
    y = np.concatenate([y, np.array([np.nan], y.dtype)])
    source = f"""<ir_version: 13, opset_import: ["": 26]> g ({integer}[{y.size}] x) => ({real}[{y.size}] y)
        {{ y = BitCast <to = {CODES[real]}> (x) }}"""
    feeds = {"x": y.view(np.dtype(integer))}
    check_down(source, 25, 13, 10, 7, feeds=feeds, expected=[y], variants=("plain", "symbolic"))


def test_bits_of_bfloat16() -> None:
    x = np.array([0, -0.0, 1, -2.5, 3e38, 1e-40, np.inf], ml_dtypes.bfloat16)
    source = f"""<ir_version: 13, opset_import: ["": 26]> g (float[{x.size}] x) => (int16[{x.size}] y)
        {{ b = Cast <to = 16> (x) y = BitCast <to = 5> (b) }}"""
    check_down(
        source, 25, 13, feeds={"x": x.astype(np.float32)}, expected=[x.view(np.int16)], variants=("plain",)
    )


@pytest.mark.parametrize(("source", "to"), [("uint8", 9), ("float16", 16)])
def test_other_types_are_refused(source: str, to: int) -> None:
    result = {9: "bool", 16: "bfloat16"}[to]
    with pytest.raises(CannotMigrate) as caught:
        lower(
            f"""<ir_version: 13, opset_import: ["": 26]> g ({source}[2] x) => ({result}[2] y)
                {{ y = BitCast <to = {to}> (x) }}""",
            25,
        )
    assert caught.value.code == "no-equal"
