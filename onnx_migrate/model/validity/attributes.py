"""Whether the attributes of a node are well formed: named once, with a type, with a value of that type, and fit for the node.

Whether the operator has such an attribute, the schema decides. Source: onnx.proto, comments of AttributeProto,
`check_attribute` of onnx/checker.cc, and for sub-graphs the texts of If, Loop and Scan in onnx/docs/Operators.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import onnx
from onnx import AttributeProto

from onnx_migrate.messages import count_of
from onnx_migrate.model.validity.fault import Problem
from onnx_migrate.standard.allowed_values import READ_BY_RUNTIME, UNCHECKED, runtime_reading
from onnx_migrate.standard.schema import is_onnx

__all__ = ["CONSTANT_KINDS", "FIELD", "attribute_fault"]

FIELD: dict[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
CONSTANT_KINDS: dict[str, int] = {
    "value": AttributeProto.TENSOR,
    "sparse_value": AttributeProto.SPARSE_TENSOR,
    "value_float": AttributeProto.FLOAT,
    "value_floats": AttributeProto.FLOATS,
    "value_int": AttributeProto.INT,
    "value_ints": AttributeProto.INTS,
    "value_string": AttributeProto.STRING,
    "value_strings": AttributeProto.STRINGS,
}
"""The attributes of a Constant and their types; each Constant has one of them."""

_VALUES = frozenset(FIELD.values())
_SHORT = frozenset((AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRING))
_MESSAGES = frozenset(("t", "g", "sparse_tensor", "tp"))
"""Fields that must be present. proto3 writers omit a number of 0 and an empty string, so those need not be."""


def attribute_fault(node: onnx.NodeProto, *, untyped: bool = False) -> Problem | None:
    """Return the problem if an attribute of a node is not well formed; None otherwise.

    `untyped` allows attributes without a type, which IR version 1 has.
    """
    attributes = node.attribute[:]
    if len(attributes) > 1:
        names = [attribute.name for attribute in attributes]
        # Comparing the lengths first is cheap, and names rarely repeat.
        if len(set(names)) < len(names):
            name = next(name for index, name in enumerate(names) if name in names[:index])
            return Problem(code="duplicate-attribute", reason=f"has two attributes {name!r}")
    for attribute in attributes:
        kind = attribute.type
        if kind in _SHORT:
            problem = _problem_of_bytes(attribute.SerializeToString(), untyped)
        else:
            problem = _problem(_fields(attribute), kind, untyped)
        if problem:
            return Problem(problem.code, problem.reason.format(name=repr(attribute.name)))
    operator = node.op_type
    # The rules below are those of ai.onnx.
    if not (operator in _FITS or operator in READ_BY_RUNTIME) or not is_onnx(node.domain):
        return None
    complaint = _FITS[operator](node) if operator in _FITS else ""
    if complaint:
        return Problem(code="invalid-node", reason=complaint)
    return _value_problem(node) if operator in READ_BY_RUNTIME else None


def _value_problem(node: onnx.NodeProto) -> Problem | None:
    """Return the problem of a text that no version of the operator has, and that ONNX Runtime reads as another."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.STRING and not attribute.ref_attr_name:
            text = attribute.s.decode(errors="replace")
            if runtime_reading(node.op_type, attribute.name, text) is not None:
                reason = f"has {attribute.name}={text!r}, which {node.op_type} does not have"
                return Problem(code="no-such-value", reason=reason)
    return None


def _split_complaint(node: onnx.NodeProto) -> str:
    """Return the problem of a Split that contradicts itself; onnx's inference of it ends the process (onnx 1.23)."""
    stated_count = _number(node, "num_outputs", len(node.output))
    return (
        ""
        if stated_count == len(node.output)
        else f"has num_outputs={stated_count} and {len(node.output)} outputs"
    )


def _constant_complaint(node: onnx.NodeProto) -> str:
    values = [a.name for a in node.attribute if a.name in CONSTANT_KINDS]
    if len(values) != 1:
        return f"has {' and '.join(values) or 'no value'}, and must have exactly one value"
    if node.input:
        return f"has {count_of(len(node.input), 'input')}, and Constant takes none"
    for attribute in node.attribute:
        kind = CONSTANT_KINDS.get(attribute.name)
        if kind is None:
            return f"has an attribute {attribute.name!r}, which Constant does not have"
        if attribute.type and attribute.type != kind:
            actual_type, wanted = map(AttributeProto.AttributeType.Name, (attribute.type, kind))
            return f"has attribute {attribute.name!r} of type {actual_type}, but Constant takes {wanted}"
    return ""


