"""Reductions of ScatterElements and ScatterND where an element may be updated more than once: in rounds without repeats."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from onnx_migrate.engine.steps.formula import INTEGERS, Op, TensorProto, Value
from onnx_migrate.facts.value_types import ValueType

from .gather import Dims, element_numbers, index_length, row_numbers

__all__ = ["REDUCTIONS", "reduced_in_rounds"]

REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}

_FEW = 8
"""Up to this many rounds are written one after the other if the indices are known; more become a Loop."""

_KEPT = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT64)
"""Integers that are reduced in their own type; others as int64, whose low bits are theirs."""

_END = int(np.iinfo(np.int64).max)


def reduced_in_rounds(op: Op, data: Value, indices: Value, updates: Value, kind: str) -> Value:
    """Return the result of a ScatterElements or ScatterND: round r reduces the r-th update of each element."""
    dtype = data.need_dtype()
    number = _numbers(op, data, indices, updates).reshape(-1)
    whole = op.shape_of(data)
    wide = dtype if dtype not in INTEGERS or dtype in _KEPT else TensorProto.INT64
    flat, updates = data.reshape(-1), updates.reshape(-1)
    state, updates = flat.cast(wide), updates.cast(wide)
    array = number.constant
    order = None if array is None else _turns(array)
    if array is not None and order is not None and max(order, default=0) < _FEW:
        for turn in range(max(order, default=-1) + 1):
            chosen = np.flatnonzero(order == turn)
            chosen_indices = op.constant(array[chosen].astype(np.int64))
            update = op.Gather(updates, chosen.astype(np.int64), axis=0)
            new = op.write(REDUCTIONS[kind], op.Gather(state, chosen_indices, axis=0), update)
            state = op.ScatterElements(state, chosen_indices, new, axis=0)
    else:
        state = _loop(op, kind, state, number, updates, wide)
    op.note(f"reduction {kind} is computed in rounds; each round updates an element at most once")
    return op.Reshape(state.cast(dtype), whole)


def _numbers(op: Op, data: Value, indices: Value, updates: Value) -> Value:
    """Return the number in the flattened data of the element that each update belongs to."""
    if op.operator == "ScatterElements":
        return element_numbers(op, data, indices, int(op.rw.get("axis", 0)))
    sizes = Dims(op, data)
    count = index_length(op, data, indices, updates.rank)
    rows = row_numbers(op, indices, count, sizes)
    if count == sizes.rank:
        return rows
    width = sizes.product(range(count, sizes.rank))
    rows = rows.reshape(-1, 1) * width
    return rows + op.iota(width)


def _turns(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each number how often it stands before."""
    seen: Counter[int] = Counter()
    turns = []
    for number in numbers.tolist():
        turns.append(seen[number])
        seen[number] += 1
    return np.array(turns, np.int64)


def _loop(op: Op, kind: str, state: Value, number: Value, updates: Value, dtype: int) -> Value:
    """Write the rounds as a Loop, and return the state at its end."""
    number, updates, turn, rounds = _turns_at_run_time(op, number, updates)

    def step(place: Value, go: Value, state: Value) -> tuple[Value, Value]:
        chosen = op.NonZero(turn == place).reshape(-1)
        element, update = (op.Gather(value, chosen, axis=0) for value in (number, updates))
        old = op.Gather(state, element, axis=0)
        if kind in ("max", "min") and dtype in INTEGERS and op.target < 12:
            larger = op.Greater(old, update)
            new = op.Where(larger, old, update) if kind == "max" else op.Where(larger, update, old)
        else:
            new = op.write(REDUCTIONS[kind], old, update)
        scatter = "Scatter" if op.target < 11 else "ScatterElements"
        following = op.write(scatter, state, element, new, axis=0)
        op.rw.scope.record_type(following.name, ValueType(dtype, (None,)))
        return go, following

    # Its operators have these forms at every opset from 9 to the one left.
    body = op.body("round", step, (TensorProto.INT64, 0), (TensorProto.BOOL, 0), (dtype, 1))
    result = op.Loop(rounds, op.constant(True), state, body=body)
    op.rw.scope.record_type(result.name, ValueType(dtype, (None,)))
    return result


def _turns_at_run_time(op: Op, number: Value, updates: Value) -> tuple[Value, Value, Value, Value]:
    """Return the elements and the updates, sorted by element, in which round each update is, and how many rounds there are."""
    size = op.Shape(number)
    if op.target < 10 and size.constant is None:
        # Below opset 10, K of TopK is an attribute and cannot be computed: each update has a round of its own.
        op.note("each update has a round of its own, which takes long if there are many")
        return number, updates, op.iota(size), op.Squeeze(size, [0])
    # As double, which TopK takes in all versions, and which holds all numbers of elements.
    wide = op.Cast(number, to=TensorProto.DOUBLE)
    order = op.several("TopK", 2, wide, size, axis=0, largest=0, sorted=1)[1]
    number = op.Gather(number, order, axis=0)
    updates = op.Gather(updates, order, axis=0)
    padded = op.Concat([-1], number, axis=0)
    first = ~(number == op.Slice(padded, [0], [-1], [0]))
    # The element in front is needed because CumSum becomes a Scan, which fails on an empty sequence.
    counted = op.Concat([-1], first.cast(TensorProto.INT64), axis=0)
    group = op.Slice(op.CumSum(counted, op.constant(0)), [1], [_END], [0])
    starts = op.Squeeze(op.NonZero(first), [0])
    start = op.Gather(starts, group, axis=0)
    turn = op.iota(size) - start
    last = op.ReduceMax(op.Concat(turn, [-1], axis=0), [0], keepdims=False)
    return number, updates, turn, last + op.constant(1)
