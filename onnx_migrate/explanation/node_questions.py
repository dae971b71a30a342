"""The questions about each node of the operators that an error text names; `checks` of the text name the questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx
from onnx import helper, numpy_helper

from onnx_migrate.errors import Where
from onnx_migrate.explanation.asked_model import Asked, Finding
from onnx_migrate.inspection import LocatedNode
from onnx_migrate.messages import count_of
from onnx_migrate.standard.schema import is_onnx, same_domain, versions

__all__ = ["NODE_QUESTIONS", "ask_nodes"]

_RESIZE_INPUTS = ("X", "roi", "scales", "sizes")
_AXES_AS_INPUT = frozenset(("Squeeze", "Unsqueeze"))
"""Operators whose attribute axes became their second input in opset 13."""


def ask_nodes(question: str, asked: Asked) -> Finding:
    """Return whether there are nodes for which the condition of a question holds, and where."""
    holds, description, otherwise = NODE_QUESTIONS[question]
    operators = asked.operators
    if holds is _any and not operators:
        return Finding(None, "the text does not name the operator")
    names = {**{name: asked.text(name) for name in asked.given}, "opset": asked.opset}
    description, otherwise = description.format_map(names), otherwise.format_map(names)
    nodes = asked.of(operators)
    locations = _named_ones(tuple(located.where for located in nodes if holds(located, asked)), asked)
    label = " or ".join(operators) if operators else "node"
    if locations:
        count = count_of(len(locations), f"node of {label}" if operators else "node")
        return Finding(True, f"it has {count}{f', {description}' if description else ''}", locations)
    if operators and not nodes:
        return Finding(False, f"it has no {label}")
    return Finding(False, f"it has no such {label}{f': {otherwise}' if otherwise else ''}")


def _named_ones(places: tuple[Where, ...], asked: Asked) -> tuple[Where, ...]:
    """Return the places of the nodes that the text names, all places if it names none of them."""
    names = {name for text in asked.given.get("node", ()) for name in (text, text.rpartition("!")[2])}
    return tuple(where for where in places if where.node in names) or places


def _any(_item: LocatedNode, _asked: Asked) -> bool:
    return True


def _not_in_opset(item: LocatedNode, _asked: Asked) -> bool:
    node = item.node
    return item.form is None and (is_onnx(node.domain) or bool(versions(node.domain, node.op_type)))


def _deprecated(item: LocatedNode, _asked: Asked) -> bool:
    return item.form is not None and item.form.deprecated


def _not_registered(item: LocatedNode, _asked: Asked) -> bool:
    """Return whether the standard lacks the operator, or had it as an experiment of its first opset."""
    known_versions = versions(item.node.domain, item.node.op_type)
    return item.form is None or item.form.deprecated or known_versions[0:1] == (1,)


def _of_version(item: LocatedNode, asked: Asked) -> bool:
    version = asked.text("version")
    return not version.isdigit() or (item.form is not None and item.form.since_version == int(version))


def _has_attribute(item: LocatedNode, asked: Asked) -> bool:
    return any(attribute.name == asked.text("attribute") for attribute in item.node.attribute)


def _wrong_attribute(item: LocatedNode, asked: Asked) -> bool:
    allowed = item.form.attributes if item.form else ()
    return _has_attribute(item, asked) and asked.text("attribute") not in allowed


def _other_attribute(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the attribute has another value; an attribute that is not set has its default."""
    own = next(
        (attribute for attribute in item.node.attribute if attribute.name == asked.text("attribute")), None
    )
    if own is None:
        return (asked.opset or 0) >= 11
    return _text_of(own) != asked.text("value")


