"""Compares the weights of two models as data, without a run: a wrong one may show in no output.

A wrong weight hides where a Relu is zero on all inputs, or in the rounding of many others. Where a model is to compute
the same bits, its weights have no reason to differ. A simplifier leaves a weight as it is, or multiplies it by a number for
each output or input channel, as that of a BatchNormalization or Mul beside a convolution. A single element that was moved,
or bytes that were put in the wrong place, are neither.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.files.equality import same_bytes
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import bodies, names_read, producers
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import numbers
from onnx_migrate.model.weights import MEMORY, location_of
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.compare.arrays import Array
from onnx_migrate.verify.compare.comparison import bit_difference

__all__ = ["other_folded_weights", "other_weights", "weights_of"]


_NOT_WEIGHTS = frozenset(
    {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING, TensorProto.UNDEFINED}
)
"""Types of lengths, axes, indices and masks, which passes rewrite under their own names."""


def other_weights(original: Model, result: Model) -> Iterator[tuple[str, str]]:
    """Yield the name of each weight of which `result` has other data than `original`, and how they differ.

    Weights are initializers and Constants that some node reads, in both models by the same name, element type and dims;
    a name that a model has in several bodies is left out. Data that both models have in the same place are not read.
    Raises LoadError.
    """
    theirs = weights_of(result)
    for name, one in weights_of(original).items():
        other = theirs.get(name)
        if other is None or (one.data_type, list(one.dims)) != (other.data_type, list(other.dims)):
            continue
        if not _same_place(original, one, result, other) and not _same_data(original, one, result, other):
            arrays = (numbers(model.weights.array(t)) for model, t in ((original, one), (result, other)))
            if difference := bit_difference(name, *arrays):
                yield name, difference


def weights_of(model: Model) -> dict[str, TensorProto]:
    """Return the initializers and tensors of Constants that some node reads, those that only one body has by the name."""
    found: dict[str, TensorProto] = {}
    count: Counter[str] = Counter()
    read: set[str] = set()
    for located in bodies(model.proto):
        for tensor in getattr(located.body, "initializer", ()):
            found[tensor.name] = tensor
            count[tensor.name] += 1
        for node in located.body.node:
            read.update(names_read(node))
            if node.op_type == "Constant" and is_onnx(node.domain):
                for attribute in node.attribute:
                    if attribute.type == AttributeProto.TENSOR:
                        found[node.output[0]] = attribute.t
                        count[node.output[0]] += 1
    return {
        name: tensor
        for name, tensor in found.items()
        if count[name] == 1 and name in read and tensor.data_type not in _NOT_WEIGHTS
    }


def _same_place(original: Model, one: TensorProto, result: Model, other: TensorProto) -> bool:
    """Whether both tensors refer to the same bytes of the same file, which need not be looked up then."""
    if TensorProto.EXTERNAL not in (one.data_location, other.data_location):
        return one == other
    return (
        original.weights.folder == result.weights.folder
        and original.weights.source == result.weights.source
        and one.data_location == other.data_location
        and not location_of(one).startswith(MEMORY)
        and list(one.external_data) == list(other.external_data)
    )


def _same_data(original: Model, one: TensorProto, result: Model, other: TensorProto) -> bool:
    """Whether both tensors are stored outside their structures, with the same bytes."""
    if not one.data_location == other.data_location == TensorProto.EXTERNAL:
        return False
    return same_bytes(original.weights.payload(one), result.weights.payload(other))


_LINEAR = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators with which a factor of each channel is folded, or might be."""

_ULPS = 64
"""Units in the last place by which a folded element may be off: a fold rounds two or three times."""

_STEPS = 3
"""How often factors of rows and columns are found from each other; the first ones are almost right."""

_TINY = 1e-30
"""Numbers near the smallest ones have fewer digits."""


