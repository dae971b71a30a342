"""The operators of formulas whose form depends on the opset, written in place of a Dropout and run there and below."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from onnx_migrate.rewrite.expressions import Value
from onnx_migrate.rewrite.op import Op
from tests.harness import NUMPY_TYPES, require_opset, same_bits
from tests.steps import lower, operators, special_values
from tests.support.skips import Elsewhere, skip
from tests.support.written import Written


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    return Written(monkeypatch)


@pytest.mark.parametrize(("leaves", "to"), [(22, 21), (12, 11), (12, 10), (12, 9), (10, 9), (10, 8), (10, 7)])
@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("static", [True, False])
def test_iota(written: Written, leaves: int, to: int, rows: int, static: bool) -> None:
    require_opset(leaves)
    if to < 9 and static:
        skip("an int64 Constant, which opset 8 has as an initializer alone", Elsewhere.NEVER)
    counted = written.run(lambda op, x: op.iota(op.size_of(x, 0)), np.ones(rows), leaves, to, static=static)
    np.testing.assert_array_equal(counted, np.arange(rows))


@pytest.mark.parametrize(("leaves", "to"), [(22, 21), (13, 12), (10, 9)])
@pytest.mark.parametrize("static", [True, False])
def test_forms_by_opset(written: Written, leaves: int, to: int, static: bool) -> None:
    require_opset(leaves)
    x = np.arange(12.0).reshape(3, 4)
    for build, expected in (
        (lambda op, x: op.Unsqueeze(x, [0, 2]), x.reshape(1, 3, 1, 4)),
        (lambda op, x: op.Squeeze(op.Unsqueeze(x, [1]), [1]), x),
        (lambda op, x: op.ReduceSum(x, [1]), x.sum(1, keepdims=True)),
        (lambda op, x: op.ReduceMax(x, [0], keepdims=False), x.max(0)),
        (lambda op, x: op.Slice(x, [1], [3], [1]), x[:, 1:3]),
        (lambda op, x: op.Clip(x, 2, 7), x.clip(2, 7)),
        (lambda op, x: op.shape_of(x), np.array(x.shape)),
        (lambda op, x: op.size_of(x, -1), np.array([4])),
        (lambda op, x: op.size_of(x, -2), np.array([3])),
        (lambda op, x: x + 2, x + 2),
        (lambda op, x: x.cast(TensorProto.INT32).cast(TensorProto.INT64), x),
    ):
        np.testing.assert_array_equal(written.run(build, x, leaves, to, static=static), expected)


@pytest.mark.parametrize("name", NUMPY_TYPES)
@pytest.mark.parametrize("constants", ["", "then", "other"])
def test_a_selection_keeps_all_bits_of_every_type(written: Written, name: str, constants: str) -> None:
    pool = special_values(np.dtype(name))
    y = np.roll(pool, 1)
    zero = np.zeros((), pool.dtype)
    condition = np.arange(len(pool)) % 3 == 0
    x, other = (zero if constants == which else array for which, array in (("then", pool), ("other", y)))

    def build(op: Op, chosen: Value) -> Value:
        values = [
            op.constant(value) if value.ndim == 0 else op.Identity(op.constant(value)) for value in (x, other)
        ]
        return op.select(chosen.cast(TensorProto.BOOL), *values)

    for leaves in (13, 10):
        result = written.run(build, condition, leaves, leaves - 1, to_type=pool.dtype)
        same_bits([np.where(condition, x, other)], [result], name)


@pytest.mark.parametrize(("to", "found"), [(9, True), (8, False)])
def test_where_selects_from_opset_9_on(to: int, found: bool) -> None:
    source = "10 (float[4,2] x, int64[2] n) => (float[4,2] y) { y = ReverseSequence (x, n) }"
    assert ("Where" in operators(lower(source, to)[0])) == found


X = np.array([-2.5, -0.0, 0.4, 1.5, 7.0], np.float32)
Y = np.array([3.0, 1.0, -0.5, 1.5, 2.0], np.float32)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Min", "Max"])
def test_constants_and_values_give_the_same_bits(written: Written, operator: str) -> None:
    def build(op: Op, x: Value) -> Value:
        known = op.write(operator, X, Y)
        assert known.array is not None
        return op.write(operator, x, Y) - known

    np.testing.assert_array_equal(written.run(build, X, 12, 9), np.zeros_like(X))


def test_counts_that_are_known_are_those_that_are_computed(written: Written) -> None:
    def build(op: Op, x: Value) -> Value:
        known = op.iota(op.constant([5])).cast(TensorProto.FLOAT)
        np.testing.assert_array_equal(known.constant, np.arange(5, dtype=np.float32))
        places = op.iota(op.Shape(x)).cast(TensorProto.FLOAT)
        return ((places + known).reshape(-1, 1) / np.float32(4)).cast(TensorProto.INT64)

    found = written.run(build, X, 12, 9, to_type=np.int64)
    same_bits([np.array([[0], [0], [1], [1], [2]], np.int64)], [found], "counts")
