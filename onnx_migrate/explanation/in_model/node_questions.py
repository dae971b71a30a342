"""Questions on the nodes of a model: which operators, versions, attributes and inputs they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from onnx import helper

from onnx_migrate.engine.validity import check_original
from onnx_migrate.errors import MigrateError, Where
from onnx_migrate.explanation.in_model.view import Finding, ModelView, Place
from onnx_migrate.model.legality import node_faults
from onnx_migrate.model.validity.node_types import type_faults
from onnx_migrate.plural import count_of
from onnx_migrate.spec.schema import signature_at, versions

__all__ = ["NODE_QUESTIONS"]

_Given = Mapping[str, tuple[str, ...]]

_RESIZE_INPUTS = ("X", "roi", "scales", "sizes")


def not_in_opset(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes that the model's opset does not have."""

    def unknown(place: Place) -> bool:
        version = view.version_of(place.node.domain) or 0
        known = versions(place.node.domain, place.node.op_type)
        form = signature_at(place.node.domain, place.node.op_type, version)
        return form is None and (bool(known) or place.node.domain in ("", "ai.onnx"))

    return _some(view, given, unknown, f"not in opset {view.opset}", f"opset {view.opset} has it")


def deprecated(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes that are deprecated at the model's opset."""

    def gone(place: Place) -> bool:
        form = signature_at(place.node.domain, place.node.op_type, view.version_of(place.node.domain) or 0)
        return form is not None and form.deprecated

    return _some(view, given, gone, f"deprecated at opset {view.opset}", f"opset {view.opset} has it")


def not_registered(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes of an operator that the standard does not have."""

    def unknown(place: Place) -> bool:
        form = signature_at(place.node.domain, place.node.op_type, view.version_of(place.node.domain) or 0)
        return form is None or form.deprecated or versions(place.node.domain, place.node.op_type)[0:1] == (1,)

    return _some(view, given, unknown, "not of the standard", "it is of the standard")


def has_operator(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes of operators."""
    if not any(given.get("op", ())):
        return Finding(None, "the text does not name the operator")
    return _some(view, given, lambda place: True, "", "")


def has_version(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes of one version of an operator."""
    version = given["version"][0]

    def same(place: Place) -> bool:
        form = signature_at(place.node.domain, place.node.op_type, view.version_of(place.node.domain) or 0)
        return not version.isdigit() or (form is not None and form.since_version == int(version))

    return _some(view, given, same, f"of version {version}", "it is of another version")


def attribute(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes with an attribute that their operator does not have at the model's opset."""
    name = given["attribute"][0]

    def strange(place: Place) -> bool:
        form = signature_at(place.node.domain, place.node.op_type, view.version_of(place.node.domain) or 0)
        return _has(place, name) and (form is None or name not in form.attributes)

    return _some(view, given, strange, f"with the attribute {name}", f"none has a wrong attribute {name}")


def has_attribute(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes with an attribute."""
    name = given["attribute"][0]
    return _some(
        view, given, lambda place: _has(place, name), f"with the attribute {name}", f"none has {name}"
    )


def attribute_not(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes whose attribute has another value than `value`; where it is not set, it has the default."""
    name, value = given["attribute"][0], given["value"][0]

    def other(place: Place) -> bool:
        own = next((a for a in place.node.attribute if a.name == name), None)
        if own is None:
            return (view.opset or 0) >= 11
        given_value = helper.get_attribute_value(own)
        return (given_value.decode() if isinstance(given_value, bytes) else str(given_value)) != value

    return _some(view, given, other, f"whose {name} is not {value}", f"{name} is {value}")


def computed_input(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes with an input that other nodes compute, or that is fed."""

    def computed(place: Place) -> bool:
        value = _input(place, given["input"][0])
        return bool(value) and not view.constant(place.body, value)

    name = given["input"][0]
    return _some(view, given, computed, f"whose {name} is computed", f"{name} is a constant")


def has_input(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes that are given an input."""
    name = given["input"][0]
    return _some(view, given, lambda place: bool(_input(place, name)), f"with {name}", f"none has {name}")


def empty_input(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes that leave out an input, or name one that they do not read, as roi of a Resize."""

    def empty(place: Place) -> bool:
        return "" in place.node.input or (place.node.op_type == "Resize" and bool(_input(place, "roi")))

    return _some(view, given, empty, "with an empty or unread input", "none has an empty input")


def negative_axis(view: ModelView, given: _Given) -> Finding:
    """Ask for nodes with an axis that is counted from the end."""

    def negative(place: Place) -> bool:
        return any(
            (item.name == "axis" and item.i < 0)
            or (item.name == "axes" and any(axis < 0 for axis in item.ints))
            for item in place.node.attribute
        )

    return _some(
        view, given, negative, "with an axis counted from the end", "no axis is counted from the end"
    )


def illegal(view: ModelView, given: _Given) -> Finding:
    """Ask for what is not valid in the model."""
    wanted = {name.lower() for name in given.get("op", ()) if name}
    faults = list(chain(node_faults(view.proto), type_faults(view.proto)))
    own = [fault for fault in faults if fault.where and fault.where.operator.lower() in wanted] or faults
    if own:
        return Finding(True, own[0].reason, _wheres(fault.where for fault in own))
    try:
        check_original(view.model)
    except MigrateError as error:
        return Finding(True, error.reason, _wheres([error.where]))
    return Finding(False, "every node is valid at the model's opset")


NODE_QUESTIONS: dict[str, Callable[[ModelView, _Given], Finding]] = {
    "not-in-opset": not_in_opset,
    "deprecated": deprecated,
    "not-registered": not_registered,
    "has-operator": has_operator,
    "has-version": has_version,
    "attribute": attribute,
    "has-attribute": has_attribute,
    "attribute-not": attribute_not,
    "computed-input": computed_input,
    "has-input": has_input,
    "empty-input": empty_input,
    "negative-axis": negative_axis,
    "illegal": illegal,
}


def _some(
    view: ModelView, given: _Given, holds: Callable[[Place], bool], what: str, otherwise: str
) -> Finding:
    """Return whether there are nodes of the operators of the text for which something holds, and where."""
    operators = tuple(name for name in given.get("op", ()) if name)
    label = " or ".join(operators) if operators else "node"
    found = view.having(operators, holds)
    if found:
        count = count_of(len(found), f"node of {label}" if operators else "node")
        return Finding(True, f"it has {count}{f', {what}' if what else ''}", found)
    if operators and not view.of(operators):
        return Finding(False, f"it has no {label}")
    return Finding(False, f"it has no such {label}{f': {otherwise}' if otherwise else ''}")


def _has(place: Place, name: str) -> bool:
    return any(item.name == name for item in place.node.attribute)


def _input(place: Place, name: str) -> str:
    """Return the value that is an input of a Resize or Upsample, "" if it is not given."""
    at = _RESIZE_INPUTS.index(name)
    if len(place.node.input) == 2 and name == "scales":
        at = 1
    return place.node.input[at] if at < len(place.node.input) else ""


def _wheres(found: Iterable[Where | None]) -> tuple[Where, ...]:
    return tuple(where for where in found if where is not None)
