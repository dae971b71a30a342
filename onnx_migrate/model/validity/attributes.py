"""Whether the attributes of a node are well formed: named once, with a type, and with a value of that type.

Whether the operator has such an attribute, the schema decides. Source: onnx.proto, comments of AttributeProto, and
`check_attribute` of onnx/checker.cc.
"""

from __future__ import annotations

import onnx
from onnx import AttributeProto

from onnx_migrate.model.validity.fault import Problem

__all__ = ["attribute_fault"]

_FIELD = {
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

_FIELDS_OF = {
    kind: (frozenset({name}) if name in _MESSAGES else frozenset()) for kind, name in _FIELD.items()
}


def attribute_fault(node: onnx.NodeProto, *, untyped: bool = False) -> Problem | None:
    """Return the problem if an attribute of a node is not well formed; None otherwise.

    `untyped` allows attributes without a type, which IR version 1 has.
    """
    seen: set[str] = set()
    for attribute in node.attribute:
        name = attribute.name
        if name in seen:
            return Problem(code="duplicate-attribute", reason=f"has two attributes {name!r}")
        seen.add(name)
        kind = attribute.type
        if attribute.ref_attr_name:
            continue
        given = {field.name for field, _ in attribute.ListFields()} & _VALUES
        if not kind:
            if untyped:
                continue
            return Problem(code="bad-attribute", reason=f"has an attribute {name!r} without a type")
        if kind not in _FIELD:
            return Problem(
                code="bad-attribute", reason=f"has an attribute {name!r} of the unknown type {kind}"
            )
        if given - {_FIELD[kind]}:
            return Problem(
                code="bad-attribute",
                reason=f"has an attribute {name!r} of type {AttributeProto.AttributeType.Name(kind)} whose value is of another"
                f" type: it is in the field {min(given - {_FIELD[kind]})!r}",
            )
        if not given >= _FIELDS_OF[kind]:
            return Problem(
                code="bad-attribute",
                reason=f"has an attribute {name!r} of type {AttributeProto.AttributeType.Name(kind)} without a value",
            )
    return None
