"""Compares the weights of two models as data, without a run: a wrong one may show in no output.

A wrong weight hides where a Relu is zero on all inputs, or in the rounding of many others. Where a model is to compute
the same bits, its weights have no reason to differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onnx import AttributeProto, TensorProto

from onnx_migrate.files.equality import same_bytes
from onnx_migrate.model.graphs import bodies, names_read
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import numbers
from onnx_migrate.model.weights import MEMORY, location_of
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.compare.comparison import bit_difference

__all__ = ["other_weights", "weights_of"]

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
