"""The values that an operator accepts of its inputs, and which inputs' elements its outputs consist of."""

from __future__ import annotations

from onnx import NodeProto, TensorProto, helper

from onnx_migrate.verify.inputs.constraints.facts import Argument
from onnx_migrate.verify.inputs.constraints.index_ranges import index_range
from onnx_migrate.verify.inputs.constraints.ranges import BOOLEAN, DOMAIN, POSITIVE, Range
from onnx_migrate.verify.inputs.constraints.shape_arguments import shape_argument

__all__ = ["accepted_range", "inputs_passed_through"]

_PASSED_THROUGH: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        ("Identity", "Cast", "CastLike", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Transpose"), (0,)
    ),
    **dict.fromkeys(("Expand", "Tile", "Slice", "Gather", "Split", "Dropout"), (0,)),
    "Where": (1, 2),
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
    ("Log", 0): DOMAIN,
    ("Sqrt", 0): DOMAIN,
    ("Dropout", 1): Range(0.0, 0.75),
    ("Dropout", 2): Range(0, 0),
    ("Bernoulli", 0): Range(0.0, 1.0),
    ("Div", 1): Range(1, 8, discrete=True),
    ("Mod", 1): Range(1, 8, discrete=True),
    ("BitShift", 1): Range(0, 31, discrete=True),  # version 11 leaves open what wider shifts give
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
_WITHOUT_ZERO_POINT = frozenset(
    number for name, number in TensorProto.DataType.items() if name.startswith(("FLOAT8", "FLOAT4", "INT32"))
)
"""Element types of narrow floats, and int32: zero points of these must be 0."""


def inputs_passed_through(node: NodeProto) -> range | tuple[int, ...]:
    """Return the positions of the inputs whose elements appear unchanged, or cast, in the node's outputs."""
    positions = _PASSED_THROUGH.get(node.op_type, ())
    return range(len(node.input)) if positions is None else positions


def accepted_range(argument: Argument) -> Range | None:
    """Return the range of values that a node accepts of an input; None if any value will do.

    Indices, axes and shapes depend on the shapes of the node's other inputs.
    """
    node, operator, index = argument.node, argument.node.op_type, argument.index
    index_or_shape_range = index_range(argument) or shape_argument(argument)
    if index_or_shape_range is not None:
        return index_or_shape_range
    if operator in ("Sub", "Not") or (operator in ("Equal", "Where", "Greater", "Less") and index == 0):
        return BOOLEAN
    if operator in ("QuantizeLinear", "DequantizeLinear") and index == 2:
        element = argument.facts.element_type(node.input[2])
        return Range(0, 0) if element in _WITHOUT_ZERO_POINT else None
    if operator in ("Cast", "CastLike") and index == 0:
        return _text_of_numbers(argument)
    if node.domain == "ai.onnx.ml" or operator == "TfIdfVectorizer":
        return _key(node)
    return _ACCEPTED.get((operator, index))


def _text_of_numbers(argument: Argument) -> Range | None:
    """A string that is cast to a number must be one."""
    if argument.node.op_type == "Cast":
        target = argument.attribute("to", 0)
    else:
        target = argument.facts.element_type(argument.node.input[1])
    return None if target in (0, TensorProto.STRING) else Range(0, 1, weak=True, words=_NUMBERS)


def _key(node: NodeProto) -> Range | None:
    """Return the range of the keys of a vocabulary, because an operator treats all other values alike."""
    for attribute in node.attribute:
        if attribute.name in _KEYS and attribute.strings:
            words = [word.decode("utf-8", "replace") for word in attribute.strings[:_LARGEST_VOCABULARY]]
            return Range(0, 1, weak=True, words=tuple(words))
        if attribute.name in _INTEGER_KEYS and attribute.ints:
            keys = list(helper.get_attribute_value(attribute))
            return Range(min(keys), max(keys), discrete=True)
    return None
