"""Which values each graph input may have: those that the nodes accept which the input's elements reach.

Also which inputs of floats must keep theirs exactly, and which integer a model looks for in texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import onnx
from onnx import NodeProto, TensorProto

from onnx_migrate.model.graphs import fed_inputs, nested_nodes, subgraphs
from onnx_migrate.verify.inputs.constraints.facts import Argument, Facts
from onnx_migrate.verify.inputs.constraints.operator_ranges import accepted_range, inputs_passed_through
from onnx_migrate.verify.inputs.constraints.ranges import INVERTED, Range, range_before
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["chosen_numbers", "exact_inputs", "input_ranges", "padded", "padding_ids", "without_functions"]

_DEEPEST = 64
"""Nodes after which an input is not followed any further."""

_INTEGERS = frozenset(
    {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64}
    | {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)
_IDS = frozenset({TensorProto.INT32, TensorProto.INT64})
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16})

_DECIDING = frozenset(
    {("Resize", 2), ("Upsample", 1), ("OneHot", 1), ("Range", 0), ("Range", 1), ("Range", 2)}
)
"""Operators and the positions of their inputs that the output's shape depends on."""


def input_ranges(
    model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, Range]:
    """Return the range of each graph input's values; it lacks inputs without a known range.

    The function follows an input through nodes that pass its elements through or do integer arithmetic, into sub-graphs and into
    local functions. `shapes` are those that the inputs will have.
    """
    # Readers inside functions count like those around them.
    flat = without_functions(model)
    readers, facts = _readers(nested_nodes(flat.graph.node)), Facts(flat, shapes)
    ranges: dict[str, Range] = {}
    for value in model.graph.input:
        text = value.type.tensor_type.elem_type == TensorProto.STRING
        for accepted in _accepted(value.name, readers, facts, set()):
            # Ranges of numbers say nothing about texts, and vice versa.
            if bool(accepted.words) != text:
                continue
            earlier_range = ranges.get(value.name)
            ranges[value.name] = accepted if earlier_range is None else earlier_range.intersection(accepted)
    return ranges


def without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its local functions inlined; the given model if onnx cannot inline them."""
    if not model.functions:
        return model
    import onnx.inliner  # part of onnx from 1.15 on

    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception:  # onnx raises unrelated kinds; then inputs are followed up to the calls
        return model


_Readers = Mapping[str, Sequence[tuple[NodeProto, int]]]
"""The nodes that read each value, with the position of the input they read it at."""


def _accepted(name: str, readers: _Readers, facts: Facts, seen: set[str], depth: int = 0) -> Iterator[Range]:
    """Yield the ranges that nodes accept of a value, which is followed to those that restrict it; `seen` gets each value."""
    if name in seen or depth > _DEEPEST:
        return
    seen.add(name)
    for node, index in readers.get(name, ()):
        argument = Argument(node, index, facts)
        accepted = accepted_range(argument)
        if accepted is not None:
            yield accepted
        if index in inputs_passed_through(node):
            for output in node.output:
                yield from _accepted(output, readers, facts, seen, depth + 1)
        elif index >= 2 and node.op_type == "Loop":
            for _, _, body in subgraphs(node):
                for inner in body.input[index : index + 1]:  # a body that is not valid has fewer
                    yield from _accepted(inner.name, readers, facts, seen, depth + 1)
        elif node.op_type in INVERTED and (facts.element_type(name) in _INTEGERS or facts.shape(name) == ()):
            for output in node.output[:1]:
                for behind in _accepted(output, readers, facts, seen, depth + 1):
                    before = range_before(argument, behind)
                    if before is not None:
                        yield before


def _readers(nodes: Iterable[NodeProto]) -> _Readers:
    table: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in nodes:
        for index, name in enumerate(node.input):
            if name:
                table.setdefault(name, []).append((node, index))
    return table


def _readers_of_elements(name: str, readers: _Readers) -> Iterator[tuple[NodeProto, int]]:
    """Yield the nodes that read a value, or its elements behind nodes that pass these through, and the input's position."""
    seen, waiting = {name}, [name]
    while waiting:
        for node, index in readers.get(waiting.pop(), ()):
            yield node, index
            if index in inputs_passed_through(node):
                waiting += [output for output in node.output if output not in seen]
                seen.update(node.output)


def exact_inputs(model: onnx.ModelProto) -> frozenset[str]:
    """Return the float graph inputs that an operator takes unchanged as scales, a depth or limits, or writes as text.

    When the verifier measures how far rounding moves outputs, these inputs stay unchanged. For example, a scale slightly below 1
    makes the output one element shorter.
    """
    readers, inputs = _readers(nested_nodes(model.graph.node)), fed_inputs(model.graph)
    elements = {value.name: value.type.tensor_type.elem_type for value in inputs}

    def decides(node: NodeProto, index: int) -> bool:
        if node.op_type == "Cast":
            return any(a.name == "to" and a.i == TensorProto.STRING for a in node.attribute)
        if node.op_type == "CastLike":
            return elements.get(node.input[1]) == TensorProto.STRING
        return (node.op_type, index) in _DECIDING

    return frozenset(
        name
        for name, element in elements.items()
        if element in _FLOATS and any(decides(*reader) for reader in _readers_of_elements(name, readers))
    )


def padding_ids(model: onnx.ModelProto) -> dict[str, int]:
    """Return, for each input, the integer that the model looks for, like the id that pads a text: random ids rarely contain it.

    It is the first number that an Equal in the main graph compares elements of the input with. Only inputs of int32 and int64
    with two axes or more have one, like inputs of text ids.
    """
    return _compared_numbers(model, lambda dims: len(dims) > 1)


def chosen_numbers(model: onnx.ModelProto) -> dict[str, int]:
    """Return, for each input of one integer, the first number that Equal compares it with: a branch may depend on it.

    An example is a sampling rate.
    """
    return _compared_numbers(model, lambda dims: dims in ([], [1]))


def _compared_numbers(model: onnx.ModelProto, has: Callable[[list[int]], bool]) -> dict[str, int]:
    kinds = {value.name: value.type.tensor_type for value in fed_inputs(model.graph)}
    names = [
        name
        for name, kind in kinds.items()
        if kind.elem_type in _IDS and has([dim.dim_value for dim in kind.shape.dim])
    ]
    if not names:  # as of most models, whose nodes need not be read then
        return {}
    readers, facts = _readers(model.graph.node), Facts(model)
    compared: dict[str, int] = {}
    for name in names:
        for node, index in _readers_of_elements(name, readers):
            if node.op_type == "Equal" and len(node.input) == 2:
                number = facts.value(node.input[1 - index])
                if number is not None and number.size == 1 and float(number.item()).is_integer():
                    compared[name] = int(number.item())
                    break
    return compared


def padded(values: Array, padding_id: int) -> Array:
    """Return values in which every row ends with the id, from once up to half its length, each row differently often."""
    length = values.shape[-1]
    copy = values.copy()
    for index, row in enumerate(copy.reshape(-1, length)):
        row[length - 1 - (index + length // 4) % max(1, length // 2) :] = padding_id
    return copy
