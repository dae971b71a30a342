"""The questions that decide whether a model would raise an error; `checks` of an error text name the questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

import onnx
from onnx import TensorProto

from onnx_migrate.engine.validity import accepted
from onnx_migrate.errors import MigrateError
from onnx_migrate.explanation.asked_model import Asked, Finding
from onnx_migrate.explanation.node_questions import NODE_QUESTIONS, ask_nodes
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import bodies, fed_inputs, initializer_names, weight_tensors
from onnx_migrate.model.legality import node_faults
from onnx_migrate.model.model import Model
from onnx_migrate.model.validity.node_types import type_faults
from onnx_migrate.standard.schema import same_domain

__all__ = ["QUESTIONS", "ask"]

_DTYPES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}


def ask(question: str, model: Model, given: Mapping[str, tuple[str, ...]]) -> Finding:
    """Return the answer of a model to a question."""
    subject = Asked(model, given)
    return ask_nodes(question, subject) if question in NODE_QUESTIONS else _OF_MODELS[question](subject)


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
        return Finding(
            None, f"it imports {label} {own}, and the text does not name the newest supported version"
        )
    used = any(same_domain(located.node.domain, asked.domain) for located in asked.nodes)
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
    unlisted = initializer_names(graph) - {value.name for value in graph.input}
    inside = (located.body for located in bodies(asked.proto) if located.body is not graph)
    count = len(unlisted) + sum(len(body.initializer) for body in inside if isinstance(body, onnx.GraphProto))
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
    # The text may name an axis that the input does not have.
    if axis is None or axis >= len(dims):
        return Finding(None, f"its input {name} has {count_of(len(dims), 'axis')}")
    size = dims[axis]
    if not size.HasField("dim_value"):
        return Finding(False, f"axis {axis} of {name} is dynamic")
    return Finding(size.dim_value != asked.number("got"), f"axis {axis} of {name} is {size.dim_value}")


def _element_type(asked: Asked) -> Finding:
    text = asked.text("dtype").upper().removeprefix("TENSOR(").rstrip(")")
    # Tools spell element types in their own ways.
    text = _DTYPES.get(text, text)
    if text not in TensorProto.DataType.keys():  # noqa: SIM118
        return Finding(None, "the text does not name an element type that ONNX has")
    dtype, graph = TensorProto.DataType.Value(text), asked.proto.graph
    casts = tuple(
        located.where
        for located in asked.of(("Cast",))
        if any(attribute.name == "to" and attribute.i == dtype for attribute in located.node.attribute)
    )
    counts_by_kind = {
        "input": sum(value.type.tensor_type.elem_type == dtype for value in graph.input),
        "constant": sum(tensor.data_type == dtype for tensor in weight_tensors(asked.proto)),
        "declared inner value": sum(value.type.tensor_type.elem_type == dtype for value in graph.value_info),
        "Cast": len(casts),
    }
    counts = ", ".join(count_of(count, kind) for kind, count in counts_by_kind.items() if count)
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

QUESTIONS = frozenset((*_OF_MODELS, *NODE_QUESTIONS))
"""The names of all questions that `checks` of an error text may use."""