def other_folded_weights(unsimplified: Model, simplified: Model) -> Iterator[tuple[str, str]]:
    """Yield the name of each weight of `simplified` that is not the one before, scaled by channels, and what is wrong.

    Compared are the float32 and float64 weights of nodes that both models have: of the same operator, attributes, first
    input and output; and, where a weight is the same, a bias of the same name, if the same nodes read the output. Raises
    LoadError.
    """
    old_nodes = producers(unsimplified.proto.graph)
    old_weights, new_weights = weights_of(unsimplified), weights_of(simplified)
    readers = _readers(unsimplified.proto.graph), _readers(simplified.proto.graph)
    for node in simplified.proto.graph.node:
        if node.op_type not in _LINEAR or not is_onnx(node.domain) or len(node.input) < 2:
            continue
        old = old_nodes.get(node.output[0])
        if old is None or not _same_node(old, node):
            continue
        one, other = old_weights.get(old.input[1]), new_weights.get(node.input[1])
        if one is None or other is None or not _comparable(one, other):
            continue
        same = _same(unsimplified, one, simplified, other)
        if not same:
            arrays = unsimplified.weights.array(one), simplified.weights.array(other)
            same = np.array_equal(*arrays)
            count = 0 if same else _unscaled(*arrays, _group(node))
            if count:
                name = node.input[1]
                yield (
                    name,
                    f"{count_of(count, 'element')} of {name!r}, the weight of {node.op_type} {node.output[0]!r}, are not those"
                    " before simplification, nor these by a factor of each channel",
                )
        behind = [found[node.output[0]] for found in readers]
        if same and list(node.input) == list(old.input) and len(node.input) > 2 and behind[0] == behind[1]:
            name = node.input[2]
            one, other = old_weights.get(name), new_weights.get(name)
            if one is not None and other is not None and list(one.dims) == list(other.dims):
                difference = bit_difference(
                    name, unsimplified.weights.array(one), simplified.weights.array(other)
                )
                if difference:
                    yield name, f"the bias {difference}"


def _readers(graph: onnx.GraphProto) -> dict[str, list[tuple[str, str]]]:
    """Return by value the nodes that read it: operator and first output."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            found[name].append((node.op_type, node.output[0]))
    return found


def _same_node(one: onnx.NodeProto, other: onnx.NodeProto) -> bool:
    def attributes(node: onnx.NodeProto) -> dict[str, bytes]:
        return {item.name: item.SerializeToString(deterministic=True) for item in node.attribute}

    same = one.op_type == other.op_type and one.input[0] == other.input[0]
    return same and attributes(one) == attributes(other)


def _comparable(one: TensorProto, other: TensorProto) -> bool:
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
    same = one.data_type == other.data_type and list(one.dims) == list(other.dims)
    return same and one.data_type in floats and len(one.dims) >= 2 and 0 not in one.dims


def _same(unsimplified: Model, one: TensorProto, simplified: Model, other: TensorProto) -> bool:
    if one.data_location == other.data_location == TensorProto.EXTERNAL:
        return same_bytes(unsimplified.weights.payload(one), simplified.weights.payload(other))
    return False


def _group(node: onnx.NodeProto) -> int:
    if node.op_type not in ("Conv", "ConvTranspose"):
        return 1
    found = (item.i for item in node.attribute if item.name == "group" and item.type == AttributeProto.INT)
    return next(found, 1)


def _unscaled(unsimplified: Array, simplified: Array, group: int) -> int:
    """Return how many elements of `simplified` are not those of `unsimplified` by a factor of each row, each column, or both.

    Factors are found by least squares, in each group of channels: kernels with few digits hardly count.
    """
    if unsimplified.shape[0] % group:
        return 0
    shape = (group, unsimplified.shape[0] // group, unsimplified.shape[1], -1)
    return sum(
        _unscaled_in_group(one, other)
        for one, other in zip(unsimplified.reshape(shape), simplified.reshape(shape), strict=True)
    )


def _unscaled_in_group(unsimplified: Array, simplified: Array) -> int:
    energy = np.einsum("rck,rck->rc", unsimplified, unsimplified, dtype=np.float64)
    product = np.einsum("rck,rck->rc", unsimplified, simplified, dtype=np.float64)
    least = unsimplified.size
    with np.errstate(all="ignore"):
        for factors in _factors(energy, product):
            expected = np.nan_to_num(factors)[:, :, None].astype(unsimplified.dtype) * unsimplified
            allowed = _ULPS * np.finfo(unsimplified.dtype).eps * np.abs(expected) + _TINY
            least = min(least, int(np.count_nonzero(np.abs(simplified - expected) > allowed)))
            if not least:
                break
    return least


def _factors(energy: Array, product: Array) -> Iterator[Array]:
    """Yield what each kernel may be multiplied by: factors of rows, of columns, and the products of both."""
    rows, columns = energy.shape
    row = product.sum(1) / energy.sum(1)
    yield np.repeat(row[:, None], columns, 1)
    column = product.sum(0) / energy.sum(0)
    yield np.repeat(column[None], rows, 0)
    largest = np.argmax(np.abs(product).sum(1))
    column = np.nan_to_num(product[largest] / energy[largest])
    for _ in range(_STEPS):
        row = np.nan_to_num(product @ column / (energy @ column**2))
        column = np.nan_to_num(row @ product / (row**2 @ energy))
    yield np.outer(row, column)
