"""Finds facts that a verifier needs before it trusts a comparison: dependencies between values, and random operators.

To compare the rest of two models, fixed operators replace the random ones in both. Each is computed by the same function of its
inputs and attributes in both models. So two random nodes are equal if operator, element type, shape and distribution are. A
Dropout that is not in training mode becomes an Identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.model.graphs import (
    FunctionKey,
    all_nodes,
    bodies,
    called,
    fed_inputs,
    function_key,
    names_read,
    nested_nodes,
)
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.evaluators import Runnable

__all__ = [
    "FIXED",
    "dependents",
    "is_random",
    "is_random_node",
    "miscomputed_in_reference",
    "needed_nodes",
    "random_outputs",
    "with_attribute_data",
    "with_fixed_numbers",
    "without_draws",
]


FIXED = ".fixed."
"""The text between the name of a random value and the number of one that its stand-ins compute."""

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)

_NORMALISING = ("Softmax", "LogSoftmax", "Hardmax")

_SINCE = {
    "Upsample": 10**9, "Resize": 10**9, **dict.fromkeys(_NORMALISING, 13), "RoiAlign": 16, "Scan": 9, "Concat": 4, "Tile": 6,
    "BatchNormalization": 14, "Selu": 6,
}  # fmt: skip
"""The first opset at which onnx.reference computes an operator right; it never does for the first two."""


def dependents(
    model: onnx.ModelProto, sources: set[str], producers: frozenset[int] = frozenset()
) -> set[str]:
    """Return the main graph's values that depend on `sources` or on the nodes at the positions `producers`.

    `sources` are included. Relies on ONNX's topological order of nodes.
    """
    reached = set(sources)
    for index, node in enumerate(model.graph.node):
        if index in producers or not reached.isdisjoint(names_read(node)):
            reached.update(name for name in node.output if name)
    return reached


def needed_nodes(nodes: Sequence[NodeProto], values: Iterable[str]) -> list[NodeProto]:
    """Return the nodes of a body that compute these values, in their order."""
    wanted, needed = set(values), []
    # Backwards, because a node is needed only if a later one reads it.
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(names_read(node))
            needed.append(node)
    return needed[::-1]


def random_outputs(model: onnx.ModelProto) -> dict[str, str]:
    """Return the graph outputs that depend on a random operator, each with those operators, separated by commas."""
    inference = _inference_flags(model)
    functions = _random_functions(model, inference)
    producers: dict[int, str] = {}
    for index, node in enumerate(model.graph.node):
        # A random node inside a body makes the outer node random.
        for inner in nested_nodes([node]):
            if is_random_node(inner, inference) or (functions and called(inner) in functions):
                producers[index] = functions.get(called(inner), inner.op_type)
    if not producers:
        return {}
    reached = dependents(model, set(), frozenset(producers))
    operators = ", ".join(sorted(set(producers.values())))
    return {output.name: operators for output in model.graph.output if output.name in reached}


def _random_functions(model: onnx.ModelProto, inference: Set[str]) -> dict[FunctionKey, str]:
    """Return the local functions with a random operator, in them or in one that they call, each with that operator."""
    random_operators: dict[FunctionKey, str] = {}
    callers: dict[FunctionKey, list[FunctionKey]] = {}
    for function in model.functions:
        key = function_key(function)
        for node in nested_nodes(function.node):
            if is_random_node(node, inference):
                random_operators.setdefault(key, node.op_type)
            else:
                callers.setdefault(called(node), []).append(key)
    waiting = list(random_operators)
    # A call of a random function is random, too.
    while waiting:
        callee = waiting.pop()
        for caller in callers.get(callee, ()):
            if caller not in random_operators:
                random_operators[caller] = random_operators[callee]
                waiting.append(caller)
    return random_operators


def is_random(model: onnx.ModelProto) -> bool:
    """Whether any node of the model, its sub-graphs and functions is a random operator."""
    inference = _inference_flags(model)
    return any(is_random_node(node, inference) for node in all_nodes(model))


def _inference_flags(model: onnx.ModelProto) -> frozenset[str]:
    """Return the constants that switch training mode of a Dropout off: a single false boolean, under a name of its own.

    The result lacks a name that stands for another constant in another body, or for a computed value.
    """
    # The third input of Dropout turns training on.
    modes = {node.input[2] for node in all_nodes(model) if node.op_type == "Dropout" and len(node.input) > 2}
    if not modes:
        return frozenset()
    values: dict[str, list[bool]] = {name: [] for name in modes}
    for located in bodies(model):
        tensors = {tensor.name: tensor for tensor in getattr(located.body, "initializer", ())}
        for node in located.body.node:
            constant = (
                node.op_type == "Constant" and is_onnx(node.domain) and node.attribute[0].name == "value"
            )
            for name in modes.intersection(node.output):
                if constant:
                    tensors[name] = node.attribute[0].t
                else:
                    # A computed value may be true.
                    values[name].append(True)
        for name in modes & tensors.keys():
            values[name].append(_may_be_true(tensors[name]))
    fed = {value.name for value in fed_inputs(model.graph)}
    return frozenset(
        name
        for name, mode_values in values.items()
        if mode_values and not any(mode_values) and name not in fed
    )


def _may_be_true(tensor: TensorProto) -> bool:
    if tensor.data_type != TensorProto.BOOL or tensor.data_location == TensorProto.EXTERNAL:
        return True
    return bool(numpy_helper.to_array(tensor).any())


def miscomputed_in_reference(model: onnx.ModelProto) -> str:
    """Return the first operator of the model that onnx.reference computes differently from its version's text; "" if none.

    Measured with onnx 1.16 to 1.23, in which one class stands for all versions of each of these operators.
    """
    for located in bodies(model):
        opset = onnx_opset(located.owner.opset_import, ir_version=model.ir_version) or 0
        for node in located.body.node:
            first = _SINCE.get(node.op_type, 0) if is_onnx(node.domain) else 0
            # Of their last axis alone all versions make the same.
            last_axis = node.op_type in _NORMALISING and attributes_of(node).get("axis") == -1
            if opset < first and not last_axis:
                return node.op_type
            # It stacks what each turn gives with numpy.vstack, which is right for vectors alone.
            if is_onnx(node.domain) and node.op_type == "Loop" and len(node.output) > len(node.input) - 2:
                return node.op_type
    return ""


def is_random_node(node: NodeProto, inference: Set[str] = frozenset()) -> bool:
    """Whether a node is a random operator; a Dropout is one in training mode.

    `inference` are constants that say that a Dropout is not.
    """
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "Dropout":
        return len(node.input) > 2 and node.input[2] not in ("", *inference)
    return node.op_type in _RANDOM


def without_draws(*runnables: Runnable) -> tuple[Runnable, ...]:
    """Return models with fixed numbers in place of random ones if the first of them draws any."""
    return tuple(map(with_fixed_numbers, runnables)) if is_random(runnables[0].model) else runnables


def with_attribute_data(runnable: Runnable) -> onnx.ModelProto:
    """Return a model's structure with the tensors that are attributes, for example thresholds of trees, read from its file.

    Those of Constant nodes stay in the file. Raises LoadError.
    """

    def is_elsewhere(node: NodeProto, attribute: onnx.AttributeProto) -> bool:
        # Constants are read where they are needed, and may be large.
        if attribute.type != onnx.AttributeProto.TENSOR or node.op_type == "Constant":
            return False
        return bool(attribute.t.data_location == TensorProto.EXTERNAL)

    if not any(
        is_elsewhere(node, attribute_entry)
        for node in all_nodes(runnable.model)
        for attribute_entry in node.attribute
    ):
        return runnable.model
    model = runnable.proto()
    for node in all_nodes(model):
        for attribute in node.attribute:
            if is_elsewhere(node, attribute):
                attribute.t.CopyFrom(runnable.inlined(attribute.t))
    return model


def with_fixed_numbers(runnable: Runnable) -> Runnable:
    """Return the model with every random operator replaced, in sub-graphs and functions too."""
    model = runnable.proto()
    inference = _inference_flags(model)
    for located in bodies(model):
        nodes = located.body.node
        random = [is_random_node(node, inference) for node in nodes]
        # Bodies without random operators stay unchanged.
        if not any(random):
            continue
        opset = onnx_opset(located.owner.opset_import, ir_version=model.ir_version) or 0
        replaced = [
            new
            for node, draws in zip(nodes, random, strict=True)
            for new in (_fixed(node, opset) if draws else [node])
        ]
        del nodes[:]
        nodes.extend(replaced)
    return runnable.with_structure(model)


def _fixed(node: NodeProto, opset: int) -> Iterator[NodeProto]:
    """Return nodes that write the same outputs; the last has the name of the random one."""
    *before, last = _BY_OPERATOR[node.op_type](node, attributes_of(node), opset)
    last.name = node.name
    yield from (*before, last)


Attributes = Mapping[str, Any]


def _dropout(node: NodeProto, attributes: Attributes, opset: int) -> list[NodeProto]:
    """In training mode drop the elements whose cosine is small beside the ratio; otherwise be the identity."""
    data, ratio, training = node.input[:3]
    name = node.output[0]
    mask = node.output[1] if len(node.output) > 1 and node.output[1] else f"{name}{FIXED}mask"
    values = [f"{name}{FIXED}{index}" for index in range(9)]
    half = helper.make_node("Constant", [], values[:1], value=_float(0.5))
    return [
        *([] if ratio else [half]),
        helper.make_node("Cast", [ratio or values[0]], [values[1]], to=TensorProto.FLOAT),
        helper.make_node("Cast", [data], [values[2]], to=TensorProto.FLOAT),
        helper.make_node("Cos", [values[2]], [values[3]]),
        helper.make_node("Abs", [values[3]], [values[4]]),
        helper.make_node("Less", [values[1], values[4]], [values[5]]),
        helper.make_node("Not", [training], [values[6]]),
        helper.make_node("Or", [values[5], values[6]], [mask]),
        helper.make_node("Sub", [data, data], [values[7]]),
        helper.make_node("Where", [mask, data, values[7]], [name]),
    ]


def _float(number: float) -> TensorProto:
    return numpy_helper.from_array(np.array(number, np.float32))


def _drawn(node: NodeProto, attributes: Attributes, opset: int) -> list[NodeProto]:
    """RandomNormal and RandomUniform: a constant, drawn with the node's mean and scale, or low and high."""
    # All models get the same numbers.
    rng = np.random.default_rng(0)
    shape = attributes.get("shape", [])
    if node.op_type == "RandomNormal":
        mean, scale = attributes.get("mean", 0.0), attributes.get("scale", 1.0)
        values = mean + scale * rng.standard_normal(shape)
    else:
        low, high = attributes.get("low", 0.0), attributes.get("high", 1.0)
        values = low + (high - low) * rng.random(shape)
    dtype = helper.tensor_dtype_to_np_dtype(attributes.get("dtype", TensorProto.FLOAT))
    tensor = numpy_helper.from_array(np.asarray(values).astype(dtype))
    return [helper.make_node("Constant", [], [node.output[0]], value=tensor)]


