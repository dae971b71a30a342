"""Changes of one thing in a model: an attribute, an input, a constant, an operator; each yields a label and the changed model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

__all__ = ["Change", "changes", "nodes_of"]

Change = tuple[str, str, onnx.ModelProto]
"""The kind of a change, a text that names it, and the changed model."""

WORDS: dict[str, tuple[str, ...]] = {
    "auto_pad": ("SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"),
    "mode": ("constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "DCR", "CRD", "TF", "IDF", "TFIDF"),
    "coordinate_transformation_mode": ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                       "half_pixel_symmetric", "output_half_pixel"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "direction": ("forward", "reverse", "LEFT", "RIGHT"),
    "reduction": ("none", "add", "mul", "min", "max", "mean", "sum"),
    "padding_mode": ("zeros", "border", "reflection"),
    "approximate": ("none", "tanh"),
    "post_transform": ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"),
    "norm": ("MAX", "L1", "L2"),
    "case_change_action": ("NONE", "LOWER", "UPPER"),
    "round_mode": ("up", "down", "nearest"),
    "cast_to": ("TO_FLOAT", "TO_STRING", "TO_INT64"),
    "map_form": ("DENSE", "SPARSE"),
    "kernel_type": ("LINEAR", "POLY", "RBF", "SIGMOID"),
    "aggregate_function": ("SUM", "AVERAGE", "MIN", "MAX"),
    "nodes_modes": ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"),
}  # fmt: skip

_SIBLINGS: tuple[tuple[str, ...], ...] = (
    ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"), ("ArgMax", "ArgMin"),
    ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
     "ReduceLogSum", "ReduceLogSumExp"),
    ("Floor", "Round", "Ceil"), ("Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Softplus", "ThresholdedRelu", "Abs"),
    ("Add", "Mul", "Sub", "Div"), ("Max", "Min", "Sum", "Mean"), ("And", "Or", "Xor"),
    ("BitwiseAnd", "BitwiseOr", "BitwiseXor"), ("Sin", "Cos", "Tan"), ("Sinh", "Cosh", "Tanh"),
    ("Asin", "Acos", "Atan"), ("Asinh", "Acosh", "Atanh"), ("Sigmoid", "HardSigmoid", "HardSwish", "Softsign"),
    ("Softmax", "LogSoftmax", "Hardmax"), ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"), ("IsNaN", "IsInf"),
    ("MaxPool", "AveragePool"), ("Exp", "Softplus"), ("Sqrt", "Abs"), ("Sign", "Neg", "Identity"), ("Gelu", "Mish"),
    ("RandomNormalLike", "RandomUniformLike"), ("Gather", "GatherElements"), ("PRelu", "Mul"), ("Erf", "Tanh"),
    ("BlackmanWindow", "HannWindow", "HammingWindow"), ("LpNormalization", "MeanVarianceNormalization"),
)  # fmt: skip

_UNARY_KEPT = {"Identity", "Constant", "Cast", "Shape", "Size"}


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph and of its sub-graphs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def changes(model: onnx.ModelProto, rng: Random) -> Iterator[Change]:
    """Yield the changes that can be made to a model; a changed model may be invalid."""
    for index, node in enumerate(nodes_of(model.graph)):
        for kind, label, edit in _node_changes(model, node, rng):
            yield kind, f"{node.op_type}: {label}", _edited(model, index, edit)
    yield from _constant_changes(model, rng)


def _edited(model: onnx.ModelProto, index: int, edit: Callable[[onnx.NodeProto], None]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    edit(list(nodes_of(copy.graph))[index])
    return copy


Edit = tuple[str, str, Callable[[onnx.NodeProto], None]]


def _node_changes(model: onnx.ModelProto, node: onnx.NodeProto, rng: Random) -> Iterator[Edit]:
    yield from _attribute_changes(model, node, rng)
    for one, other in [(0, 1), (1, 2), (0, 2)]:
        if other < len(node.input) and node.input[one] and node.input[other]:
            yield "input swapped", f"inputs {one} and {other} swapped", _swap(one, other)
    if len(node.input) > 1 and node.input[-1]:
        yield "input dropped", f"input {len(node.input) - 1} dropped", lambda n: _cut(n)
        yield "input repeated", "input 1 replaced by input 0", lambda n: n.input.__setitem__(1, n.input[0])
    if len(node.input) > 2:
        yield "input dropped", "input 1 left out", lambda n: n.input.__setitem__(1, "")
    for family in _SIBLINGS:
        for name in family:
            if node.op_type in family and name != node.op_type:
                yield "sibling", f"replaced by {name}", _rename(name)
    if node.input and node.op_type not in _UNARY_KEPT:
        yield "operator dropped", "replaced by Identity", _identity


def _swap(one: int, other: int) -> Callable[[onnx.NodeProto], None]:
    def edit(node: onnx.NodeProto) -> None:
        node.input[one], node.input[other] = node.input[other], node.input[one]

    return edit


def _cut(node: onnx.NodeProto) -> None:
    del node.input[-1]
    while node.input and not node.input[-1]:
        del node.input[-1]


def _rename(name: str) -> Callable[[onnx.NodeProto], None]:
    def edit(node: onnx.NodeProto) -> None:
        node.op_type = name
        try:
            allowed = onnx.defs.get_schema(name, node.domain).attributes
        except onnx.defs.SchemaError:
            return
        kept = [attribute for attribute in node.attribute if attribute.name in allowed]
        del node.attribute[:]
        node.attribute.extend(kept)

    return edit


def _identity(node: onnx.NodeProto) -> None:
    node.op_type, node.domain = "Identity", ""
    del node.attribute[:], node.input[1:], node.output[1:]


def _attribute_changes(model: onnx.ModelProto, node: onnx.NodeProto, rng: Random) -> Iterator[Edit]:
    versions = {entry.domain: entry.version for entry in model.opset_import}
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return
    written = {attribute.name: attribute for attribute in node.attribute}
    for name, definition in schema.attributes.items():
        attribute = written.get(name)
        if attribute is None and definition.default_value.type:
            attribute = definition.default_value
        value = None if attribute is None else helper.get_attribute_value(attribute)
        for other in _other_values(name, definition.type, value, rng):
            yield "attribute", f"{name} {_text(value)} becomes {_text(other)}", _set(name, other)


def _text(value: Any) -> str:
    if isinstance(value, TensorProto):
        return str(numpy_helper.to_array(value).tolist())[:60]
    return str(value)[:60]


def _set(name: str, value: Any) -> Callable[[onnx.NodeProto], None]:
    def edit(node: onnx.NodeProto) -> None:
        for attribute in [one for one in node.attribute if one.name == name]:
            node.attribute.remove(attribute)
        node.attribute.append(helper.make_attribute(name, value))

    return edit


def _other_values(name: str, kind: Any, value: Any, rng: Random) -> Iterator[Any]:
    kinds = AttributeProto
    number = int(getattr(kind, "value", kind))
    if number == kinds.INT:
        yield from _other_integers(name, value)
    elif number == kinds.FLOAT:
        base = 0.0 if value is None else float(value)
        yield from {base * 1.05, base * 0.5, -base, base + 1.0, base * 10} - {base}
    elif number == kinds.STRING:
        now = (value or b"").decode() if isinstance(value, (bytes, type(None))) else str(value)
        yield from (word for word in WORDS.get(name, (f"{now}x",)) if word != now)
    elif number == kinds.TENSOR and value is not None:
        for _, array in _other_arrays(numpy_helper.to_array(value), rng):
            yield numpy_helper.from_array(array, value.name)
    elif number in (kinds.INTS, kinds.FLOATS, kinds.STRINGS):
        yield from _other_lists(name, number, list(value or []), rng)


def _other_integers(name: str, value: Any) -> Iterator[int]:
    base = 0 if value is None else int(value)
    if name in ("to", "dtype", "saturate"):
        yield from {1, 6, 7, 10, 11} - {base} if name != "saturate" else {1 - base}
    elif base in (0, 1) and name not in ("axis", "p", "group", "batch_dims", "blocksize"):
        yield 1 - base
    else:
        yield from (base + 1, base - 1, base * 2 + 1)


def _other_lists(name: str, kind: int, values: list[Any], rng: Random) -> Iterator[Any]:
    if not values:
        if name in ("pads", "strides", "dilations", "output_padding"):
            yield from ([1, 1, 1, 1], [1, 0, 0, 1]) if name == "pads" else ([2, 2], [2], [1, 2])
        elif name in ("axes", "perm"):
            yield from ([0], [1], [-1], [0, 1], [0, 2, 1], [1, 0])
        elif name == "activations":
            yield [b"Sigmoid", b"Tanh", b"Relu"]
        return
    place = rng.randrange(len(values))
    if len(set(map(str, values))) > 1:
        yield values[1:] + values[:1]
        yield values[::-1]
    if kind == AttributeProto.STRINGS:
        text = values[place].decode() if isinstance(values[place], bytes) else str(values[place])
        for word in (*WORDS.get(name, ()), f"{text}x", text.swapcase()):
            if word != text:
                yield [*values[:place], word.encode(), *values[place + 1 :]]
    elif kind == AttributeProto.FLOATS:
        for move in (
            lambda v: v * 1.05,
            lambda v: -v,
            lambda v: float(np.nextafter(np.float32(v), np.float32(9e9))),
        ):
            yield [*values[:place], move(values[place]), *values[place + 1 :]]
    else:
        for step in (1, -1):
            yield [*values[:place], values[place] + step, *values[place + 1 :]]


def _constant_changes(model: onnx.ModelProto, rng: Random) -> Iterator[Change]:
    for index, tensor in enumerate(model.graph.initializer):
        if tensor.data_type == TensorProto.STRING or tensor.data_type > 16:
            continue
        for label, array in _other_arrays(numpy_helper.to_array(tensor), rng):
            copy = onnx.ModelProto()
            copy.CopyFrom(model)
            copy.graph.initializer[index].CopyFrom(numpy_helper.from_array(array, tensor.name))
            yield "constant", f"constant {tensor.name}: {label}", copy


def _other_arrays(array: Any, rng: Random) -> Iterator[tuple[str, Any]]:
    """Yield arrays of which one element, or all, moved: by one unit in the last place, 5 %, its sign."""
    array = np.array(array)
    if not array.size:
        return
    place = rng.randrange(array.size)
    if array.dtype.kind == "f":
        high = array.dtype.type(np.inf)
        yield "all one ulp up", np.nextafter(array, high).astype(array.dtype)
        yield "all one ulp down", np.nextafter(array, -high).astype(array.dtype)
        yield "all times 1.05", (array * 1.05).astype(array.dtype)
        for label, value in (
            ("times 1.05", array.flat[place] * 1.05),
            ("negated", -array.flat[place]),
            ("plus 1", array.flat[place] + 1),
        ):
            yield f"element {place} {label}", _moved(array, place, value)
    elif array.dtype.kind in "iu":
        for step in (1, -1):
            value = int(array.flat[place]) + step
            if np.iinfo(array.dtype).min <= value <= np.iinfo(array.dtype).max:
                yield f"element {place} plus {step}", _moved(array, place, value)
    elif array.dtype.kind == "b":
        yield f"element {place} inverted", _moved(array, place, not array.flat[place])
    if array.ndim and array.shape[0] > 1:
        yield "rows rolled", np.roll(array, 1, axis=0)


def _moved(array: Any, place: int, value: Any) -> Any:
    copy = array.copy()
    copy.flat[place] = value
    return copy
