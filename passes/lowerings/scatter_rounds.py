"""Reductions of ScatterElements and ScatterND where an element may be updated more than once: in rounds without repeats."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from onnx_migrate.analysis.value_types import ValueType
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import INTEGERS, cast, integers, iota, reduce, shape_of, slice_axes, squeeze
from .flat_index import Dims
from .gather import element_numbers, index_length, row_numbers

__all__ = ["REDUCTIONS", "reduce_in_rounds"]

REDUCTIONS = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}

_FEW = 8
"""Rounds up to which they are written one behind the other if the indices are known."""

_KEPT = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT64)
"""Integers that are reduced in their own type; others as int64, whose low bits are theirs."""


def reduce_in_rounds(rw: LoweringRewriter, kind: str) -> None:
    """Replace a ScatterElements or ScatterND: in round r, the updates that are r-th for their element are reduced into it."""
    data, updates, dtype = rw.input(0), rw.input(2), rw.need_dtype(rw.input(0))
    flat = integers(rw, -1)
    number = rw.before("Reshape", [_numbers(rw), flat], hint="numbers")
    whole = shape_of(rw, data)
    state = rw.before("Reshape", [data, flat], hint="flat")
    updates = rw.before("Reshape", [updates, flat], hint="updates")
    wide = dtype if dtype not in INTEGERS or dtype in _KEPT else TensorProto.INT64
    state, updates = cast(rw, state, wide), cast(rw, updates, wide)
    known = rw.known(number)
    order = None if known is None else _turns(known)
    if known is not None and order is not None and max(order, default=0) < _FEW:
        for turn in range(max(order, default=-1) + 1):
            chosen = np.flatnonzero(order == turn)
            places = rw.constant(known[chosen].astype(np.int64), "places")
            update = rw.before(
                "Gather", [updates, rw.constant(chosen.astype(np.int64), "chosen")], hint="update", axis=0
            )
            old = rw.before("Gather", [state, places], hint="old", axis=0)
            new = rw.before(REDUCTIONS[kind], [old, update], hint="new")
            state = rw.before("ScatterElements", [state, places, new], hint="state", axis=0)
    else:
        state = _loop(rw, kind, state, number, updates, wide)
    state = cast(rw, state, dtype)
    rw.after("Reshape", [state, whole], [rw.output(0)])
    rw.remove()
    rw.note(f"reduction {kind} is computed in rounds, in each of which no element is updated twice")


def _numbers(rw: LoweringRewriter) -> str:
    """Return the number in the flattened data of the element that each update belongs to."""
    if rw.node.op_type == "ScatterElements":
        return element_numbers(rw, int(rw.get("axis", 0)))
    sizes = Dims(rw, rw.input(0))
    count = index_length(rw, rw.input(1))
    rows = row_numbers(rw, rw.input(1), count, sizes)
    if count == sizes.rank:
        return rows
    width = sizes.product(range(count, sizes.rank))
    rows = rw.before("Reshape", [rows, integers(rw, -1, 1)], hint="rows")
    return rw.before("Add", [rw.before("Mul", [rows, width], hint="rows"), iota(rw, width)], hint="numbers")


def _turns(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each number how often it stands before."""
    seen: Counter[int] = Counter()
    turns = []
    for number in numbers.tolist():
        turns.append(seen[number])
        seen[number] += 1
    return np.array(turns, np.int64)


def _loop(rw: LoweringRewriter, kind: str, state: str, number: str, updates: str, dtype: int) -> str:
    """Write the rounds as a Loop, and return the state at its end."""
    number, updates, turn, rounds = _turns_at_run_time(rw, number, updates)
    names = {name: rw.fresh(name) for name in ("round", "go", "going", "old_state", "new_state")}
    body = helper.make_graph(
        _round(rw, kind, names, number, updates, turn, dtype),
        rw.fresh("round"),
        [
            helper.make_tensor_value_info(names["round"], TensorProto.INT64, []),
            helper.make_tensor_value_info(names["go"], TensorProto.BOOL, []),
            helper.make_tensor_value_info(names["old_state"], dtype, [None]),
        ],
        [
            helper.make_tensor_value_info(names["going"], TensorProto.BOOL, []),
            helper.make_tensor_value_info(names["new_state"], dtype, [None]),
        ],
    )
    true = rw.constant(np.array(True), "true")
    result = rw.before("Loop", [rounds, true, state], hint="state", body=body)
    rw.scope.record_type(result, ValueType(dtype, (None,)))
    return result