def _like(node: NodeProto, attributes: Attributes, opset: int) -> list[NodeProto]:
    """RandomNormalLike and RandomUniformLike become the cosine of the input, or its magnitude.

    Offset and factor come from the distribution. The result is finite and nowhere the same. Another mean, scale or range gives
    other numbers.
    """
    source, output = node.input[0], node.output[0]
    normal = node.op_type == "RandomNormalLike"
    if normal:
        offset, factor = attributes.get("mean", 0.0), attributes.get("scale", 1.0)
    else:
        offset = attributes.get("low", 0.0)
        factor = attributes.get("high", 1.0) - offset
    write = _Chain(source, output)
    dtype = attributes.get("dtype", 0)
    if dtype or (offset, factor) != (0.0, 1.0):
        write.add("Cast", to=TensorProto.FLOAT)
    write.add("Cos")
    if not normal:
        write.add("Abs")
    if (offset, factor) != (0.0, 1.0):
        write.add("Mul", constant=factor)
        write.add("Add", constant=offset)
        if not dtype and opset >= _CASTS_LIKE:
            write.add("CastLike", [source])
    if dtype:
        write.add("Cast", to=dtype)
    return write.nodes()


_CASTS_LIKE = 15
"""The opset in which CastLike begins. Below it, a random tensor of another type than float and other attributes is not fixed."""


