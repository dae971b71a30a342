"""Reasons why a target does not support a node: its operator, the values of its attributes, or its element type."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import onnx
from onnx import helper

from onnx_migrate.engine.steps.decompose import Newer, Types, Unfit
from onnx_migrate.facts.scope import Scope
from onnx_migrate.messages import count_of, listed
from onnx_migrate.rewrite.operator_counts import operator_name
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.schema import signature_at
from onnx_migrate.standard.targets import OperatorSupport, Target, Targets
from onnx_migrate.standard.targets.rows import Range

__all__ = ["lack_of", "misfits_of", "newer_forms", "types_taken", "value_of", "values_of", "where_to_find"]

_MISSING = object()

_UNUSED = {
    ("Resize", "nearest_mode"): ("mode", "nearest"),
    ("Resize", "cubic_coeff_a"): ("mode", "cubic"),
    ("Resize", "exclude_outside"): ("mode", "cubic"),
    ("Resize", "extrapolation_value"): ("coordinate_transformation_mode", "tf_crop_and_resize"),
}
"""Attributes that mean nothing unless another has a value."""


def misfits_of(targets: Targets) -> Unfit:
    """Return a function that returns the reason why the targets do not support a node, in one clause, or None if they do."""

    @cache
    def lacking(domain: str, operator: str) -> str | None:
        lacking_targets = targets.lacks(domain, operator)
        return lack_of(lacking_targets, operator_name(domain, operator)) if lacking_targets else None

    # Many nodes share an operator.
    limits = cache(targets.limits)

    def unfit(node: onnx.NodeProto, scope: Scope) -> str | None:
        reason = lacking(node.domain, node.op_type)
        if reason is not None:
            return reason
        for target, row in limits(node.domain, node.op_type):
            reason = (
                _value_misfit(node, target, row)
                or _type_misfit(node, scope, target, row)
                or _rank_misfit(node, scope, target, row)
            )
            if reason is not None:
                return reason
        return None

    return unfit


def newer_forms(targets: Targets) -> Newer | None:
    """Return a function for the reason why the targets do not support an operator at an opset; None if they limit no versions."""
    # Most runtimes limit only the opset.
    if not targets.bounds_versions:
        return None

    @cache
    def newer(operator: str, opset: int) -> str | None:
        form = signature_at("", operator, opset)
        if form is None:
            return None
        last, first = targets.newest_version("", operator), targets.oldest_version("", operator)
        if last is not None and form.since_version > last[0]:
            return f"{last[1]} takes {operator} up to version {last[0]}, not {form.since_version}"
        if first is not None and form.since_version < first[0]:
            return f"{first[1]} takes {operator} from version {first[0]} on, not {form.since_version}"
        return None

    return newer


def types_taken(targets: Targets) -> Types:
    """Return a function for the element types that all targets support, if they do not support that of a node's first input.

    The targets support a Cast of these types too, since a Cast is written before and after the node.
    """
    limits = cache(targets.limits)

    def types(node: onnx.NodeProto, scope: Scope) -> frozenset[int] | None:
        rows = [row for _, row in limits(node.domain, node.op_type) if row.types]
        dtype = scope.value_type(node.input[0]).dtype if node.input and node.input[0] else None
        if dtype is None or all(type_name(dtype) in row.types for row in rows):
            return None
        # The runtime must also support the Casts around the node.
        casts = [row for _, row in limits("", "Cast") if row.types]
        supported_names = (set(row.types) for row in (*rows, *casts))
        names = set.intersection(*supported_names)
        return frozenset(onnx.TensorProto.DataType.Value(name.upper()) for name in names)

    return types


def where_to_find(targets: Targets, node_domain: str, operator: str) -> str:
    """Return the source of the table row that says an operator is missing or limited, and the first release that has it."""
    parts: list[str] = []
    for target in targets:
        rows = target.rows_of(node_domain, operator)
        limited = any(row.limits for row in rows)
        # Only targets that lack or limit the operator are to blame.
        if target.has(node_domain, operator) and not limited:
            continue
        row = next((row for row in rows if row.lacking or row.limits), None)
        row = row or _list_of(target)
        measured = row.measured if row else target.measured
        source = target.source_of(row) if row else target.row.source
        parts.append(f"{'measured' if measured else 'read, not measured'}: {source}" if source else "")
        first = _first_release(target, node_domain, operator)
        # A later release may be the easiest way out.
        if first and not target.has(node_domain, operator):
            parts.append(f"{target.table.title} {first} has it")
    return "; ".join(part for part in dict.fromkeys(parts) if part)


def values_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node as the values of a table: texts, numbers, and tuples of them.

    The value is `None` for an attribute that each call of a function sets. Sub-graphs and tensors are not included.
    """
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        # The value belongs to the call, and the table cannot judge it here.
        if attribute.ref_attr_name:
            values[attribute.name] = None
            continue
        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            values[attribute.name] = value.decode("utf-8", "replace")
        elif isinstance(value, (int, float)):
            values[attribute.name] = value
        elif attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
            values[attribute.name] = tuple(value)
    return values