def _has_value(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the attribute is set to this value."""
    own = next(
        (attribute for attribute in item.node.attribute if attribute.name == asked.text("attribute")), None
    )
    return own is not None and _text_of(own) == asked.text("value")


def _text_of(attribute: onnx.AttributeProto) -> str:
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else str(value)


def _lacks_attribute(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the attribute is not set, and axes are not an input either (from opset 13 on they are)."""
    as_input = item.node.op_type in _AXES_AS_INPUT and any(item.node.input[1:2])
    return not as_input and not _has_attribute(item, asked)


def _of_domain(item: LocatedNode, asked: Asked) -> bool:
    return same_domain(item.node.domain, asked.domain)


def _wrong_blocks(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the scale of a blocked quantisation does not have exactly one element for each block of the axis."""
    tensors = [asked.initializer(item.body, name) for name in item.node.input[:2]]
    size = next((attribute.i for attribute in item.node.attribute if attribute.name == "block_size"), 0)
    axis = next((attribute.i for attribute in item.node.attribute if attribute.name == "axis"), 1)
    # Computed scales cannot be checked.
    if size < 1 or None in tensors:
        return False
    data, scale = (list(tensor.dims) for tensor in tensors if tensor is not None)
    if not -len(data) <= axis < len(data):
        return True
    # The last block may be shorter.
    data[axis] = -(-data[axis] // size)
    return data != scale


def _asymmetric(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the zero point is uint8, which is the default, or a stored number other than 0."""
    name = item.node.input[2] if len(item.node.input) > 2 else ""
    zero_point = asked.initializer(item.body, name)
    if not name:
        return item.node.op_type == "QuantizeLinear"
    if zero_point is None or zero_point.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return zero_point.data_type == onnx.TensorProto.UINT8 or bool(numpy_helper.to_array(zero_point).any())


def _input(item: LocatedNode, name: str) -> str:
    """Return the value that is an input of a Resize or Upsample, "" if it is not given."""
    inputs = item.node.input
    at = 1 if len(inputs) == 2 and name == "scales" else _RESIZE_INPUTS.index(name)
    return inputs[at] if at < len(inputs) else ""


def _has_input(item: LocatedNode, asked: Asked) -> bool:
    return bool(_input(item, asked.text("input")))


def _computed_input(item: LocatedNode, asked: Asked) -> bool:
    value = _input(item, asked.text("input"))
    return bool(value) and not asked.is_constant(item.body, value)


def _empty_input(item: LocatedNode, _asked: Asked) -> bool:
    """Return whether the node omits an input, or names an unread one, for example roi of a Resize."""
    return "" in item.node.input or (item.node.op_type == "Resize" and bool(_input(item, "roi")))


def _negative_axis(item: LocatedNode, _asked: Asked) -> bool:
    axes = {attribute.name: [attribute.i, *attribute.ints] for attribute in item.node.attribute}
    return any(axis < 0 for axis in (*axes.get("axis", ()), *axes.get("axes", ())))


NODE_QUESTIONS: Mapping[str, tuple[Callable[[LocatedNode, Asked], bool], str, str]] = {
    "not-in-opset": (_not_in_opset, "not in opset {opset}", "opset {opset} has it"),
    "deprecated": (_deprecated, "deprecated at opset {opset}", "opset {opset} has it"),
    "not-registered": (_not_registered, "not of the standard", "it is of the standard"),
    "has-operator": (_any, "", ""),
    "has-version": (_of_version, "of version {version}", "it is of another version"),
    "attribute": (
        _wrong_attribute,
        "with the attribute {attribute}",
        "none has a wrong attribute {attribute}",
    ),
    "has-attribute": (_has_attribute, "with the attribute {attribute}", "none has {attribute}"),
    "attribute-not": (_other_attribute, "whose {attribute} is not {value}", "{attribute} is {value}"),
    "attribute-is": (_has_value, "whose {attribute} is {value}", "{attribute} is not {value}"),
    "lacks-attribute": (_lacks_attribute, "without {attribute}", "each has {attribute}"),
    "of-domain": (_of_domain, "of the domain {domain}", "none is of the domain {domain}"),
    "wrong-blocks": (
        _wrong_blocks,
        "whose scale does not fit its axis and block size",
        "the scale fits axis and block size",
    ),
    "asymmetric": (
        _asymmetric,
        "whose zero point is not 0 in int8",
        "each stored zero point is 0 in int8",
    ),
    "computed-input": (_computed_input, "whose {input} is computed", "{input} is a constant"),
    "has-input": (_has_input, "with {input}", "none has {input}"),
    "empty-input": (_empty_input, "with an empty or unread input", "none has an empty input"),
    "negative-axis": (_negative_axis, "with an axis counted from the end", "no axis is counted from the end"),
}
"""For each question: its function, the words for the nodes that answer yes, and the words if no node does."""
