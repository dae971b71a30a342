"""The form of a node: the types, shapes, constants and attributes that decide whether a runtime computes it right.

A form leaves out numbers that vary between models without changing how an importer reads the node. A length of a dim
counts as 1 or more, and pads count as none, equal or other. An axis counts by its place. If a measured model and
another model have a node of the same form, the node counts as measured in both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any

import onnx
from onnx import AttributeProto, helper
from onnx.defs import OpSchema

from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.model.graphs import called, function_key, may_hold_graphs, output_names
from onnx_migrate.model.model import Model
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.standard.targets import AFTER, BEHIND, LAST, SIZE, NodeForm

__all__ = ["node_forms"]

_BROADCAST = {
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "MatMul", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
}  # fmt: skip
"""The operators whose inputs are broadcast."""

_OF_SHAPES = {"Shape", "Size", "ConstantOfShape", "EyeLike"}
"""The operators whose results follow from shapes."""

_LENGTHS = {"kernel_shape", "strides", "dilations", "output_padding", "repeats"}
"""Lists of a number for each axis."""

_PLACES = ("axis", "axes")
"""Attributes and inputs that name axes."""

_WITHOUT = {"epsilon", "momentum", "seed", "spatial_scale", "hidden_size"}
"""Attributes whose values do not matter, as importers read all of them alike."""

_MANY = 3
"""The first place at which the place of an input does not matter: importers read this and all later inputs alike."""

_SMALL = 16
"""Elements of a constant up to which its values count."""


def node_forms(model: Model) -> Iterator[NodeForm]:
    """Yield the form of each node of all bodies of a model, in their order, without Constants and calls of local functions.

    "?" in a form stands for a fact that is not known, such as the rank of a value.
    """
    proto = model.proto
    functions = {function_key(function) for function in proto.functions}
    bodies = scopes(proto, model.weights, result_ir_version=max(4, proto.ir_version))
    for top, (_, opset) in zip(bodies, body_opsets(proto), strict=True):
        for scope in top.nested():
            # The values that do not depend on the numbers in the inputs.
            fixed: set[str] = set()
            producing_operators: dict[str, str] = {}
            ends = set(output_names(scope.body))
            for node in scope.body.node:
                kinds = [_kind(name, scope, fixed) for name in node.input]
                if node.op_type in _OF_SHAPES or (
                    # A node with graphs may read values that its inputs do not list.
                    node.input and not may_hold_graphs(node.domain, node.op_type) and not set(kinds) & {"x"}
                ):
                    fixed.update(filter(None, node.output))
                if called(node) not in functions and node.op_type != "Constant":
                    facts = _facts(node, scope, opset or 0, kinds, producing_operators)
                    # The form of a node at an output of the body differs from that of a node inside.
                    if not ends.isdisjoint(node.output):
                        facts |= {LAST: "yes"} if fixed.isdisjoint(node.output) else {"end": "shape"}
                    yield NodeForm("" if is_onnx(node.domain) else node.domain, node.op_type, facts)
                producing_operators.update(dict.fromkeys(filter(None, node.output), node.op_type))


def _kind(name: str, scope: Scope, fixed: set[str]) -> str:
    """Return the kind of an input: "c" a constant, "i" one behind Identity, "s" of constants and shapes, "x" data, "-" absent."""
    if not name:
        return "-"
    source = scope.constant_source(name)
    if source is not None:
        return (
            "c" if name == (source.output[0] if isinstance(source, onnx.NodeProto) else source.name) else "i"
        )
    return "s" if name in fixed else "x"


def _facts(
    node: onnx.NodeProto, scope: Scope, opset: int, kinds: Sequence[str], made: Mapping[str, str]
) -> dict[str, str]:
    schema = _schema(node.domain, node.op_type, opset)
    values = [scope.value_type(name) for name in node.input]
    outputs = [scope.value_type(name) for name in node.output if name]
    several = schema is not None and bool(schema.inputs) and schema.inputs[-1].option == _VARIADIC
    listed = _several if several else ",".join
    rank = values[0].rank if values else None
    facts = {
        "version": str(schema.since_version if schema else 0),
        "types": listed([_type(value) if name else "-" for value, name in zip(values, node.input, strict=True)]),
        "inputs": listed(kinds),
        "ranks": f"{listed([_number(value.rank) for value in values])}>{_number(outputs[0].rank if outputs else None)}",
        "rank": _number(max((own.rank or 0 for own in (*values, *outputs)), default=None)),
        "outputs": "".join("y" if name else "-" for name in node.output),
        "dims": _dims(values[0].shape if values else None),
        SIZE: _size(values[0].size if values else None),
        AFTER: ",".join(sorted({made[name] for name in node.input if name in made})),
        BEHIND: ",".join(sorted({
            f"{min(at, _MANY)}{made[name]}" for at, name in enumerate(node.input) if name in made and kinds[at] == "x"
        })),
    }  # fmt: skip
    # In Gemm, only the bias may have fewer dims.
    if node.op_type == "Gemm":
        facts["broadcast"] = _broadcast([value.shape for value in values[2:]])
    if node.op_type in _BROADCAST:
        facts["broadcast"] = _broadcast([value.shape for value in values])
    # The mark "~" tells a default from the same value stated in the node.
    stated = {attribute.name for attribute in node.attribute}
    for name, parameter in _attributes(node, schema).items():
        facts[name] = f"{'' if name in stated else '~'}{_value(name, parameter, rank, values, schema)}"
        if name in _PLACES and parameter is not None:
            facts["negative"] = str(min(parameter if name == "axes" else [parameter], default=0) < 0)
    # An input such as `axes` was an attribute in older versions, so its constant gives the same fact.
    for at, name in enumerate(node.input):
        own = _formal(schema, at)
        constant = scope.constant(name) if own and kinds[at] in "ci" and _is_small(values[at]) else None
        if constant is not None and (constant.dtype.kind == "i" or own == "scales"):
            around = outputs[0].rank if node.op_type == "Unsqueeze" and outputs else rank
            parameter = constant.reshape(-1).tolist()
            facts[own] = _value(own, parameter, around, values, schema)
            if own in _PLACES:
                facts["negative"] = str(min(parameter, default=0) < 0)
    return facts


_VARIADIC = OpSchema.FormalParameterOption.Variadic


@cache
def _schema(domain: str, operator: str, opset: int) -> OpSchema | None:
    try:
        return onnx.defs.get_schema(operator, opset, "") if is_onnx(domain) else None
    except onnx.defs.SchemaError:
        return None


def _formal(schema: OpSchema | None, at: int) -> str:
    if schema is None or at >= len(schema.inputs) or at == 0:
        return ""
    return str(schema.inputs[at].name)


def _is_small(value: ValueType) -> bool:
    return math.prod(_SMALL + 1 if dim is None else dim for dim in value.shape or (None,)) <= _SMALL


def _several(texts: Sequence[str]) -> str:
    """Return the texts of a variable number of inputs: up to three as a list, more as the set of different texts."""
    if len(texts) <= 3:
        return ",".join(texts)
    return f"{'+'.join(sorted(set(texts)))}*n"


def _type(value: ValueType) -> str:
    return type_name(value.dtype) if value.dtype else value.container or "?"


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)


def _dims(shape: tuple[int | None, ...] | None) -> str:
    """Return whether the first of several dims is 1, and which are open: the first, the second, one of the others."""
    if not shape:
        return "?" if shape is None else ""
    first = "?" if shape[0] is None else "1" if shape[0] == 1 else "n"
    return first + "".join("?" if None in part else "n" for part in (shape[1:2], shape[2:]) if part)


def _size(size: int | None) -> str:
    """Return the order of magnitude of a number of elements, in octal digits."""
    return "?" if size is None else str(len(f"{size:o}"))


def _broadcast(shapes: Sequence[tuple[int | None, ...] | None]) -> str:
    """Return the inputs that are longer than 1, for each run of dims with the same answer: "a" means all, "-" means none."""
    if None in shapes:
        return "?"
    known_shapes = [shape for shape in shapes if shape is not None]
    # The last axes of the shapes belong together.
    most = max(map(len, known_shapes), default=0)
    columns = zip(*((1,) * (most - len(shape)) + shape for shape in known_shapes), strict=True)
    texts = []
    for dims in columns:
        long = "".join(str(at) if dim != 1 else "" for at, dim in enumerate(dims))
        texts.append("?" if None in dims else "a" if len(long) == len(known_shapes) else long[:3] or "-")
    return " ".join(text for text, _ in groupby(texts))


def _attributes(node: onnx.NodeProto, schema: OpSchema | None) -> dict[str, Any]:
    """Return the attributes that decide; an attribute that the node does not have gets the schema's default."""
    values: dict[str, Any] = {}
    if schema is not None:
        for name, own in schema.attributes.items():
            if own.default_value.name:
                values[name] = helper.get_attribute_value(own.default_value)
    for attribute in node.attribute:
        # Sub-graphs and tensors are no facts of a form: their content is a fact of other nodes.
        decides = attribute.type not in (AttributeProto.GRAPH, AttributeProto.GRAPHS, AttributeProto.TENSOR)
        if decides:
            values[attribute.name] = (
                None if attribute.ref_attr_name else helper.get_attribute_value(attribute)
            )
    return dict(sorted(values.items()))