class _Chain:
    """A chain of nodes: each reads the output of the node before it, and the last writes `output`."""

    def __init__(self, source: str, output: str) -> None:
        self._last, self._output = source, output
        self._nodes: list[NodeProto] = []

    def add(
        self, operator: str, others: Sequence[str] = (), constant: float | None = None, **attributes: Any
    ) -> None:
        """Add a node that reads the last output and `others`, or a float constant."""
        names = list(others)
        if constant is not None:
            names = [f"{self._output}{FIXED}{len(self._nodes)}"]
            value = _float(constant)
            self._nodes.append(helper.make_node("Constant", [], names, value=value))
        result = f"{self._output}{FIXED}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, [self._last, *names], [result], **attributes))
        self._last = result

    def nodes(self) -> list[NodeProto]:
        """Return the nodes."""
        self._nodes[-1].output[0] = self._output
        return self._nodes


def _bernoulli(node: NodeProto, attributes: Attributes, opset: int) -> list[NodeProto]:
    """Bernoulli becomes a comparison of a fixed number with the probability, like the nodes that replace it below opset 15."""
    source, output = node.input[0], node.output[0]
    drawn, uniform, less = (f"{output}{FIXED}{index}" for index in range(3))
    dtype = attributes.get("dtype", 0)
    return [
        helper.make_node("Cos", [source], [drawn]),
        helper.make_node("Abs", [drawn], [uniform]),
        helper.make_node("Less", [uniform, source], [less]),
        helper.make_node("Cast", [less], [output], to=dtype) if dtype
        else helper.make_node("CastLike", [less, source], [output]),
    ]  # fmt: skip


def _multinomial(node: NodeProto, attributes: Attributes, opset: int) -> list[NodeProto]:
    """The likeliest class, in place of every sample."""
    output = node.output[0]
    likeliest, samples = f"{output}{FIXED}0", f"{output}{FIXED}1"
    return [
        helper.make_node("ArgMax", [node.input[0]], [likeliest], axis=1, keepdims=1),
        helper.make_node("Concat", [likeliest] * attributes.get("sample_size", 1), [samples], axis=1),
        helper.make_node("Cast", [samples], [output], to=attributes.get("dtype", TensorProto.INT32)),
    ]


_BY_OPERATOR: Mapping[str, Callable[[NodeProto, Attributes, int], list[NodeProto]]] = {
    "Dropout": _dropout,
    "RandomNormal": _drawn,
    "RandomUniform": _drawn,
    "RandomNormalLike": _like,
    "RandomUniformLike": _like,
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
}