def _value_misfit(node: onnx.NodeProto, target: Target, row: OperatorSupport) -> str | None:
    values_by_name = values_of(node)
    for name, values in row.attributes.items():
        value = value_of(node, values_by_name, name)
        # An attribute without an effect is no obstacle.
        if value is _MISSING or value in values or _is_unused(node, values_by_name, name):
            continue
        allowed = str(values) if isinstance(values, Range) else " or ".join(map(_text, values))
        if value is None:
            return (
                f"{target} takes {node.op_type} with {name} {allowed}, and each call of the function sets it"
            )
        return f"{target} takes {node.op_type} with {name} {allowed}, not {_text(value)}"
    return None


def _is_unused(node: onnx.NodeProto, given: Mapping[str, Any], name: str) -> bool:
    other, value = _UNUSED.get((node.op_type, name), ("", None))
    return bool(other) and value_of(node, given, other) not in (value, None)


def value_of(node: onnx.NodeProto, given: Mapping[str, Any], name: str) -> Any:
    """Return an attribute of a node, of whose own `given` are the values: else the default of the schema, if any."""
    return given[name] if name in given else _default(node.domain, node.op_type, name)


@cache
def _default(domain: str, operator: str, name: str) -> Any:
    """Return the default of an attribute by the newest schema; `_MISSING` if it has none."""
    try:
        schema = onnx.defs.get_schema(operator, "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return _MISSING
    attribute = schema.attributes.get(name)
    if attribute is None or not attribute.default_value.name:
        return _MISSING
    node = onnx.NodeProto(attribute=[attribute.default_value])
    return values_of(node).get(name, _MISSING)


def _type_misfit(node: onnx.NodeProto, scope: Scope, target: Target, row: OperatorSupport) -> str | None:
    if not row.types or not node.input or not node.input[0]:
        return None
    dtype = scope.value_type(node.input[0]).dtype
    if dtype is None or type_name(dtype) in row.types:
        return None
    return f"{target} takes {node.op_type} of {' or '.join(row.types)}, not of {type_name(dtype)}"


def _rank_misfit(node: onnx.NodeProto, scope: Scope, target: Target, row: OperatorSupport) -> str | None:
    if row.rank is None:
        return None
    ranks = [scope.value_type(name).rank or 0 for name in (*node.input, *node.output) if name]
    if max(ranks, default=0) <= row.rank:
        return None
    return f"{target} takes {node.op_type} of up to {count_of(row.rank, 'axis')}, not of {max(ranks)}"


def _list_of(target: Target) -> OperatorSupport | None:
    """Return the row with the most operators that a target has: the list in which other operators are missing."""
    rows = [row for row in target.table.operators if not row.lacking] if target.table.listed else []
    return max(rows, key=lambda row: len(row.names), default=None)


def _first_release(target: Target, domain: str, operator: str) -> str:
    """Return the first later release that has an operator by its table, "" if none is known."""
    domain = "" if domain == "ai.onnx" else domain
    rows = [row for row in target.table.operators if row.domain == domain and operator in row.names]
    if any(row.lacking for row in target.rows_of(domain, operator)):
        return next((row.until for row in rows if row.lacking and row.until), "")
    return next((row.since for row in rows if not row.lacking and row.since), "")


def lack_of(targets: tuple[Target, ...], operator: str) -> str:
    """Return the message that these targets, at least one, do not have an operator."""
    return f"{listed(map(str, targets))} {'have' if len(targets) > 1 else 'has'} no {operator}"


def _text(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