def _value(
    name: str, given: Any, rank: int | None, values: Sequence[ValueType], schema: OpSchema | None
) -> str:
    """Return how an importer may tell a value of an attribute or a constant input from others."""
    elements = list(given) if isinstance(given, (list, tuple)) or hasattr(given, "append") else [given]
    if given is None:
        return "?"
    if elements and isinstance(elements[0], (str, bytes)):
        texts = [
            element.decode("utf-8", "replace") if isinstance(element, bytes) else element
            for element in elements
        ]
        return ",".join(sorted(set(texts)) if len(texts) > _SMALL else texts)  # long: of each node of a tree
    if name in _WITHOUT:
        return "any"
    if name in _PLACES:
        return _places(elements, rank)
    # Each permutation is a form of its own.
    if name == "perm":
        return ",".join(map(str, elements))
    if name in _LENGTHS:
        if len(set(elements)) > 1:
            return "more"
        return {0: "0", 1: "1"}.get(elements[0], "equal") if elements else "1"
    if name == "pads":
        return _pads(elements)
    if name == "group":
        return _group(elements[0], values)
    if name in ("split", "num_outputs"):
        return "equal" if len(set(elements)) == 1 else "other"
    if name in ("scales", "sizes"):
        return _scales(elements, values[0].shape if name == "sizes" and values else None)
    if any(isinstance(element, float) for element in elements):
        own = schema.attributes.get(name) if schema is not None else None
        default = helper.get_attribute_value(own.default_value) if own and own.default_value.name else None
        return (
            "default"
            if elements == [default]
            else "0"
            if elements == [0.0]
            else "1"
            if elements == [1.0]
            else "set"
        )
    signs = {"-" if element < 0 else "0" if element == 0 else "+" for element in elements}
    if len(elements) == 1 and abs(elements[0]) <= 1 and not isinstance(given, list):
        return str(elements[0])
    if name in ("to", "dtype", "output_dtype"):
        return str(elements[0])
    return "".join(sorted(signs)) if set(elements) != {1} else "1"


