"""Corrections of inputs that a runtime's refusal suggests: sizes of open dims, and values of integers and strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import fed_inputs, initializer_types, names_read, nested_nodes
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.constraints.ranges import Range
from onnx_migrate.verify.inputs.constraints.value_ranges import input_ranges
from onnx_migrate.verify.inputs.generate import Corrections
from onnx_migrate.verify.inputs.input_shapes import input_shapes, open_dims, tensor_in
from onnx_migrate.verify.inputs.sizes import SizeChoice

__all__ = ["candidates"]

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


def candidates(
    model: onnx.ModelProto,
    other: onnx.ModelProto | None,
    choice: SizeChoice,
    known: Corrections,
    refusal: EvaluationError,
) -> Iterator[Corrections]:
    """Yield the corrections of inputs made with `known` ones that the runtime's `refusal` suggests, likeliest first."""
    shapes = input_shapes(model, other, choice, known.sizes)
    upstream = _upstream(model, refusal)
    restricted = input_ranges(model, shapes)
    free = {name for name in upstream if name not in restricted or restricted[name].weak}
    sizes = _named_sizes(model, shapes, known, str(refusal))
    values = _values(model, shapes, upstream, free, known, str(refusal))
    if _INDEX.search(str(refusal)):
        yield from values
        yield from sizes
    else:
        yield from sizes
        yield from values
    yield from _other_sizes(model, shapes, known)


def _named_sizes(
    model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]], known: Corrections, text: str
) -> Iterator[Corrections]:
    """Give an open dim whose size the message names another size: one that it names, or the sum of two others."""
    named = [int(number) for number in _NUMBER.findall(text) if len(number) < 5]
    named = [number for number in dict.fromkeys(named) if 1 < number <= _LARGEST_SIZE]
    keys = open_dims(model, shapes)
    sizes = list(keys.values())
    sums = [a + b for i, a in enumerate(sizes) for b in sizes[i + 1 :]]
    for wanted in (named, sums, [1]):  # a length of 1 may agree by being repeated, which shows less
        for key, size in keys.items():
            for number in dict.fromkeys(wanted) if size in named else ():
                if number != size:
                    yield replace(known, sizes={**known.sizes, key: number})


def _other_sizes(
    model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]], known: Corrections
) -> Iterator[Corrections]:
    """Give an open dim the size of another dim of an input or constant."""
    keys = open_dims(model, shapes)
    constants = [size for _, _, dims in initializer_types(model.graph) for size in dims if size > 1]
    sizes = [*keys.values(), *(size for shape in shapes.values() for size in shape if size > 1), *constants]
    for number in list(dict.fromkeys(sizes))[:_OTHER_SIZES]:
        for key, size in keys.items():
            if number != size:
                yield replace(known, sizes={**known.sizes, key: number})


def _values(
    model: onnx.ModelProto,
    shapes: Mapping[str, tuple[int, ...]],
    upstream: set[str],
    free: set[str],
    known: Corrections,
    text: str,
) -> Iterator[Corrections]:
    """Give the integers, short vectors of floats and strings `upstream` of the failing node other values.

    Integers of which no node restricts the values (`free`) get the same first, then each input by itself.
    """
    bounds = [
        Range(int(low), int(high) - (end == ")"))
        for low, high, end in _INTERVAL.findall(text)
        if int(low) < int(high)
    ]
    ranges = [*bounds, *_TRIED]
    numbers, strings = [], []
    for value in fed_inputs(model.graph):
        element = tensor_in(value)[0].tensor_type.elem_type
        if value.name not in upstream:
            continue
        if element == TensorProto.STRING:
            strings.append(value.name)
        elif element != TensorProto.BOOL and (_is_integer(element) or prod(shapes[value.name]) <= _SMALL):
            numbers.append((_is_integer(element), value.name))
    if strings:
        yield replace(known, values={**known.values, **dict.fromkeys(strings, _NUMBERS)})
    integers = [name for integer, name in numbers if integer]
    unrestricted = [name for name in integers if name in free]
    for together in (unrestricted, integers) if len(unrestricted) < len(integers) else (integers,):
        for accepted in ranges if len(together) > 1 else ():
            yield replace(known, values={**known.values, **dict.fromkeys(together, accepted)})
    for accepted in ranges:
        for _, name in sorted(numbers, reverse=True):
            yield replace(known, values={**known.values, name: accepted})


def _is_integer(element: int) -> bool:
    return TensorProto.DataType.Name(element).startswith(("INT", "UINT"))


def _upstream(model: onnx.ModelProto, refusal: EvaluationError) -> set[str]:
    """Return the values that the refusing node depends on: by its name, else all nodes of its operator, else all."""
    operator = str(refusal).partition(" ")[0]
    nodes = list(model.graph.node)
    failing = [node for node in nodes if refusal.node and node.name == refusal.node]
    failing = failing or [
        node for node in nodes if any(inner.op_type == operator for inner in nested_nodes([node]))
    ]
    producer = {name: node for node in nodes for name in node.output}
    found: set[str] = set()
    waiting = [name for node in failing or nodes for name in names_read(node)]
    while waiting:  # runtimes take nodes in any order
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(names_read(producer[name]) if name in producer else ())
    return found
