"""Replaces the random operators of two models by fixed ones, so that everything else in them can be compared.

Each is replaced by the same function of its inputs and attributes in both models, whose result has the type, shape and
range of the random one. Only operators that every opset has are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_migrate.model.graphs import bodies
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.model_traits import is_random_node

__all__ = ["with_fixed_numbers"]


def with_fixed_numbers(runnable: Runnable) -> Runnable:
    """Return the model with every random operator replaced, in sub-graphs and functions too."""
    model = runnable.proto()
    for located in bodies(model):
        nodes = located.body.node
        if not any(map(is_random_node, nodes)):
            continue
        replaced = [new for node in nodes for new in (_fixed(node) if is_random_node(node) else [node])]
        copies = [NodeProto.FromString(node.SerializeToString()) for node in replaced]
        del nodes[:]
        nodes.extend(copies)
    return runnable.with_structure(model)


def _fixed(node: NodeProto) -> Iterator[NodeProto]:
    """Return nodes that write the same outputs; the last has the name of the random one."""
    *before, last = _BY_OPERATOR[node.op_type](node, {item.name: item for item in node.attribute})
    last.name = node.name
    yield from (*before, last)


Attributes = Mapping[str, onnx.AttributeProto]


def _dropout(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """Not in training mode it is the identity, and its mask is true throughout."""
    inference = NodeProto.FromString(node.SerializeToString())
    del inference.input[2:]
    return [inference]


def _drawn(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """RandomNormal and RandomUniform: a constant, drawn with the node's mean and scale, or low and high."""
    rng = np.random.default_rng(0)
    shape = list(attributes["shape"].ints)
    if node.op_type == "RandomNormal":
        mean, scale = _number(attributes, "mean", 0.0), _number(attributes, "scale", 1.0)
        values = mean + scale * rng.standard_normal(shape)
    else:
        low, high = _number(attributes, "low", 0.0), _number(attributes, "high", 1.0)
        values = low + (high - low) * rng.random(shape)
    dtype = helper.tensor_dtype_to_np_dtype(_dtype(attributes, TensorProto.FLOAT))
    tensor = numpy_helper.from_array(np.asarray(values).astype(dtype))
    return [helper.make_node("Constant", [], [node.output[0]], value=tensor)]


def _like(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """RandomNormalLike and RandomUniformLike: the cosine of the input, which is finite and nowhere the same."""
    source, output = node.input[0], node.output[0]
    dtype = _dtype(attributes, 0)
    if not dtype:
        return [helper.make_node("Cos", [source], [output])]
    number, cosine = f"{output}.fixed.0", f"{output}.fixed.1"
    return [
        helper.make_node("Cast", [source], [number], to=TensorProto.FLOAT),
        helper.make_node("Cos", [number], [cosine]),
        helper.make_node("Cast", [cosine], [output], to=dtype),
    ]


def _bernoulli(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """Whether the fixed number of RandomUniformLike is less than the probability, as below opset 15 it is written."""
    source, output = node.input[0], node.output[0]
    drawn, less = f"{output}.fixed.0", f"{output}.fixed.1"
    dtype = _dtype(attributes, 0)
    return [
        helper.make_node("Cos", [source], [drawn]),
        helper.make_node("Less", [drawn, source], [less]),
        helper.make_node("Cast", [less], [output], to=dtype) if dtype
        else helper.make_node("CastLike", [less, source], [output]),
    ]  # fmt: skip


def _multinomial(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """The likeliest class, in place of every sample."""
    output = node.output[0]
    likeliest, samples = f"{output}.fixed.0", f"{output}.fixed.1"
    count = attributes["sample_size"].i if "sample_size" in attributes else 1
    return [
        helper.make_node("ArgMax", [node.input[0]], [likeliest], axis=1, keepdims=1),
        helper.make_node("Concat", [likeliest] * count, [samples], axis=1),
        helper.make_node("Cast", [samples], [output], to=_dtype(attributes, TensorProto.INT32)),
    ]


def _number(attributes: Attributes, name: str, default: float) -> float:
    return attributes[name].f if name in attributes else default


def _dtype(attributes: Attributes, default: int) -> int:
    return int(attributes["dtype"].i) if "dtype" in attributes else default


_BY_OPERATOR: Mapping[str, Callable[[NodeProto, Attributes], list[NodeProto]]] = {
    "Dropout": _dropout,
    "RandomNormal": _drawn,
    "RandomUniform": _drawn,
    "RandomNormalLike": _like,
    "RandomUniformLike": _like,
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
}
