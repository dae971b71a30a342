"""The values that an operator accepts of its inputs, and the inputs of floats that decide on a shape or a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import onnx
from onnx import NodeProto, TensorProto, helper

from onnx_migrate.model.graphs import fed_inputs, nested_nodes
from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.index_ranges import index_range
from onnx_migrate.verify.inputs.constraints.ranges import BOOLEAN, POSITIVE, Range
from onnx_migrate.verify.inputs.constraints.shape_arguments import shape_argument

__all__ = ["accepted_range", "exact_inputs", "inputs_passed_through"]

_PASSED_THROUGH = {
    "Identity": (0,),
    "Cast": (0,),
    "CastLike": (0,),
    "Unsqueeze": (0,),
    "Squeeze": (0,),
    "Reshape": (0,),
    "Flatten": (0,),
    "Transpose": (0,),
    "Expand": (0,),
    "Tile": (0,),
    "Slice": (0,),
    "Gather": (0,),
    "Split": (0,),
    "Where": (1, 2),
    "Dropout": (0,),
    "Concat": None,
}
"""The positions of inputs whose elements the output consists of; None is all of them."""

_ACCEPTED: dict[tuple[str, int], Range] = {
    ("TopK", 1): Range(1, 2),
    ("Range", 0): Range(0, 0),
    ("Range", 1): Range(3, 5),
    ("Range", 2): Range(1, 1),
    ("Loop", 0): Range(2, 4),
    ("Loop", 1): Range(1, 1),
    ("Upsample", 1): Range(1, 2, (1.0, 1.0, 2.0, 3.0)),
    ("NonMaxSuppression", 2): Range(8, 8),
    ("NonMaxSuppression", 3): Range(0.5, 0.5),
    ("NonMaxSuppression", 4): Range(0.0, 0.0),
    ("Clip", 1): Range(-1.0, -1.0),
    ("Clip", 2): Range(1.0, 1.0),
    ("BatchNormalization", 4): POSITIVE,
    ("QuantizeLinear", 1): POSITIVE,
    ("DequantizeLinear", 1): POSITIVE,
    ("Log", 0): POSITIVE,
    ("Sqrt", 0): POSITIVE,
    ("Dropout", 1): Range(0.0, 0.75),
    ("Dropout", 2): Range(0, 0),
    ("Bernoulli", 0): Range(0.0, 1.0),
    ("Div", 1): Range(1, 8, discrete=True),
    ("Mod", 1): Range(1, 8, discrete=True),
    ("HannWindow", 0): Range(5, 10),
    ("HammingWindow", 0): Range(5, 10),
    ("BlackmanWindow", 0): Range(5, 10),
    ("MelWeightMatrix", 0): Range(8, 8),
    ("MelWeightMatrix", 1): Range(16, 16),
    ("MelWeightMatrix", 2): Range(8192, 8192),
    ("MelWeightMatrix", 3): Range(0, 0),
    ("MelWeightMatrix", 4): Range(4096, 4096),
}
"""By operator and position of the input; chosen so that shapes and counts that follow from them stay small."""

_NUMBERS = ("0", "1", "-2.5", "42", "1e-3", "7.25")
_LARGEST_VOCABULARY = 64
_KEYS = ("keys_strings", "classes_strings", "cats_strings", "pool_strings")
_INTEGER_KEYS = ("keys_int64s", "cats_int64s", "pool_int64s")
_NARROW_FLOATS = frozenset(
    number for name, number in TensorProto.DataType.items() if name.startswith(("FLOAT8", "FLOAT4"))
)


def inputs_passed_through(node: NodeProto) -> range | tuple[int, ...]:
    """Return the positions of the inputs whose elements appear unchanged, or cast, in the node's outputs."""
    positions = _PASSED_THROUGH.get(node.op_type, ())
    return range(len(node.input)) if positions is None else positions


def accepted_range(node: NodeProto, index: int, facts: Facts) -> Range | None:
    """Return the range of values that a node accepts at input `index`; None if any value will do.

    Indices, axes and shapes depend on the shapes of the node's other inputs, which `facts` knows.
    """
    operator = node.op_type
    found = index_range(node, index, facts) or shape_argument(node, index, facts)
    if found is not None:
        return found
    if operator in ("Sub", "Not") or (operator in ("Equal", "Where", "Greater", "Less") and index == 0):
        return BOOLEAN
    if operator in ("QuantizeLinear", "DequantizeLinear") and index == 2:
        return _zero_point(facts.element_type(node.input[2]))
    if operator in ("Cast", "CastLike") and index == 0:
        return _text_of_numbers(node, facts)
    if node.domain == "ai.onnx.ml" or operator == "TfIdfVectorizer":
        return _key(node)
    return _ACCEPTED.get((operator, index))


def _zero_point(element: int) -> Range | None:
    """Zero points of narrow floats and of int32 must be 0."""
    return Range(0, 0) if element in _NARROW_FLOATS or element == TensorProto.INT32 else None


def _text_of_numbers(node: NodeProto, facts: Facts) -> Range | None:
    """A string that is cast to a number must be one."""
    if node.op_type == "Cast":
        target = next((a.i for a in node.attribute if a.name == "to"), 0)
    else:
        target = facts.element_type(node.input[1])
    return None if target in (0, TensorProto.STRING) else Range(0, 1, weak=True, words=_NUMBERS)


def _key(node: NodeProto) -> Range | None:
    """The keys of a vocabulary, as other values are all the same to it."""
    for attribute in node.attribute:
        if attribute.name in _KEYS and attribute.strings:
            words = [word.decode("utf-8", "replace") for word in attribute.strings[:_LARGEST_VOCABULARY]]
            return Range(0, 1, weak=True, words=tuple(words))
        if attribute.name in _INTEGER_KEYS and attribute.ints:
            keys = list(helper.get_attribute_value(attribute))
            return Range(min(keys), max(keys), discrete=True)
    return None


_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16})

_DECIDING = frozenset(
    {("Resize", 2), ("Upsample", 1), ("OneHot", 1), ("Range", 0), ("Range", 1), ("Range", 2)}
)
"""Operators and the positions of their inputs that the output's shape depends on."""


def exact_inputs(model: onnx.ModelProto) -> frozenset[str]:
    """Return the graph inputs of floats that an operator takes unchanged as scales, a depth or limits, or writes as text.

    To measure how far outputs move by rounding these stay as they are: a scale of 1 that is a little smaller makes the
    output one element shorter.
    """
    consumers: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in nested_nodes(model.graph.node):
        for index, name in enumerate(node.input):
            consumers.setdefault(name, []).append((node, index))
    texts = {v.name for v in fed_inputs(model.graph) if v.type.tensor_type.elem_type == TensorProto.STRING}
    floats = (v.name for v in fed_inputs(model.graph) if v.type.tensor_type.elem_type in _FLOATS)
    return frozenset(name for name in floats if _decides(name, consumers, texts))


def _decides(start: str, consumers: Mapping[str, Sequence[tuple[NodeProto, int]]], texts: Set[str]) -> bool:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for node, index in consumers.get(name, ()):
            target = next((a.i for a in node.attribute if a.name == "to"), 0) if node.op_type == "Cast" else 0
            written = target == TensorProto.STRING or (node.op_type == "CastLike" and node.input[1] in texts)
            if (node.op_type, index) in _DECIDING or written:
                return True
            if index in inputs_passed_through(node):
                waiting.extend(node.output)
    return False
