"""Arithmetic of constants leaves no node; of a value computed at run time, the same nodes' kernels compute it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx_migrate.passes.lowerings.folding import Folding

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from tests.lowering import same_bits
from tests.passes.lowerings.test_building import Written

X = np.array([-2.5, -0.0, 0.4, 1.5, 7.0], np.float32)
Y = np.array([3.0, 1.0, -0.5, 1.5, 2.0], np.float32)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Min", "Max"])
def test_constants_and_values_give_the_same_bits(monkeypatch: pytest.MonkeyPatch, operator: str) -> None:
    counts: list[int] = []

    def build(rw: LoweringRewriter, x: str) -> str:
        f = Folding(rw)
        known = f(operator, X, Y)
        counts.append(len(rw.preceding))
        assert not isinstance(known, str)
        found = f(operator, x, Y)
        assert isinstance(found, str)
        return f.name(f("Sub", found, known))

    result = Written(monkeypatch).run(build, X, 12, 9)
    assert counts == [0]
    np.testing.assert_array_equal(result, np.zeros_like(X))


def test_shapes_casts_and_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(rw: LoweringRewriter, x: str) -> str:
        f = Folding(rw)
        count = rw.before("Shape", [x])
        places = f.iota(count)
        known = f.iota(np.array([5], np.int64))
        assert isinstance(places, str)
        np.testing.assert_array_equal(np.asarray(known), np.arange(5, dtype=np.float32))
        column = f.shaped(f("Add", places, known), 1)
        return f.name(f.cast(f("Div", column, np.array([4], np.float32)), TensorProto.INT64))

    found: Any = Written(monkeypatch).run(build, X, 12, 9, to_type=np.int64)
    same_bits([np.array([[0], [0], [1], [1], [2]], np.int64)], [found], "counts")
