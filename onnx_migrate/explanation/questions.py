"""What a model is asked to tell whether it would raise an error; `checks` of an error text name the questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.validity import accepted
from onnx_migrate.errors import MigrateError, Where
from onnx_migrate.explanation.operator_facts import canonical
from onnx_migrate.inspection import LocatedNode, located_nodes
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import Body, bodies, fed_inputs, initializer_names, weight_tensors
from onnx_migrate.model.legality import node_faults
from onnx_migrate.model.model import Model
from onnx_migrate.model.validity.node_types import type_faults
from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.schema import is_onnx, same_domain, versions

__all__ = ["QUESTIONS", "Asked", "Finding", "ask"]

_RESIZE_INPUTS = ("X", "roi", "scales", "sizes")
_AXES_AS_INPUT = frozenset(("Squeeze", "Unsqueeze"))
_DTYPES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}


@dataclass(frozen=True)
class Finding:
    """The answer to one question: whether the model would raise the error, None if that cannot be told; and the nodes."""

    raises: bool | None
    reason: str
    places: tuple[Where, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A model, and the values of the error text with which it is asked; "" where the text does not say one."""

    model: Model
    given: Mapping[str, tuple[str, ...]]

    @property
    def proto(self) -> onnx.ModelProto:
        """The structure of the model."""
        return self.model.proto

    @property
    def opset(self) -> int | None:
        """The opset of ai.onnx that the model imports."""
        return onnx_opset(self.proto.opset_import, ir_version=self.proto.ir_version)

    @cached_property
    def nodes(self) -> tuple[LocatedNode, ...]:
        """All nodes but calls of local functions."""
        return tuple(node for node in located_nodes(self.proto) if not node.is_call)

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that the text names."""
        return tuple(filter(None, self.given.get("op", ())))

    @property
    def domain(self) -> str:
        """The domain that the text names, "" for ai.onnx."""
        domain = self.text("domain")
        return "" if is_onnx(domain) else domain

    @property
    def imported(self) -> int | None:
        """The version of that domain that the model imports, None if it does not import it."""
        return self.opset if is_onnx(self.domain) else imported(self.proto.opset_import, self.domain)

    def text(self, name: str) -> str:
        """Return a value of the text, "" if it does not say one."""
        return next(iter(self.given.get(name, ())), "")

    def number(self, name: str) -> int | None:
        """Return a value of the text that is a number, None if it is none."""
        text = self.text(name)
        return int(text) if text.isdigit() else None

    def of(self, operators: Iterable[str]) -> list[LocatedNode]:
        """Return the nodes of operators, by names as texts write them; of all if none is named."""
        names = {(key[1] if (key := canonical(name)) else name).lower() for name in operators}
        return [item for item in self.nodes if not names or item.node.op_type.lower() in names]

    def is_constant(self, body: object, name: str) -> bool:
        """Return whether a value is an initializer or the result of a Constant, of the body or the main graph."""
        graph = self.proto.graph
        return name in self._constants[id(body)] or name in self._constants[id(graph)]

    def constant_shape(self, body: object, name: str) -> tuple[int, ...] | None:
        """Return the shape of an initializer of the body or of the main graph, None if there is none of this name."""
        graphs = [item for item in (body, self.proto.graph) if isinstance(item, onnx.GraphProto)]
        tensors = (tensor for graph in graphs for tensor in graph.initializer if tensor.name == name)
        return next((tuple(tensor.dims) for tensor in tensors), None)

    @cached_property
    def _constants(self) -> dict[int, set[str]]:
        found = {}
        for body in self._bodies:
            known = {output for node in body.node if node.op_type == "Constant" for output in node.output}
            found[id(body)] = known | (
                initializer_names(body) if isinstance(body, onnx.GraphProto) else set()
            )
        return found

    @cached_property
    def _bodies(self) -> list[Body]:
        """The bodies of the model, which are kept so that none gets the id of another."""
        return [located.body for located in bodies(self.proto)]


def ask(question: str, model: Model, given: Mapping[str, tuple[str, ...]]) -> Finding:
    """Return the answer of a model to a question."""
    asked = Asked(model, given)
    about_nodes = _OF_NODES.get(question)
    return _of_nodes(asked, *about_nodes) if about_nodes else _OF_MODELS[question](asked)


# What is asked of the model as a whole.


def _ir_newer(asked: Asked) -> Finding:
    own, most = int(asked.proto.ir_version), asked.number("max")
    if most is None:
        return Finding(None, f"its IR version is {own}, and the text does not say up to which one is loaded")
    return Finding(own > most, f"its IR version {own} is {'newer' if own > most else 'no newer'} than {most}")


def _ir_older(asked: Asked) -> Finding:
    own = int(asked.proto.ir_version)
    return Finding(own < (asked.number("min") or 0), f"its IR version is {own}")


def _import_newer(asked: Asked) -> Finding:
    own, most, label = asked.imported, asked.number("max"), asked.domain or "ai.onnx"
    if own is None:
        return Finding(False, f"it does not import {label}")
    if most is None:
        return Finding(None, f"it imports {label} {own}, and the text does not say up to which one is taken")
    used = any(same_domain(item.node.domain, asked.domain) for item in asked.nodes)
    unused = "" if used else ", which no node uses,"
    newer = "newer" if own > most else "no newer"
    return Finding(own > most, f"its {label} {own}{unused} is {newer} than {most}")


def _import_older(asked: Asked) -> Finding:
    own, least = asked.imported, asked.number("min") or 0
    if own is None:
        return Finding(False, f"it does not import {asked.domain or 'ai.onnx'}")
    return Finding(own < least, f"its opset {own} is {'older' if own < least else 'not older'} than {least}")


def _import_missing(asked: Asked) -> Finding:
    missing = asked.opset is None
    return Finding(
        missing, "it imports no version of ai.onnx" if missing else f"it imports opset {asked.opset}"
    )


def _readable(_asked: Asked) -> Finding:
    return Finding(False, "the file is a complete ONNX model")


def _unlisted_initializers(asked: Asked) -> Finding:
    graph = asked.proto.graph
    left = initializer_names(graph) - {value.name for value in graph.input}
    inside = (located.body for located in bodies(asked.proto) if located.body is not graph)
    count = len(left) + sum(len(body.initializer) for body in inside if isinstance(body, onnx.GraphProto))
    if count:
        return Finding(True, f"{count_of(count, 'initializer')} not listed as an input")
    return Finding(False, "all its initializers are listed as inputs")


def _listed_initializers(asked: Asked) -> Finding:
    graph = asked.proto.graph
    count = len(initializer_names(graph) & {value.name for value in graph.input})
    if count:
        return Finding(True, f"{count_of(count, 'initializer')} listed as an input")
    return Finding(False, "none of its initializers is listed as an input")


def _fixed_axis(asked: Asked) -> Finding:
    name, axis = asked.text("input"), asked.number("axis")
    value = next((value for value in fed_inputs(asked.proto.graph) if value.name == name), None)
    if value is None:
        return Finding(False, f"it has no input {name}")
    dims = value.type.tensor_type.shape.dim
    if axis is None or axis >= len(dims):
        return Finding(None, f"its input {name} has {count_of(len(dims), 'axis')}")
    size = dims[axis]
    if not size.HasField("dim_value"):
        return Finding(False, f"axis {axis} of {name} is dynamic")
    return Finding(size.dim_value != asked.number("got"), f"axis {axis} of {name} is {size.dim_value}")


def _element_type(asked: Asked) -> Finding:
    text = asked.text("dtype").upper().removeprefix("TENSOR(").rstrip(")")
    text = _DTYPES.get(text, text)
    if text not in TensorProto.DataType.keys():  # noqa: SIM118
        return Finding(None, "the text does not name an element type that ONNX has")
    dtype, graph = TensorProto.DataType.Value(text), asked.proto.graph
    casts = tuple(
        item.where
        for item in asked.of(("Cast",))
        if any(given.name == "to" and given.i == dtype for given in item.node.attribute)
    )
    found = {
        "input": sum(value.type.tensor_type.elem_type == dtype for value in graph.input),
        "constant": sum(tensor.data_type == dtype for tensor in weight_tensors(asked.proto)),
        "declared inner value": sum(value.type.tensor_type.elem_type == dtype for value in graph.value_info),
        "Cast": len(casts),
    }
    counts = ", ".join(count_of(count, what) for what, count in found.items() if count)
    if not counts:
        return Finding(False, f"nothing in it is declared as {text.lower()}")
    return Finding(True, f"{text.lower()}: {counts}", casts)


def _dynamic_dims(asked: Asked) -> Finding:
    names = [
        value.name
        for value in fed_inputs(asked.proto.graph)
        if any(not dim.HasField("dim_value") or dim.dim_value < 0 for dim in value.type.tensor_type.shape.dim)
    ]
    if names:
        return Finding(True, f"dynamic dims of {', '.join(names)}")
    return Finding(False, "the dims of all its inputs are numbers")


def _illegal(asked: Asked) -> Finding:
    wanted = {name.lower() for name in asked.operators}
    faults = list(chain(node_faults(asked.proto), type_faults(asked.proto)))
    faults = [fault for fault in faults if fault.where and fault.where.operator.lower() in wanted] or faults
    if faults:
        return Finding(True, faults[0].reason, tuple(fault.where for fault in faults if fault.where))
    try:
        accepted(asked.model, strict=True)
    except MigrateError as error:
        return Finding(True, error.reason, (error.where,) if error.where else ())
    return Finding(False, "every node is valid at the model's opset")


_OF_MODELS: dict[str, Callable[[Asked], Finding]] = {
    "ir-newer": _ir_newer,
    "ir-older": _ir_older,
    "import-newer": _import_newer,
    "import-older": _import_older,
    "import-missing": _import_missing,
    "readable": _readable,
    "unlisted-initializers": _unlisted_initializers,
    "listed-initializers": _listed_initializers,
    "fixed-axis": _fixed_axis,
    "element-type": _element_type,
    "dynamic-dims": _dynamic_dims,
    "illegal": _illegal,
}


# What is asked of each node of the operators that the text names.


def _of_nodes(
    asked: Asked, holds: Callable[[LocatedNode, Asked], bool], what: str, otherwise: str
) -> Finding:
    """Return whether there are nodes for which something holds, and where."""
    operators = asked.operators
    if holds is _any and not operators:
        return Finding(None, "the text does not name the operator")
    names = {**{name: asked.text(name) for name in asked.given}, "opset": asked.opset}
    what, otherwise = what.format_map(names), otherwise.format_map(names)
    nodes = asked.of(operators)
    found = _named_ones(tuple(item.where for item in nodes if holds(item, asked)), asked)
    label = " or ".join(operators) if operators else "node"
    if found:
        count = count_of(len(found), f"node of {label}" if operators else "node")
        return Finding(True, f"it has {count}{f', {what}' if what else ''}", found)
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
    """Return whether the standard does not have it, or had it as an experiment of its first opset."""
    known = versions(item.node.domain, item.node.op_type)
    return item.form is None or item.form.deprecated or known[0:1] == (1,)


def _of_version(item: LocatedNode, asked: Asked) -> bool:
    version = asked.text("version")
    return not version.isdigit() or (item.form is not None and item.form.since_version == int(version))


def _has_attribute(item: LocatedNode, asked: Asked) -> bool:
    return any(given.name == asked.text("attribute") for given in item.node.attribute)


def _wrong_attribute(item: LocatedNode, asked: Asked) -> bool:
    known = item.form.attributes if item.form else ()
    return _has_attribute(item, asked) and asked.text("attribute") not in known


def _other_attribute(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the attribute has another value; where it is not set, it has the default."""
    own = next((given for given in item.node.attribute if given.name == asked.text("attribute")), None)
    if own is None:
        return (asked.opset or 0) >= 11
    return _text_of(own) != asked.text("value")


