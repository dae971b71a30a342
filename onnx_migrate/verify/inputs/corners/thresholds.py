"""The numbers at which an operator changes its behaviour: constants that it compares with, bounds, halves, keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.verify.inputs.constraints.facts import Argument
from onnx_migrate.verify.inputs.corners.paths import operators
from onnx_migrate.verify.inputs.corners.patterns import samples

__all__ = ["chooses_among_equals", "columns_at", "compares_elements", "numbers_at", "words_at"]

_MOST_NUMBERS = 32
"""Most numbers of one node that corner feeds use. A large constant has more, and then some of them are skipped."""

_COMPARISONS = frozenset(
    {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Clip", "Where", "Mod"}
)
_TIES = operators(
    """
    TopK ArgMax ArgMin MaxPool Hardmax Unique NonZero NonMaxSuppression And Or Xor
    """
)
"""Operators whose output depends on which elements of one input are equal."""

_CHOOSING = frozenset({"TopK", "ArgMax", "ArgMin", "MaxPool", "Hardmax", "Unique"})

_HALVES = (0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1.0, -1.0, 0.0, 0.49999997, 8388609.0)
"""0.49999997 is the float32 below a half: added to a half it is rounded to 1. From 8388608 on floats are whole numbers."""

_EDGES: dict[int, tuple[float, ...]] = {
    TensorProto.BOOL: (0.0, 0.5, -0.5, 1.0, 2.0),
    TensorProto.FLOAT16: (65504.0, 65519.0, 1e-7, 6e-8, 2049.0, 0.1),
    TensorProto.BFLOAT16: (257.0, 0.1, 1e-30),
}
"""By the type of a Cast: numbers that it rounds, or that are near its ends."""


def numbers_at(argument: Argument) -> list[float]:
    """Return the numbers around which a node treats this input differently, at most 32."""
    operator, index = argument.node.op_type, argument.index
    numbers: list[float] = []
    if operator in _COMPARISONS and not (operator == "Where" and index == 0):
        numbers += _constants(argument)
    if index == 0 and operator in _FROM_ATTRIBUTES:
        numbers += _FROM_ATTRIBUTES[operator](argument)
    if (operator, index) == ("NonMaxSuppression", 1):
        numbers += _constants(argument, 4)
    return _spread(dict.fromkeys(number for number in numbers if np.isfinite(number)))


def compares_elements(argument: Argument) -> bool:
    """Whether a node's output depends on equality between elements of its input, or between them and those of another input."""
    operator = argument.node.op_type
    if operator in _COMPARISONS and operator not in ("Where", "Clip"):
        others = (name for at, name in enumerate(argument.node.input) if at != argument.index and name)
        return any(argument.facts.value(name) is None for name in others)
    return operator in _TIES or operator in ("Floor", "Ceil", "Round", "Sign")


def chooses_among_equals(argument: Argument) -> bool:
    """Whether a node takes one of several equal elements of this input, or its position."""
    return argument.index == 0 and argument.node.op_type in _CHOOSING


