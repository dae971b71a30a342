"""The integers that a model looks for in an input, as the id that pads a text: made-up ids rarely contain them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx

from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import Array
from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.operator_ranges import inputs_passed_through

__all__ = ["marks", "padded"]

_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


def marks(model: onnx.ModelProto) -> dict[str, int]:
    """Return by input the first integer that its elements are compared with by Equal, in the main graph.

    Only for inputs of int32 and int64 with two axes or more, as those of texts are.
    """
    consumers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            consumers.setdefault(name, []).append(node)
    facts: list[Facts] = []
    found = {}
    for value in fed_inputs(model.graph):
        kind = value.type.tensor_type
        if kind.elem_type in _INTEGERS and len(kind.shape.dim) >= 2:
            mark = next(_compared(model, value.name, consumers, facts), None)
            if mark is not None:
                found[value.name] = mark
    return found


def padded(values: Array, mark: int) -> Array:
    """Return values in which every row ends with the mark, from once up to half its length, each row differently often."""
    length = values.shape[-1]
    copy = values.copy()
    for index, row in enumerate(copy.reshape(-1, length)):
        row[length - 1 - (index + length // 4) % max(1, length // 2) :] = mark
    return copy


def _compared(
    model: onnx.ModelProto, name: str, consumers: Mapping[str, Sequence[onnx.NodeProto]], facts: list[Facts]
) -> Iterator[int]:
    """Yield the integers that a value is compared with; `facts` are made when they are asked for first."""
    seen, waiting = {name}, [name]
    while waiting:
        read = waiting.pop()
        for node in consumers.get(read, ()):
            if node.op_type == "Equal" and len(node.input) == 2:
                if not facts:
                    facts.append(Facts(model))
                other = node.input[1] if node.input[0] == read else node.input[0]
                number = facts[0].value(other)
                if number is not None and number.size == 1 and float(number.item()).is_integer():
                    yield int(number.item())
            elif list(node.input).index(read) in inputs_passed_through(node):
                waiting += [output for output in node.output if output not in seen]
                seen.update(node.output)