def _has_value(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the attribute is set to this value."""
    own = next((given for given in item.node.attribute if given.name == asked.text("attribute")), None)
    return own is not None and _text_of(own) == asked.text("value")


def _text_of(attribute: onnx.AttributeProto) -> str:
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else str(value)


def _lacks_attribute(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the attribute is not set, and axes are no input either, which they are from opset 13 on."""
    as_input = item.node.op_type in _AXES_AS_INPUT and any(item.node.input[1:2])
    return not as_input and not _has_attribute(item, asked)


def _of_domain(item: LocatedNode, asked: Asked) -> bool:
    return same_domain(item.node.domain, asked.domain)


def _wrong_blocks(item: LocatedNode, asked: Asked) -> bool:
    """Return whether the scale of a blocked quantisation has not one element for each block of the axis."""
    shapes = [asked.constant_shape(item.body, name) for name in item.node.input[:2]]
    size = next((given.i for given in item.node.attribute if given.name == "block_size"), 0)
    axis = next((given.i for given in item.node.attribute if given.name == "axis"), 1)
    if size < 1 or None in shapes:
        return False
    data, scale = (list(shape or ()) for shape in shapes)
    if not -len(data) <= axis < len(data):
        return True
    data[axis] = -(-data[axis] // size)
    return data != scale


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
    """Return whether it leaves out an input, or names one that it does not read, as roi of a Resize."""
    return "" in item.node.input or (item.node.op_type == "Resize" and bool(_input(item, "roi")))


def _negative_axis(item: LocatedNode, _asked: Asked) -> bool:
    axes = {given.name: [given.i, *given.ints] for given in item.node.attribute}
    return any(axis < 0 for axis in (*axes.get("axis", ()), *axes.get("axes", ())))


_OF_NODES: dict[str, tuple[Callable[[LocatedNode, Asked], bool], str, str]] = {
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
    "computed-input": (_computed_input, "whose {input} is computed", "{input} is a constant"),
    "has-input": (_has_input, "with {input}", "none has {input}"),
    "empty-input": (_empty_input, "with an empty or unread input", "none has an empty input"),
    "negative-axis": (_negative_axis, "with an axis counted from the end", "no axis is counted from the end"),
}
"""What is asked, what is said of the nodes for which it holds, and what if it holds for none."""

QUESTIONS = frozenset((*_OF_MODELS, *_OF_NODES))
"""The names by which `checks` of an error text ask."""