def _turns_at_run_time(rw: LoweringRewriter, number: str, updates: str) -> tuple[str, str, str, str]:
    """Return the elements and the updates, sorted by element, in which round each update is, and how many rounds there are."""
    size = rw.before("Shape", [number], hint="size")
    if rw.target < 10 and rw.known(size) is None:
        # TopK takes no computed number of elements there: each update has a round of its own.
        rw.note("each update has a round of its own, which takes long if there are many")
        return number, updates, iota(rw, size), squeeze(rw, size, [0])
    # As double, which TopK takes in all versions, and which holds all numbers of elements.
    wide = rw.before("Cast", [number], hint="numbers", to=int(TensorProto.DOUBLE))
    rw.before("TopK", [wide, size], hint="sorted", outputs=2, axis=0, largest=0, sorted=1)
    order = rw.preceding[-1].output[1]
    number = rw.before("Gather", [number, order], hint="numbers", axis=0)
    updates = rw.before("Gather", [updates, order], hint="updates", axis=0)
    padded = rw.before("Concat", [integers(rw, -1), number], hint="shifted", axis=0)
    same = rw.before("Equal", [number, slice_axes(rw, padded, [0], [-1], [0])], hint="same")
    first = rw.before("Not", [same], hint="first")
    counted = rw.before("Cast", [first], hint="first", to=int(TensorProto.INT64))
    # With an element in front, as the Scan that CumSum becomes takes no empty sequence.
    counted = rw.before("Concat", [integers(rw, -1), counted], hint="counted", axis=0)
    group = rw.before("CumSum", [counted, rw.constant(np.array(0, np.int64), "axis")], hint="group")
    group = slice_axes(rw, group, [1], [np.iinfo(np.int64).max], [0])
    starts = squeeze(rw, rw.before("NonZero", [first], hint="starts"), [0])
    start = rw.before("Gather", [starts, group], hint="start", axis=0)
    turn = rw.before("Sub", [iota(rw, size), start], hint="turn")
    last = reduce(
        rw,
        "ReduceMax",
        rw.before("Concat", [turn, integers(rw, -1)], hint="turns", axis=0),
        [0],
        keepdims=False,
    )
    rounds = rw.before("Add", [last, rw.constant(np.array(1, np.int64), "one")], hint="rounds")
    return number, updates, turn, rounds


def _round(
    rw: LoweringRewriter, kind: str, names: dict[str, str], number: str, updates: str, turn: str, dtype: int
) -> list[NodeProto]:
    """Return the nodes of one round, in forms that every opset from 9 to the one left has."""
    flat = integers(rw, -1)
    nodes: list[NodeProto] = [
        helper.make_node("Identity", [names["go"]], [names["going"]], name=rw.fresh("copy"))
    ]

    def write(operator: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        output = output or rw.fresh(operator.lower())
        nodes.append(helper.make_node(operator, inputs, [output], name=rw.fresh(operator), **attributes))
        return output

    places = write("NonZero", [write("Equal", [turn, names["round"]])])
    chosen = write("Reshape", [places, flat])
    element = write("Gather", [number, chosen], axis=0)
    update = write("Gather", [updates, chosen], axis=0)
    old = write("Gather", [names["old_state"], element], axis=0)
    if kind in ("max", "min") and dtype in INTEGERS and rw.target < 12:
        larger = write("Greater", [old, update])
        new = write("Where", [larger, old, update] if kind == "max" else [larger, update, old])
    else:
        new = write(REDUCTIONS[kind], [old, update])
    scatter = "Scatter" if rw.target < 11 else "ScatterElements"
    write(scatter, [names["old_state"], element, new], names["new_state"], axis=0)
    return nodes