def _spread(numbers: Iterable[float]) -> list[float]:
    """Return at most 32 of these numbers, evenly chosen."""
    every = list(numbers)
    return every if len(every) <= _MOST_NUMBERS else every[:: -(-len(every) // _MOST_NUMBERS)]


def _constants(argument: Argument, first: int = 0) -> list[float]:
    """The constants that the node reads beside this input, from a position on."""
    constants: list[float] = []
    for at, name in enumerate(argument.node.input[first:], first):
        # Only constants are thresholds.
        constant = argument.facts.value(name) if name and at != argument.index else None
        if constant is not None and constant.dtype.kind in "iuf":
            constants += sorted(set(constant.ravel().astype(np.float64).tolist()))
    return constants


Numbers = Callable[[Argument], Iterable[float]]


def _at(*numbers: float) -> Numbers:
    return lambda argument: numbers


def _attributes(**defaults: float) -> Numbers:
    """Attributes of the node, each with its default."""
    return lambda argument: [float(argument.attribute(name, default)) for name, default in defaults.items()]


def _hard_sigmoid(argument: Argument) -> Iterable[float]:
    alpha, beta = float(argument.attribute("alpha", 0.2)), float(argument.attribute("beta", 0.5))
    return [-beta / alpha, (1 - beta) / alpha] if alpha else []


def _shrink(argument: Argument) -> Iterable[float]:
    bound = float(argument.attribute("lambd", 0.5))
    return bound, -bound


def _cast(argument: Argument) -> Iterable[float]:
    kind = argument.attribute("to", 0)
    if kind in _EDGES:
        return _EDGES[kind]
    name = TensorProto.DataType.Name(kind) if kind else ""
    if name.startswith("UINT"):
        return 0.0, 0.5, 1.0, 1.5, 2.75
    return (0.5, -0.5, 1.5, -1.5, 2.75, -2.75, 0.0) if name.startswith("INT") else ()


def _steps(argument: Argument) -> Iterable[float]:
    """The middle between two steps of QuantizeLinear, and the ends of the type."""
    scale = argument.facts.value(argument.node.input[1]) if len(argument.node.input) > 1 else None
    if scale is None or not scale.size or scale.dtype.kind != "f":
        return ()
    step = float(scale.flat[0])
    return [step * number for number in (0.5, 1.5, 2.5, -0.5, -1.5, 130.0, -130.0, 260.0)]


def _keys(argument: Argument) -> Iterable[float]:
    """The keys of a dictionary, and numbers that are none."""
    keys: list[float] = []
    for attribute in argument.node.attribute:
        if attribute.name in ("keys_int64s", "keys_floats", "cats_int64s", "classes_int64s"):
            keys += map(float, helper.get_attribute_value(attribute))
        elif attribute.name == "keys_tensor" and attribute.t.data_type != TensorProto.STRING:
            keys += numpy_helper.to_array(attribute.t).astype(np.float64).ravel().tolist()
    return keys


_FROM_ATTRIBUTES: dict[str, Numbers] = {
    **dict.fromkeys(
        ("Relu", "LeakyRelu", "PRelu", "Elu", "Celu", "Selu", "Abs", "Sign", "Softplus"), _at(0.0)
    ),
    **dict.fromkeys(("Floor", "Ceil", "Round"), _at(*_HALVES)),
    "ThresholdedRelu": _attributes(alpha=1.0),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _at(-3.0, 3.0),
    "Shrink": _shrink,
    "Clip": lambda argument: [float(a.f) for a in argument.node.attribute if a.name in ("min", "max")],
    "Binarizer": _attributes(threshold=0.0),
    "Cast": _cast,
    "QuantizeLinear": _steps,
    "Mod": _at(7.0, -7.0, 3.0, -3.0),
    "Div": _at(7.0, -7.0),
    "NonZero": _at(0.0),
    **dict.fromkeys(("LabelEncoder", "OneHotEncoder", "CategoryMapper", "DictVectorizer"), _keys),
}


def columns_at(argument: Argument) -> dict[int, list[float]]:
    """Return by column the numbers that the nodes of a tree ensemble compare it with, at most 32 of each."""
    node = argument.node
    if not node.op_type.startswith("TreeEnsemble"):
        return {}
    settings: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    splits = settings.get("nodes_values", [])
    # Versions of the operator store the splits in different attributes.
    for tensor in ("nodes_values_as_tensor", "nodes_splits"):
        if tensor in settings:
            splits = numpy_helper.to_array(settings[tensor]).ravel().tolist()
    modes = settings.get("nodes_modes", [])
    modes = numpy_helper.to_array(modes).tolist() if isinstance(modes, TensorProto) else modes
    splits_by_column: dict[int, list[float]] = {}
    # The entries of leaves are no comparisons.
    for at, (column, number) in enumerate(zip(settings.get("nodes_featureids", []), splits, strict=False)):
        if at >= len(modes) or modes[at] != b"LEAF":
            splits_by_column.setdefault(int(column), []).append(float(number))
    return {column: _spread(dict.fromkeys(numbers)) for column, numbers in splits_by_column.items()}


def words_at(argument: Argument) -> list[str]:
    """Return the strings that a node looks for in this input: keys, stop words, entries of a vocabulary, constants."""
    words: list[str] = _parts(argument) if argument.node.op_type == "StringSplit" else []
    for attribute in argument.node.attribute:
        if attribute.name in _WORDS:
            words += [word.decode("utf-8", "replace") for word in attribute.strings[:_MOST_NUMBERS]]
        elif attribute.name == "keys_tensor" and attribute.t.data_type == TensorProto.STRING:
            words += [str(word) for word in numpy_helper.to_array(attribute.t).ravel()[:_MOST_NUMBERS]]
        elif attribute.name == "pattern":
            words += samples(attribute.s.decode("utf-8", "replace"))
    for at, name in enumerate(argument.node.input):
        constant = argument.facts.value(name) if name and at != argument.index else None
        if constant is not None and constant.dtype.kind in "OSU":
            words += [
                # Attributes hold texts as bytes.
                word.decode() if isinstance(word, bytes) else str(word)
                for word in constant.ravel()[:_MOST_NUMBERS]
            ]
    return words


def _parts(argument: Argument) -> list[str]:
    """Return strings of more parts than StringSplit makes, with delimiters in a row, at both ends, and alone."""
    mark = bytes(argument.attribute("delimiter", b"")).decode("utf-8", "replace")
    most = int(argument.attribute("maxsplit", 0))
    letters = "abcdefghijklmnopqrstuvwxyz"[: min(max(most, 3) + 3, 26)]
    between = mark or " "
    texts = [between.join(letters), f"{between}a{between}{between}b{between}", f"a{between}b", between]
    return texts if mark.strip() else [*texts, "a \t b  c\td", "  a b  c d  "]


_WORDS = (
    "keys_strings",
    "classes_strings",
    "cats_strings",
    "pool_strings",
    "stopwords",
    "string_vocabulary",
    "classlabels_strings",
)