def _places(items: Sequence[int], rank: int | None) -> str:
    """Return axes as counted from the front, and the rank."""
    if rank is None:
        return "?"
    return f"{','.join(str(axis % rank if rank else axis) for axis in items)} of {rank}"


def _pads(items: Sequence[int]) -> str:
    half = len(items) // 2
    begin, end = list(items[:half]), list(items[half:])
    if not any(items):
        return "0"
    kinds = {"negative": min(items) < 0, "equal": begin == end, "end": not any(begin), "begin": not any(end)}
    kind = next((kind for kind, holds in kinds.items() if holds), "other")
    return f"{kind} {''.join('p' if a or b else '0' for a, b in zip(begin, end, strict=False))}"


def _group(group: int, values: Sequence[ValueType]) -> str:
    if group == 1:
        return "1"
    shape = values[1].shape if len(values) > 1 else None
    return "depthwise" if shape and 1 in shape[:2] else "more"


def _scales(items: Sequence[float], shape: tuple[int | None, ...] | None) -> str:
    """Return for each run of axes how a Resize scales them."""
    if shape is not None:
        if len(shape) != len(items) or None in shape:
            return "?"
        items = [size / (dim or 1) for size, dim in zip(items, shape, strict=True)]
    texts = [
        "1" if size == 1 else "up" if size == int(size) else "more" if size > 1 else "less" for size in items
    ]
    return " ".join(text for text, _ in groupby(texts))
