"""Checks that the equations of Einsum are valid, also those that calls pass to functions, and that they fit the inputs.

On texts such as "a-" or "......" onnx's shape inference does not end (onnx 1.23), and ONNX Runtime calls it as it loads a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import onnx
from onnx import AttributeProto

from onnx_migrate.errors import Where
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import (
    FunctionKey,
    LocatedBody,
    bodies,
    called,
    function_key,
    function_path,
    nested_nodes,
)
from onnx_migrate.model.validity.fault import Fault, where_of
from onnx_migrate.standard.einsum import Equation, NotAnEquation, parsed, shown
from onnx_migrate.standard.schema import is_onnx

__all__ = ["equation_complaint", "equation_faults"]

_HINT = "write the equation as numpy.einsum takes it, such as 'ij,jk->ik'"


def equation_faults(proto: onnx.ModelProto) -> Iterator[Fault]:
    """Yield a fault for each Einsum whose equation is none or does not fit, and each call that hands one to such a node."""
    located = list(bodies(proto))
    # Ranks of all values take time, and few models have an Einsum.
    if not any(operator == "Einsum" for body in located for _, operator in body.operators):
        return
    handed = _handed_on(proto)
    for function in proto.functions:
        for attribute in function.attribute_proto:
            if attribute.name in handed[function_key(function)]:
                yield from _text_fault(attribute, Where(function_path(function)))
    for body in located:
        ranks = _ranks(body)
        for node in body.body.node:
            yield from _node_faults(node, body.path, ranks, handed.get(called(node), frozenset()))


def _node_faults(
    node: onnx.NodeProto, path: str, ranks: Mapping[str, int], handed: frozenset[str]
) -> Iterator[Fault]:
    if _is_einsum(node):
        complaint = equation_complaint(node, [ranks.get(name) for name in node.input])
        if complaint:
            yield Fault("invalid-node", complaint, where_of(path, node), _HINT)
    for attribute in node.attribute if handed else ():
        if attribute.name in handed:
            yield from _text_fault(attribute, where_of(path, node))


def equation_complaint(node: onnx.NodeProto, ranks: Iterable[int | None]) -> str:
    """Return why the equation of an Einsum is none, or does not fit inputs of these ranks, None for one not known; "" if it does.

    An equation that stands for an attribute of a function has no text here, and no complaint.
    """
    text = next((attribute for attribute in node.attribute if attribute.name == "equation"), None)
    if text is None or text.ref_attr_name:
        return ""
    operands = text.s.partition(b"->")[0].count(b",") + 1
    quoted = shown(text.s.decode(errors="replace"))
    if operands != len(node.input):  # before its labels are read, as a text may be megabytes long
        return f"its equation {quoted} has {count_of(operands, 'operand')}, and the node {count_of(len(node.input), 'input')}"
    equation = _equation(text)
    if isinstance(equation, str):
        return equation
    for input_index, rank in enumerate(ranks):
        if rank is not None and not equation.fits_rank(input_index, rank):
            labels = "".join(equation.operands[input_index])
            return (
                f"its equation {quoted} has the labels {labels!r} for input {input_index}, which has"
                f" {count_of(rank, 'axis')}"
            )
    return ""


def _text_fault(attribute: AttributeProto, where: Where) -> Iterator[Fault]:
    equation = "" if attribute.ref_attr_name else _equation(attribute)
    if isinstance(equation, str) and equation:
        yield Fault("invalid-node", equation, where, _HINT)


def _equation(attribute: AttributeProto) -> Equation | str:
    """Return the equation that an attribute holds, or why it is none."""
    try:
        text = attribute.s.decode()
    except UnicodeDecodeError:
        return f"its equation {attribute.s!r:.80} is no text in UTF-8"
    try:
        return parsed(text)
    except NotAnEquation as error:
        return f"its equation {shown(text)} is not one: {error}"


def _is_einsum(node: onnx.NodeProto) -> bool:
    return node.op_type == "Einsum" and is_onnx(node.domain)


def _ranks(located: LocatedBody) -> dict[str, int]:
    """Return the ranks of a body's inputs and initializers; the declared ranks of other values may be wrong."""
    body = located.body
    if not isinstance(body, onnx.GraphProto) or located.key:
        return {}
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in body.input
        if value.type.tensor_type.HasField("shape")
    }
    return ranks | {tensor.name: len(tensor.dims) for tensor in body.initializer}


def _handed_on(proto: onnx.ModelProto) -> dict[FunctionKey, frozenset[str]]:
    """Return the attributes of each function that are the equation of an Einsum in it, or in a function that it calls."""
    functions = {function_key(function): function for function in proto.functions}
    equation_attributes: dict[FunctionKey, frozenset[str]] = dict.fromkeys(functions, frozenset())
    changed = bool(functions)
    # Attributes pass through chains of calls, so this repeats until no set grows.
    while changed:
        changed = False
        for key, function in functions.items():
            names = frozenset(_references(function, equation_attributes))
            changed |= names != equation_attributes[key]
            equation_attributes[key] = names
    return equation_attributes


def _references(function: onnx.FunctionProto, found: Mapping[FunctionKey, frozenset[str]]) -> Iterator[str]:
    for node in nested_nodes(function.node):
        wanted = {"equation"} if _is_einsum(node) else found.get(called(node), frozenset())
        for attribute in node.attribute if wanted else ():
            if attribute.ref_attr_name and attribute.name in wanted:
                yield attribute.ref_attr_name
