"""Compares the weights of two models as data, without a run, because a wrong weight may show in no output.

A wrong weight hides in outputs if a Relu is zero on all inputs, or if many other numbers round. A model that must compute the
same bits has no reason for other weights. A simplifier keeps a weight unchanged, or multiplies it by a number for each output or
input channel. The number comes from a BatchNormalization or Mul beside a convolution, for example. A single moved element, or
bytes at a wrong position, fit neither case.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.files.equality import same_bytes
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import bodies, names_read, producers
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import numbers
from onnx_migrate.model.weights import MEMORY, Weights, location_of
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.compare.bits import bit_difference
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["other_folded_weights", "other_weights"]


_NOT_WEIGHTS = frozenset(
    {TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.STRING, TensorProto.UNDEFINED}
)
"""Types of lengths, axes, indices and masks, which passes rewrite under their own names."""

_LINEAR = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Operators that a simplifier folds with a factor for each channel, or might fold."""

_ULPS = 64
"""Units in the last place that a folded element may differ by: a fold rounds two or three times."""

_STEPS = 3
"""How often factors of rows and columns are found from each other; the first ones are almost right."""

_TINY = 1e-30
"""Numbers near the smallest ones have fewer digits."""


@dataclass(frozen=True)
class _Weight:
    """A tensor of a model, and the object that finds its data."""

    tensor: TensorProto
    weights: Weights

    @property
    def kind(self) -> tuple[int, tuple[int, ...]]:
        """Return element type and dims."""
        return self.tensor.data_type, tuple(self.tensor.dims)

    @property
    def array(self) -> Array:
        """The data. Raises LoadError."""
        return self.weights.array(self.tensor)

    def is_same(self, other: _Weight) -> bool:
        """Whether both have the same bytes, as far as that is known without arrays. Data in the same place are not read."""
        tensor, two = self.tensor, other.tensor
        if tensor.data_location != two.data_location or tensor.data_location != TensorProto.EXTERNAL:
            return bool(tensor == two)
        same_folder = self.weights.folder == other.weights.folder
        # Equal locations mean the same data only in the same files.
        if same_folder and self.weights.source == other.weights.source:
            in_memory = location_of(tensor).startswith(MEMORY)
            if not in_memory and list(tensor.external_data) == list(two.external_data):
                return True
        return same_bytes(self.weights.payload(tensor), other.weights.payload(two))


def other_weights(original: Model, result: Model) -> Iterator[tuple[str, str]]:
    """Yield the name of each weight that has other data in `result` than in `original`, and the difference.

    Weights are initializers and Constants that some node reads, in both models under the same name, element type and dims. The
    function skips a name that a model has in several bodies. It does not read data that both models have in the same place.
    Raises LoadError.
    """
    theirs = _weights_of(result)
    for name, weight in _weights_of(original).items():
        other = theirs.get(name)
        # Weights of other types or dims are another value.
        if other is None or weight.kind != other.kind or weight.is_same(other):
            continue
        if difference := bit_difference(name, numbers(weight.array), numbers(other.array)):
            yield name, difference


def _weights_of(model: Model) -> dict[str, _Weight]:
    """Return the initializers and tensors of Constants that some node reads, those that only one body has by the name."""
    stored_tensors: list[tuple[str, TensorProto]] = []
    read: set[str] = set()
    for located in bodies(model.proto):
        stored_tensors += [(tensor.name, tensor) for tensor in getattr(located.body, "initializer", ())]
        for node in located.body.node:
            read.update(names_read(node))
            if node.op_type == "Constant" and is_onnx(node.domain):
                values = (
                    attribute.t for attribute in node.attribute if attribute.type == AttributeProto.TENSOR
                )
                stored_tensors += [(node.output[0], value) for value in values]
    # A name in two bodies may stand for two weights.
    count = Counter(name for name, _ in stored_tensors)
    return {
        name: _Weight(tensor, model.weights)
        for name, tensor in stored_tensors
        if count[name] == 1 and name in read and tensor.data_type not in _NOT_WEIGHTS
    }


