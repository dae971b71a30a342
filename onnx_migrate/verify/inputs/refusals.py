"""Corrects inputs that a model refuses: the runtime's error message suggests sizes and values, which are tried in turn."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import fed_inputs, initializer_types, names_read, nested_nodes, producers
from onnx_migrate.verify.compare.values import flatten
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.constraints.ranges import Range
from onnx_migrate.verify.inputs.constraints.value_ranges import input_ranges
from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.sizes import open_dims, tensor_in

__all__ = ["candidates", "corrected"]

_TRIES = 96
_PATIENCE = 8.0
"""Seconds after which no further correction is tried."""

_PER_REFUSAL = 32
"""Most corrections of one refusal that are tried after one of them led to another refusal."""

_LARGEST_SIZE = 4096
_OTHER_SIZES = 16
"""Sizes of other dims that are tried."""

_SMALL = 8
"""Elements up to which an input of floats may be a size or a number of steps."""

_NUMBER = re.compile(r"\d+")
_INTERVAL = re.compile(r"\[(-?\d+), ?(-?\d+)(\]|\))")
_INDEX = re.compile(r"ind(ex|ices)|bounds|range", re.IGNORECASE)

_NUMBERS = Range(0, 1, words=("0", "1", "2", "42"))
_TRIED = (
    Range(1, 1),
    Range(0, 1),
    Range(2, 2),
    Range(0, 0),
    Range.exactly(*range(64)),
    Range(2, 4),
    Range(32, 32),
)
"""Ranges of values, the likeliest first: a count or an index of all elements, a mask, nothing, different indices,
durations."""


def corrected(
    inputs: RandomInputs, run: Callable[[Mapping[str, Any]], Mapping[str, Any]], refusal: EvaluationError
) -> RandomInputs | None:
    """Return inputs on which the model runs, None if none were found; `refusal` is the error on the unchanged inputs.

    If no correction leads to a run, the function keeps one that leads to another refusal, once for each refusal. It uses a
    correction that makes every output empty only if no other one runs. It makes at most 96 runs, within eight seconds.
    """
    start = time.perf_counter()
    seen, tries = {_kind(refusal)}, 0
    empty: RandomInputs | None = None
    while True:
        further: tuple[RandomInputs, EvaluationError] | None = None
        for index, candidate in enumerate(candidates(inputs, refusal)):
            if further is not None and index >= _PER_REFUSAL:
                break
            if tries == _TRIES or time.perf_counter() - start > _PATIENCE:
                return empty
            tries += 1
            feed = candidate.feed("normal")
            if feed is None:
                continue
            try:
                outputs = list(run(feed).values())
            except EvaluationError as error:
                if error.limit:
                    return empty
                if further is None and _kind(error) not in seen:
                    further = candidate, error
            else:
                if any(array is None or array.size for _, array in flatten("", outputs)):
                    return candidate
                empty = empty or candidate
        if further is None:
            return empty
        inputs, refusal = further
        seen.add(_kind(refusal))


def _kind(refusal: EvaluationError) -> str:
    """Return the parts of a refusal that distinguish it from others: node and message without numbers."""
    return refusal.node + _NUMBER.sub("", str(refusal))


def candidates(inputs: RandomInputs, refusal: EvaluationError) -> Iterator[RandomInputs]:
    """Yield inputs with the corrections that the runtime's `refusal` of these suggests, likeliest first."""
    sizes = _named_sizes(inputs, str(refusal))
    values = _values(inputs, refusal)
    # A message about an index or a range is about values, and any other one most likely about dims.
    for corrections in (values, sizes) if _INDEX.search(str(refusal)) else (sizes, values):
        yield from corrections
    yield from _other_sizes(inputs)


def _with_size(inputs: RandomInputs, key: str, size: int) -> RandomInputs:
    return replace(inputs, sizes={**inputs.sizes, key: size})


