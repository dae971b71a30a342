"""The questions by which a model is asked whether it would raise an error; `checks` of an error text name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx
from onnx import TensorProto

from onnx_migrate.explanation.in_model.node_questions import NODE_QUESTIONS
from onnx_migrate.explanation.in_model.view import Finding, ModelView
from onnx_migrate.model.graphs import bodies, fed_inputs, initializer_names, weight_tensors
from onnx_migrate.plural import count_of
from onnx_migrate.spec.schema import is_onnx, same_domain

__all__ = ["QUESTIONS", "Given", "Question"]

Given = Mapping[str, tuple[str, ...]]
"""What a question is asked with: the values of an error text, "" where the text does not say one."""

Question = Callable[[ModelView, Given], Finding]


def ir_newer(view: ModelView, given: Given) -> Finding:
    """Ask whether the IR version is newer than `max`."""
    own, most = int(view.proto.ir_version), _number(given, "max")
    if most is None:
        return Finding(None, f"its IR version is {own}, and the text does not say up to which one is loaded")
    verb = "is newer than" if own > most else "is no newer than"
    return Finding(own > most, f"its IR version {own} {verb} {most}")


def ir_older(view: ModelView, given: Given) -> Finding:
    """Ask whether the IR version is older than `min`."""
    own, least = int(view.proto.ir_version), _number(given, "min") or 0
    return Finding(own < least, f"its IR version is {own}")


def import_newer(view: ModelView, given: Given) -> Finding:
    """Ask whether the imported version of `domain` is newer than `max`."""
    domain, most = _domain(given), _number(given, "max")
    own = view.version_of(domain)
    label = domain or "ai.onnx"
    if own is None:
        return Finding(False, f"it does not import {label}")
    if most is None:
        return Finding(None, f"it imports {label} {own}, and the text does not say up to which one is taken")
    verb = "is newer than" if own > most else "is no newer than"
    unused = (
        ""
        if any(same_domain(place.node.domain, domain) for place in view.places)
        else ", which no node uses,"
    )
    return Finding(own > most, f"its {label} {own}{unused} {verb} {most}")


def import_older(view: ModelView, given: Given) -> Finding:
    """Ask whether the imported version of `domain` is older than `min`."""
    domain, least = _domain(given), _number(given, "min") or 0
    own = view.version_of(domain)
    if own is None:
        return Finding(False, f"it does not import {domain or 'ai.onnx'}")
    verb = "is older than" if own < least else "is not older than"
    return Finding(own < least, f"its opset {own} {verb} {least}")


def import_missing(view: ModelView, _given: Given) -> Finding:
    """Ask whether no version of ai.onnx is imported."""
    missing = view.opset is None
    return Finding(
        missing, "it imports no version of ai.onnx" if missing else f"it imports opset {view.opset}"
    )


def readable(_view: ModelView, _given: Given) -> Finding:
    """Say that the model can be read, which it was."""
    return Finding(False, "the file is a complete ONNX model")


def unlisted_initializers(view: ModelView, _given: Given) -> Finding:
    """Ask whether there are initializers that are not listed as inputs."""
    graph = view.proto.graph
    left = initializer_names(graph) - {value.name for value in graph.input}
    bodies_inside = [located.body for located in bodies(view.proto) if located.body is not graph]
    inner = sum(len(body.initializer) for body in bodies_inside if isinstance(body, onnx.GraphProto))
    count = len(left) + inner
    if count:
        return Finding(True, f"{count_of(count, 'initializer')} not listed as an input")
    return Finding(False, "all its initializers are listed as inputs")


def listed_initializers(view: ModelView, _given: Given) -> Finding:
    """Ask whether there are initializers that are listed as inputs."""
    graph = view.proto.graph
    count = len(initializer_names(graph) & {value.name for value in graph.input})
    if count:
        return Finding(True, f"{count_of(count, 'initializer')} listed as an input")
    return Finding(False, "none of its initializers is listed as an input")


def fixed_axis(view: ModelView, given: Given) -> Finding:
    """Ask whether the axis `axis` of the input `input` is declared with another number than `got`."""
    name, axis, got = given["input"][0], _number(given, "axis"), _number(given, "got")
    value = next((value for value in fed_inputs(view.proto.graph) if value.name == name), None)
    if value is None:
        return Finding(False, f"it has no input {name}")
    dims = value.type.tensor_type.shape.dim
    if axis is None or axis >= len(dims):
        return Finding(None, f"its input {name} has {count_of(len(dims), 'axis')}")
    size = dims[axis]
    if not size.HasField("dim_value"):
        return Finding(False, f"axis {axis} of {name} is dynamic")
    return Finding(size.dim_value != got, f"axis {axis} of {name} is {size.dim_value}")


def element_type(view: ModelView, given: Given) -> Finding:
    """Ask whether inputs, weights or declared values have the element type `dtype`."""
    dtype = _dtype(given)
    if dtype is None:
        return Finding(None, "the text does not name an element type that ONNX has")
    proto = view.proto
    name = TensorProto.DataType.Name(dtype).lower()
    inputs = [value.name for value in proto.graph.input if value.type.tensor_type.elem_type == dtype]
    weights = [tensor.name for tensor in weight_tensors(proto) if tensor.data_type == dtype]
    inner = [value.name for value in proto.graph.value_info if value.type.tensor_type.elem_type == dtype]
    casts = view.having(
        ("Cast",), lambda place: any(a.name == "to" and a.i == dtype for a in place.node.attribute)
    )
    found = [("input", inputs), ("constant", weights), ("declared inner value", inner), ("Cast", casts)]
    counts = ", ".join(count_of(len(items), what) for what, items in found if items)
    if not counts:
        return Finding(False, f"nothing in it is declared as {name}")
    return Finding(True, f"{name}: {counts}", casts)


def dynamic_dims(view: ModelView, _given: Given) -> Finding:
    """Ask whether inputs have dims that are not numbers."""
    names = [
        value.name
        for value in fed_inputs(view.proto.graph)
        if any(not dim.HasField("dim_value") or dim.dim_value < 0 for dim in value.type.tensor_type.shape.dim)
    ]
    if names:
        return Finding(True, f"dynamic dims of {', '.join(names)}")
    return Finding(False, "the dims of all its inputs are numbers")


QUESTIONS: dict[str, Question] = {
    "ir-newer": ir_newer,
    "ir-older": ir_older,
    "import-newer": import_newer,
    "import-older": import_older,
    "import-missing": import_missing,
    "readable": readable,
    "unlisted-initializers": unlisted_initializers,
    "listed-initializers": listed_initializers,
    "fixed-axis": fixed_axis,
    "element-type": element_type,
    "dynamic-dims": dynamic_dims,
    **NODE_QUESTIONS,
}
"""The questions by name; `target` beside them asks the table of the runtime (see `verdict`)."""


def _number(given: Given, name: str) -> int | None:
    text = given.get(name, ("",))[0]
    return int(text) if text.isdigit() else None


def _domain(given: Given) -> str:
    domain = given.get("domain", ("",))[0]
    return "" if is_onnx(domain) else domain


def _dtype(given: Given) -> int | None:
    text = given.get("dtype", ("",))[0].upper().removeprefix("TENSOR(").rstrip(")")
    text = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "INT64": "INT64"}.get(text, text)
    return TensorProto.DataType.Value(text) if text in TensorProto.DataType.keys() else None  # noqa: SIM118