def other_folded_weights(unsimplified: Model, simplified: Model) -> Iterator[str]:
    """Yield a sentence for each weight of `simplified` that is not the earlier weight scaled by channels.

    It compares the float32 and float64 weights of nodes that both models have, with the same operator, attributes, first input
    and output. If a weight is the same, and the same nodes read the output, it also compares a bias of the same name. Raises
    LoadError.
    """
    old_nodes = producers(unsimplified.proto.graph)
    old_weights, new_weights = _weights_of(unsimplified), _weights_of(simplified)
    readers = _readers(unsimplified.proto.graph), _readers(simplified.proto.graph)
    for node in simplified.proto.graph.node:
        if node.op_type not in _LINEAR or not is_onnx(node.domain) or len(node.input) < 2:
            continue
        old = old_nodes.get(node.output[0])
        # Only the weight may differ.
        if old is None or not _same_node(old, node):
            continue
        old_weight, other = old_weights.get(old.input[1]), new_weights.get(node.input[1])
        if old_weight is None or other is None or not _comparable(old_weight, other):
            continue
        same = old_weight.is_same(other)
        if not same:
            arrays = old_weight.array, other.array
            same = np.array_equal(*arrays)
            if count := 0 if same else _unscaled(*arrays, _group(node)):
                yield (
                    f"{count_of(count, 'element')} of {node.input[1]!r}, the weight of {node.op_type} {node.output[0]!r},"
                    " are not those before simplification, nor these by a factor of each channel"
                )
        behind = [readers_by_value[node.output[0]] for readers_by_value in readers]
        if same and list(node.input) == list(old.input) and len(node.input) > 2 and behind[0] == behind[1]:
            name = node.input[2]
            old_weight, other = old_weights.get(name), new_weights.get(name)
            if old_weight is None or other is None or old_weight.kind[1] != other.kind[1]:
                continue
            if difference := bit_difference(name, old_weight.array, other.array):
                yield f"the bias {difference}"


def _readers(graph: onnx.GraphProto) -> dict[str, list[tuple[str, str]]]:
    """Return by value the nodes that read it: operator and first output."""
    readers_by_value: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers_by_value[name].append((node.op_type, node.output[0]))
    return readers_by_value


def _same_node(one: onnx.NodeProto, other: onnx.NodeProto) -> bool:
    def attributes(node: onnx.NodeProto) -> dict[str, bytes]:
        return {
            attribute.name: attribute.SerializeToString(deterministic=True) for attribute in node.attribute
        }

    same = one.op_type == other.op_type and one.input[0] == other.input[0]
    return same and attributes(one) == attributes(other)


def _comparable(one: _Weight, other: _Weight) -> bool:
    element, dims = one.kind
    floats = (TensorProto.FLOAT, TensorProto.DOUBLE)
    return one.kind == other.kind and element in floats and len(dims) >= 2 and 0 not in dims


def _group(node: onnx.NodeProto) -> int:
    if node.op_type not in ("Conv", "ConvTranspose"):
        return 1
    groups = (
        attribute.i
        for attribute in node.attribute
        if attribute.name == "group" and attribute.type == AttributeProto.INT
    )
    return next(groups, 1)


def _unscaled(unsimplified: Array, simplified: Array, group: int) -> int:
    """Return how many elements of `simplified` are not those of `unsimplified` by a factor of each row, each column, or both.

    Factors are found by least squares, in each group of channels: kernels with few digits hardly count.
    """
    if unsimplified.shape[0] % group:
        return 0
    # Each group has channels of its own.
    shape = (group, unsimplified.shape[0] // group, unsimplified.shape[1], -1)
    return sum(
        _unscaled_in_group(old_group, other)
        for old_group, other in zip(unsimplified.reshape(shape), simplified.reshape(shape), strict=True)
    )


def _unscaled_in_group(unsimplified: Array, simplified: Array) -> int:
    energy = np.einsum("rck,rck->rc", unsimplified, unsimplified, dtype=np.float64)
    product = np.einsum("rck,rck->rc", unsimplified, simplified, dtype=np.float64)
    least = unsimplified.size
    with np.errstate(all="ignore"):
        # One of the factorings explains a fold.
        for factors in _factors(energy, product):
            expected = np.nan_to_num(factors)[:, :, None].astype(unsimplified.dtype) * unsimplified
            allowed = _ULPS * np.finfo(unsimplified.dtype).eps * np.abs(expected) + _TINY
            least = min(least, int(np.count_nonzero(np.abs(simplified - expected) > allowed)))
            if not least:
                break
    return least


def _factors(energy: Array, product: Array) -> Iterator[Array]:
    """Yield possible factors of each kernel: factors of rows, of columns, and the products of both."""
    rows, columns = energy.shape
    row = product.sum(1) / energy.sum(1)
    yield np.repeat(row[:, None], columns, 1)
    column = product.sum(0) / energy.sum(0)
    yield np.repeat(column[None], rows, 0)
    # The row with the largest products gives the best start.
    largest = np.argmax(np.abs(product).sum(1))
    column = np.nan_to_num(product[largest] / energy[largest])
    # Each round of least squares brings both factors closer.
    for _ in range(_STEPS):
        row = np.nan_to_num(product @ column / (energy @ column**2))
        column = np.nan_to_num(row @ product / (row**2 @ energy))
    yield np.outer(row, column)
