"""Operators in formulas whose form depends on the opset, each with one spelling; sizes, counted indices, selections."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.rewrite.expressions import FLOATS, INTEGERS, Operand, Value, Writer

__all__ = ["Op"]

_T = TensorProto

_LONGEST = 4096
"""Elements up to which counted indices become a constant, and up to which a constant is searched for a -0."""

_END = int(np.iinfo(np.int64).max)

_WHERE_KERNELS = frozenset((_T.UINT8, _T.INT32, _T.INT64))
"""The integers for which ONNX Runtime has a kernel of Where, also before 1.32 and in browsers."""


class Op(Writer):
    """The writer of a formula: `op.Exp(x)` writes an Exp. Operators that are methods here have one form for all opsets.

    Axes must be counted from the front below opset 11.
    """

    def __getattr__(self, operator: str) -> Callable[..., Value]:
        if operator.startswith("Reduce"):
            return partial(self._reduce, operator)
        return super().__getattr__(operator)

    def _reduce(
        self, operator: str, value: Value, axes: Sequence[int] | Value | None = None, *, keepdims: bool = True
    ) -> Value:
        """Write ReduceSum or another Reduce over axes, by default all; refuse computed ones where they are an attribute."""
        as_input = self.version >= (13 if operator == "ReduceSum" else 18)
        if isinstance(axes, Value) and not as_input:
            self.refuse(f"{operator} needs constant axes at opset {self.version}", code="needs-constant")
        if axes is None:
            return self.write(operator, value, keepdims=int(keepdims))
        if as_input:
            return self.write(operator, value, axes, keepdims=int(keepdims))
        return self.write(operator, value, axes=list(cast("Sequence[int]", axes)), keepdims=int(keepdims))

    def Unsqueeze(self, value: Value, axes: Sequence[int]) -> Value:
        """Insert axes of size 1."""
        if self.version >= 13:
            return self.write("Unsqueeze", value, list(axes))
        return self.write("Unsqueeze", value, axes=list(axes))

    def Squeeze(self, value: Value, axes: Sequence[int]) -> Value:
        """Drop axes of size 1."""
        if self.version >= 13:
            return self.write("Squeeze", value, list(axes))
        return self.write("Squeeze", value, axes=list(axes))

    def Slice(self, value: Value, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]) -> Value:
        """Write a Slice with known bounds and steps of 1."""
        if self.version >= 10:
            return self.write("Slice", value, list(starts), list(ends), list(axes))
        return self.write("Slice", value, starts=list(starts), ends=list(ends), axes=list(axes))

    def Clip(self, value: Value, low: float, high: float) -> Value:
        """Limit floats to low … high."""
        if self.version >= 11:
            return self.write("Clip", value, low, high)
        return self.write("Clip", value, min=float(low), max=float(high))

    # Sizes and indices

    def shape_of(self, value: Value) -> Value:
        """Return a value's shape, int64 of one axis: a constant if all its dims are fixed."""
        static = value.static
        return self.write("Shape", value) if static is None else self.constant(np.array(static, np.int64))

    def size_of(self, value: Value, axis: int) -> Value:
        """Return the size of an axis, int64 of shape [1]; a negative axis needs the rank below opset 10."""
        shape = value.shape
        if shape is not None and (size := shape[axis]) is not None:
            return self.constant(np.array([size], np.int64))
        if shape is not None and len(shape) == 1:
            return self.write("Shape", value)
        if axis < 0 and (shape is not None or self.version < 10):
            axis += value.need_rank()
        return self.Slice(self.write("Shape", value), [axis], [axis + 1 if axis != -1 else _END], [0])

    def iota(self, count: Value) -> Value:
        """Return the int64 numbers 0, 1, … count - 1, of one axis; `count` is int64 of shape [1]. It is exact at all opsets.

        A known count of up to 4096 gives a constant. Other counts give a Range. A target of 9 or 10 has no Range; there the
        positions of the ones in a tensor of ones replace it. Below 9, a Loop returns its own counter.
        """
        known_count = count.constant
        # A short constant costs less than the nodes of a Range.
        if known_count is not None and int(known_count.reshape(-1)[0]) <= _LONGEST:
            # A negative count gives no elements, as Range does.
            return self.constant(np.arange(max(int(known_count.reshape(-1)[0]), 0), dtype=np.int64))
        if self.target < 9:
            return self._counter(self.Squeeze(count, [0]))
        if self.target >= 11:
            zero, step = self.constant(0), self.constant(1)
            return self.write("Range", zero, self.Squeeze(count, [0]), step)
        # NonZero of a vector of ones returns all positions.
        ones = self.write("ConstantOfShape", count, value=numpy_helper.from_array(np.array([1], np.int64)))
        return self.Squeeze(self.write("NonZero", ones), [0])

    def _counter(self, count: Value) -> Value:
        """Write a Loop of `count` rounds that stacks its counter. It carries an idle value, as Loop-1 needs one."""
        number = (_T.INT64, 0)
        body = self.body("count", lambda place, go, idle: (go, idle, place), number, (_T.BOOL, 0), number)
        indices = self.several("Loop", 2, count, self.constant(True), self.constant(0), body=body)[1]
        self.rw.scope.record_type(indices.name, ValueType(_T.INT64, (None,)))
        return indices

    def body(
        self, name: str, function: Callable[..., Sequence[Value]], *inputs: tuple[int, int]
    ) -> onnx.GraphProto:
        """Return the graph of a Loop or Scan that `function` writes; its inputs have these element types and ranks.

        It is not lowered further, so its operators need forms that the target has.
        """
        rw = self.rw
        self.settle()
        # The nodes of the body must not land among those in front of the node.
        outside, rw.preceding = rw.preceding, []
        body_inputs, results = [Value(self, rw.fresh("given")) for _ in inputs], []
        for value, (dtype, rank) in zip(body_inputs, inputs, strict=True):
            rw.scope.record_type(value.name, ValueType(dtype, (None,) * rank))
        for result in function(*body_inputs):
            # A Loop's output must come from a node inside the body, so a value from outside needs an Identity.
            own = result.name
            new = any(own in node.output for node in rw.preceding)
            results.append(result if new else self.write("Identity", result))
        starts, ends = (
            [
                helper.make_tensor_value_info(value.name, value.need_dtype(), [None] * value.need_rank())
                for value in values
            ]
            for values in (body_inputs, results)
        )
        nodes, rw.preceding = rw.preceding, outside
        return helper.make_graph(nodes, rw.fresh(name), starts, ends)

    # Selections

    def select(self, condition: Value, then: Operand, other: Operand) -> Value:
        """Return elements of `then` where the condition holds, of `other` elsewhere; the three are broadcast. It is exact.

        ONNX Runtime's Where gives +0 for a -0 of its first branch. So a float branch that may hold a -0 must be the second
        one. If both may, this method writes `Where(c, 1, other) * Where(not c, 1, then)`, since a product with 1 is exact.
        ONNX Runtime has no kernel for some types: bool takes And and Or, integers are cast to int64 and back, bfloat16 to
        float32. Refuses with `needs-type` if the element type is unknown.
        """
        then, other = self._branches(then, other)
        dtype = then.need_dtype()
        # Models have the operator Where since opset 9.
        if self.version < 9 or dtype == _T.BOOL:
            return self.select_without_where(condition, then, other)
        if dtype in INTEGERS and dtype not in _WHERE_KERNELS:
            return self.write("Where", condition, then.cast(_T.INT64), other.cast(_T.INT64)).cast(dtype)
        if dtype == _T.BFLOAT16:
            return self.select(condition, then.cast(_T.FLOAT), other.cast(_T.FLOAT)).cast(dtype)
        if dtype not in FLOATS or not self._may_be_negative_zero(then):
            return self.write("Where", condition, then, other)
        opposite = self.write("Not", condition)
        if not self._may_be_negative_zero(other):
            return self.write("Where", opposite, other, then)
        others = self.write("Where", condition, self.constant(1, then), other)
        return others * self.write("Where", opposite, self.constant(1, then), then)

    def _branches(self, then: Operand, other: Operand) -> tuple[Value, Value]:
        """Return both branches as values, a number in the type of the other one."""
        if isinstance(then, Value):
            return then, other if isinstance(other, Value) else self.constant(other, then)
        assert isinstance(other, Value)
        return self.constant(then, other), other

    def _may_be_negative_zero(self, value: Value) -> bool:
        static, array = value.static, value.array
        if array is None:
            if static is None or math.prod(static) > _LONGEST:
                return True
            array = self.rw.constant_value(value.name)
        return array is None or bool(np.any((array == 0) & np.signbit(array)))

    def select_without_where(self, condition: Value, then: Value, other: Value) -> Value:
        """Return the result of `select` without Where, which begins with opset 9. The result is exact.

        bool takes And and Or. Integers take products with 1 and 0, which wrap around correctly. For other types, 0 times an
        infinity is not 0. They take a Gather from both tensors, one after the other: the condition gives the
        index of each element.
        """
        dtype = then.need_dtype()
        if dtype == _T.BOOL:
            opposite = ~condition
            return condition & then | opposite & other
        if dtype in INTEGERS:
            wide = _T.INT32 if dtype not in (_T.INT64, _T.UINT64, _T.UINT32) else _T.INT64
            chosen = condition.cast(wide)
            rest = 1 - chosen
            return (chosen * then.cast(wide) + rest * other.cast(wide)).cast(dtype)
        return self._gather(condition, then, other)

    def _gather(self, condition: Value, then: Value, other: Value) -> Value:
        shape, truth = self._common_shape(condition, then, other)
        static = shape.constant
        # Gather fails on an axis without elements.
        if static is not None and 0 in static:
            return self.constant(np.zeros(tuple(static), then.numpy_type))
        both = self.write(
            "Concat", *(self._spread(value, shape, truth).reshape(-1) for value in (other, then)), axis=0
        )
        element_count = None if static is None else math.prod(int(size) for size in static)
        count = self.constant([element_count]) if element_count is not None else self.ReduceProd(shape, [0])
        indices = self.write("Reshape", self.iota(count), shape)
        # A scalar: an axis of 1 would be added to a scalar condition.
        number = self.Squeeze(count, [0]) if element_count is None else self.constant(element_count)
        # Elements of `then` stand behind those of `other`, so the condition times the count picks one of them.
        chosen = condition.cast(_T.INT64) * number
        # Gather with an index for each element works at every opset and type, unlike Where.
        return self.write("Gather", both, indices + chosen, axis=0)

    def _common_shape(self, condition: Value, then: Value, other: Value) -> tuple[Value, Value | None]:
        """Return the shape to which the three are broadcast, and a bool value of that shape unless it is known."""
        statics = [value.static for value in (condition, then, other)]
        if all(static is not None for static in statics):
            common_shape = np.broadcast_shapes(*(static for static in statics if static is not None))
            return self.constant(np.array(common_shape, np.int64)), None
        # Below, comparisons tell the shape, and old opsets compare only floats.
        if then.dtype not in FLOATS:
            for value in (condition, then, other):
                value.need_static()
        truth = condition
        for value in (then, other):
            # A comparison broadcasts its operands at all opsets from 7 on, and its shape tells the common
            # shape.
            truth = truth | (value < value)
        return self.shape_of(truth), truth

    def _spread(self, value: Value, shape: Value, truth: Value | None) -> Value:
        """Return a value that is broadcast to a shape."""
        static_shape, own = shape.constant, value.shape
        if static_shape is not None and own == tuple(static_shape.tolist()):
            return value
        if self.target >= 8 or truth is None:
            return self.write("Expand", value, shape)
        # Expand exists from opset 8 on; a product with ones broadcasts as well.
        ones = self.write("Cast", truth | ~truth, to=value.need_dtype())
        return value * ones

    # Parts of formulas

    def sign(self, value: Value, size: Value) -> Value:
        """Return floats divided by their absolute values `size`: 1 or -1, and 0 for 0 and tiny values."""
        limits = np.finfo(value.numpy_type)
        least = limits.tiny if limits.dtype != np.float16 else limits.smallest_subnormal
        return value / (size + np.asarray(least))