def _unchecked_complaint(node: onnx.NodeProto) -> str:
    unknown = [
        attribute.name for attribute in node.attribute if attribute.name not in UNCHECKED[node.op_type]
    ]
    return f"has an attribute {unknown[0]!r}, which {node.op_type} does not have" if unknown else ""


def _if_complaint(node: onnx.NodeProto) -> str:
    for name, branch in _bodies(node):
        listed = {tensor.name for tensor in branch.initializer}
        if any(value.name not in listed for value in branch.input):
            return f"has {name} with inputs, and a branch of an If has none"
        if len(branch.output) != len(node.output):
            return f"has {count_of(len(node.output), 'output')}, and its {name} {len(branch.output)}"
    return ""


def _loop_complaint(node: onnx.NodeProto) -> str:
    carried = max(0, len(node.input) - 2)
    return _iterated_complaint(node, (2 + carried,), (1 + carried, 1 + len(node.output)))


def _scan_complaint(node: onnx.NodeProto) -> str:
    input_count = len(node.input)
    scanned = _number(node, "num_scan_inputs", input_count)
    if not 1 <= scanned <= input_count:
        return f"has num_scan_inputs={scanned} and {count_of(input_count, 'input')}"
    # Version 8 has one input more, the lengths.
    return _iterated_complaint(
        node, (input_count, input_count - 1), (input_count - 1 - scanned, len(node.output))
    )


def _iterated_complaint(node: onnx.NodeProto, takes: tuple[int, ...], gives: tuple[int, ...]) -> str:
    """Return the problem of a loop whose body has other numbers of inputs than `takes`, or fewer outputs than `gives`."""
    for name, body in _bodies(node):
        # Up to IR version 3 each initializer is listed as an input as well, and callers do not feed it.
        listed = {tensor.name for tensor in body.initializer}
        inputs = sum(value.name not in listed for value in body.input)
        if inputs not in takes and len(body.input) not in takes:
            return f"has {count_of(len(node.input), 'input')}, so that its {name} must have {takes[0]}, and it has {inputs}"
        least = max(gives)
        if len(body.output) < least:
            outputs = count_of(len(node.output), "output")
            return (
                f"has {outputs}, so that its {name} must have {least} or more, and it has {len(body.output)}"
            )
    return ""


def _bodies(node: onnx.NodeProto) -> list[tuple[str, onnx.GraphProto]]:
    return [
        (attribute.name, attribute.g)
        for attribute in node.attribute
        if attribute.type == AttributeProto.GRAPH and not attribute.ref_attr_name
    ]


def _number(node: onnx.NodeProto, name: str, default: int) -> int:
    """Return the number of an attribute; return `default` if the node omits it or it refers to a function's attribute."""
    numbers = (
        attribute.i for attribute in node.attribute if attribute.name == name and not attribute.ref_attr_name
    )
    return next(numbers, default)


_FITS: dict[str, Callable[[onnx.NodeProto], str]] = {
    "Constant": _constant_complaint,
    "If": _if_complaint,
    **dict.fromkeys(UNCHECKED, _unchecked_complaint),
    "Loop": _loop_complaint,
    "Scan": _scan_complaint,
    "Split": _split_complaint,
}
"""Operators whose attributes can contradict the rest of the node."""


def _fields(attribute: AttributeProto) -> tuple[str, ...]:
    return tuple([field.name for field, _ in attribute.ListFields()])


@lru_cache(maxsize=1024)
def _problem_of_bytes(attribute: bytes, untyped: bool) -> Problem | None:
    """Return the problem that `_problem` finds in a serialised attribute.

    Many nodes have the same attribute, and to list its fields takes longer than to look up the answer.
    """
    parsed = AttributeProto.FromString(attribute)
    return _problem(_fields(parsed), parsed.type, untyped)


@cache
def _problem(fields: tuple[str, ...], kind: int, untyped: bool) -> Problem | None:
    """Return the problem of an attribute of type `kind` that has these fields; {name} stands for its name."""
    if "ref_attr_name" in fields:
        return None
    # IR version 1 has attributes without a type.
    if not kind:
        return (
            None
            if untyped
            else Problem(code="bad-attribute", reason="has an attribute {name} without a type")
        )
    if kind not in FIELD:
        return Problem(code="bad-attribute", reason=f"has an attribute {{name}} of the unknown type {kind}")
    label = AttributeProto.AttributeType.Name(kind)
    other = _VALUES.intersection(fields) - {FIELD[kind]}
    if other:
        return Problem(
            code="bad-attribute",
            reason=f"has an attribute {{name}} of type {label} whose value is of another type: it is in the field"
            f" {min(other)!r}",
        )
    if FIELD[kind] in _MESSAGES and FIELD[kind] not in fields:
        return Problem(
            code="bad-attribute", reason=f"has an attribute {{name}} of type {label} without a value"
        )
    return None
