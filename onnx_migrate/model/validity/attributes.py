"""Whether the attributes of a node are well formed: named once, with a type, and with a value of that type.

Whether the operator has such an attribute, the schema decides. Source: onnx.proto, comments of AttributeProto, and
`check_attribute` of onnx/checker.cc.
"""

from __future__ import annotations

from functools import cache

import onnx
from onnx import AttributeProto

from onnx_migrate.model.validity.fault import Problem

__all__ = ["attribute_fault"]

_FIELD: dict[int, str] = {
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
_VALUES = frozenset(_FIELD.values())
_MESSAGES = frozenset(("t", "g", "sparse_tensor", "tp"))
"""Fields that must be there: one of a number or a string is left out by proto3 writers where it is 0 or empty."""


def attribute_fault(node: onnx.NodeProto, *, untyped: bool = False) -> Problem | None:
    """Return the problem if an attribute of a node is not well formed; None otherwise.

    `untyped` allows attributes without a type, which IR version 1 has.
    """
    attributes = node.attribute
    if len(attributes) > 1:
        names = [attribute.name for attribute in attributes]
        if len(set(names)) < len(names):
            name = next(name for place, name in enumerate(names) if name in names[:place])
            return Problem(code="duplicate-attribute", reason=f"has two attributes {name!r}")
    for attribute in attributes:
        fields = tuple([field.name for field, _ in attribute.ListFields()])
        problem = _problem(fields, attribute.type, untyped)
        if problem:
            return Problem(problem.code, problem.reason.format(name=repr(attribute.name)))
    return None


@cache
def _problem(fields: tuple[str, ...], kind: int, untyped: bool) -> Problem | None:
    """Return the problem of an attribute of type `kind` that has these fields; {name} stands for its name."""
    if "ref_attr_name" in fields:
        return None
    if not kind:
        return (
            None
            if untyped
            else Problem(code="bad-attribute", reason="has an attribute {name} without a type")
        )
    if kind not in _FIELD:
        return Problem(code="bad-attribute", reason=f"has an attribute {{name}} of the unknown type {kind}")
    label = AttributeProto.AttributeType.Name(kind)
    other = _VALUES.intersection(fields) - {_FIELD[kind]}
    if other:
        return Problem(
            code="bad-attribute",
            reason=f"has an attribute {{name}} of type {label} whose value is of another type: it is in the field"
            f" {min(other)!r}",
        )
    if _FIELD[kind] in _MESSAGES and _FIELD[kind] not in fields:
        return Problem(
            code="bad-attribute", reason=f"has an attribute {{name}} of type {label} without a value"
        )
    return None
