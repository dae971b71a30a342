from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dims", ["", "[1]"])
def test_constants(axis: int, dims: str) -> None:
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,3] x) => (float[A,B] y)
        {{ n = Constant <value = float{dims} {{3}}> () a = Constant <value = float{dims} {{{axis}}}> ()
        y = Tile (x, n, a) }}"""
    expected = [np.tile(X, (3, 1) if axis == 0 else (1, 3))]
    variants = ["plain", "symbolic", "if", "function"]
    check(source, to=7, feeds={"x": X}, expected=expected, variants=variants)
    check(source, to=9, feeds={"x": X}, expected=expected, variants=["unranked"])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dims", ["", "[1]"])
def test_at_run_time(axis: int, dims: str) -> None:
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,3] x, float{dims} n, float{dims} a)
        => (float[A,B] y)
        {{ y = Tile (x, n, a) }}"""
    shape = (1,) if dims else ()
    feeds = {"x": X, "n": np.full(shape, 2, np.float32), "a": np.full(shape, axis, np.float32)}
    check(source, to=9, feeds=feeds, expected=[np.tile(X, (2, 1) if axis == 0 else (1, 2))])
    with pytest.raises(CannotMigrate) as caught:
        lift(model(source), 8)
    assert caught.value.code == "needs-rank"