def _named_sizes(inputs: RandomInputs, text: str) -> Iterator[RandomInputs]:
    """Give an open dim whose size the message names another size: one that it names, or the sum of two others."""
    named = [int(number) for number in _NUMBER.findall(text) if len(number) < 5]
    named = [number for number in dict.fromkeys(named) if 1 < number <= _LARGEST_SIZE]
    keys = open_dims(inputs.model, inputs.shapes)
    sizes = list(keys.values())
    sums = [a + b for i, a in enumerate(sizes) for b in sizes[i + 1 :]]
    for wanted in (named, sums, [1]):  # a length of 1 may agree by being repeated, which shows less
        for key, size in keys.items():
            for number in dict.fromkeys(wanted) if size in named else ():
                if number != size:
                    yield _with_size(inputs, key, number)


def _other_sizes(inputs: RandomInputs) -> Iterator[RandomInputs]:
    """Give an open dim the size of another dim of an input or constant."""
    shapes = inputs.shapes
    keys = open_dims(inputs.model, shapes)
    constants = (dims for _, _, dims in initializer_types(inputs.model.graph))
    sizes = [size for shape in (*shapes.values(), *constants) for size in shape if size > 1]
    for number in list(dict.fromkeys([*keys.values(), *sizes]))[:_OTHER_SIZES]:
        for key, size in keys.items():
            if number != size:
                yield _with_size(inputs, key, number)


def _values(inputs: RandomInputs, refusal: EvaluationError) -> Iterator[RandomInputs]:
    """Give the integers, short vectors of floats and strings upstream of the failing node other values.

    Integers that no node restricts first all get the same value, then each input alone gets another one.
    """
    shapes, upstream = inputs.shapes, _upstream(inputs.model, refusal)
    restricted = input_ranges(inputs.model, shapes)
    bounds = [
        Range(int(low), int(high) - (end == ")"))
        for low, high, end in _INTERVAL.findall(str(refusal))
        if int(low) < int(high)
    ]
    ranges = [*bounds, *_TRIED]
    numbers, strings = [], []
    for value in fed_inputs(inputs.model.graph):
        element = tensor_in(value)[0].tensor_type.elem_type
        whole = TensorProto.DataType.Name(element).startswith(("INT", "UINT"))
        if value.name not in upstream:
            continue
        if element == TensorProto.STRING:
            strings.append(value.name)
        elif element != TensorProto.BOOL and (whole or prod(shapes[value.name]) <= _SMALL):
            numbers.append((whole, value.name))

    def given(names: Iterable[str], accepted: Range) -> RandomInputs:
        return replace(inputs, values={**inputs.values, **dict.fromkeys(names, accepted)})

    if strings:
        yield given(strings, _NUMBERS)
    integers = [name for whole, name in numbers if whole]
    free = [name for name in integers if name not in restricted or restricted[name].weak]
    for together in (free, integers) if len(free) < len(integers) else (integers,):
        for accepted in ranges if len(together) > 1 else ():
            yield given(together, accepted)
    for accepted in ranges:
        # Integers come first, because a refusal is rarely about a short vector of floats.
        for _, name in sorted(numbers, reverse=True):
            yield given([name], accepted)


def _upstream(model: onnx.ModelProto, refusal: EvaluationError) -> set[str]:
    """Return the values that the refusing node depends on: the node by its name, or all nodes of its operator, or all nodes."""
    operator = str(refusal).partition(" ")[0]
    nodes = list(model.graph.node)
    failing = [node for node in nodes if refusal.node and node.name == refusal.node]
    failing = failing or [
        node for node in nodes if any(inner.op_type == operator for inner in nested_nodes([node]))
    ]
    makers = producers(model.graph)
    ancestors: set[str] = set()
    waiting = [name for node in failing or nodes for name in names_read(node)]
    while waiting:  # runtimes take nodes in any order
        name = waiting.pop()
        if name not in ancestors:
            ancestors.add(name)
            waiting.extend(names_read(makers[name]) if name in makers else ())
    return ancestors
