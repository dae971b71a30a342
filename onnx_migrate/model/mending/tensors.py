"""Repairs tensors that hold their data in more than one way, and the initializers of the main graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import values_read
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.validity.structure import Length
from onnx_migrate.model.validity.tensors import FIELD_OF_TYPE, Array, flat_places, tensor_fault

__all__ = ["Mending", "mend_initializers", "mend_sparse", "mend_tensor"]

_UNREAD = frozenset(("bad-dims", "data-size", "wrong-data-field", "string-in-raw-data", "two-data-forms"))
"""Codes of faults that ONNX Runtime accepts in an initializer that nothing reads."""


class Mending(NamedTuple):
    """One repair: the name of the repaired thing, and a sentence.

    `unread` says that no runtime loads the model without the repair. A proof can then only start from the repaired
    model.
    """

    subject: str
    reason: str
    unread: bool = False


def mend_tensor(tensor: TensorProto, *, forms: bool = True) -> str:
    """Leave a tensor only the data that ONNX Runtime reads, in place, and return the defect; "" if there was none.

    ONNX Runtime reads external data first, then raw_data, then the field of the element type, and ignores `segment`.
    Without `forms`, this function repairs only `segment`.
    """
    defects = []
    if tensor.HasField("segment"):
        tensor.ClearField("segment")
        defects.append("says that it is a segment, which is passed over")
    data_fields = [name for name in DATA_FIELDS if len(getattr(tensor, name))]
    if tensor.data_location == TensorProto.EXTERNAL:
        wanted, limit = "external data", 0
    else:
        wanted, limit = "raw_data" if tensor.raw_data else FIELD_OF_TYPE.get(tensor.data_type, ""), 1
    if forms and len(data_fields) > limit and (wanted in data_fields or not limit):
        for name in data_fields:
            if name != wanted:
                tensor.ClearField(name)
        defects.append(f"holds data in {', '.join(data_fields)}: {wanted} is read")
    return " and ".join(defects)


def mend_initializers(
    graph: onnx.GraphProto, length: Length, array: Array, ir_version: int
) -> Iterator[Mending]:
    """Repair the initializers of the main graph: their data, repeated names, and initializers that nothing reads."""
    for tensor in graph.initializer:
        defect = mend_tensor(tensor)
        if defect:
            yield Mending(tensor.name, f"initializer {tensor.name!r} {defect}")
    for sparse in graph.sparse_initializer:
        if mend_sparse(sparse, array):
            name = sparse.values.name
            yield Mending(name, f"sparse initializer {name!r} has an index twice: the last value holds")
    yield from _repeated(graph)
    yield from _unread(graph, length, ir_version)


def _repeated(graph: onnx.GraphProto) -> Iterator[Mending]:
    """Keep the last of the initializers of one name, where their types and shapes are equal."""
    counts = Counter(tensor.name for tensor in graph.initializer)
    for name in [name for name, count in counts.items() if count > 1]:
        same = [tensor for tensor in graph.initializer if tensor.name == name]
        # With different types it is not clear which one the readers need.
        if len({(tensor.data_type, tuple(tensor.dims)) for tensor in same}) > 1:
            continue
        remaining = [tensor for tensor in graph.initializer if tensor.name != name or tensor is same[-1]]
        _replace(graph, remaining)
        yield Mending(name, f"{count_of(len(same), 'initializer')} have the name {name!r}: the last holds")


def _unread(graph: onnx.GraphProto, length: Length, ir_version: int) -> Iterator[Mending]:
    """Remove initializers that are no tensors and that nothing reads."""
    faults = {}
    for tensor in graph.initializer:
        external = tensor.data_location == TensorProto.EXTERNAL
        # Only external data has a length outside the structure.
        problem = tensor_fault(tensor, length(tensor) if external else None)
        if problem and problem.code in _UNREAD:
            faults[tensor.name] = problem.reason
    if not faults:
        return
    # A broken initializer that nothing reads has no effect.
    unread = faults.keys() - values_read(graph, ir_version)
    # An initializer may also be listed as an input.
    for value in [value for value in graph.input if value.name in unread]:
        graph.input.remove(value)
    _replace(graph, [tensor for tensor in graph.initializer if tensor.name not in unread])
    for name in sorted(unread):
        yield Mending(
            name, f"initializer {name!r} was removed, as nothing reads it and it is no tensor: {faults[name]}"
        )


def _replace(graph: onnx.GraphProto, kept: list[TensorProto]) -> None:
    copies = onnx.GraphProto()
    copies.initializer.extend(kept)
    del graph.initializer[:]
    graph.initializer.extend(copies.initializer)


def mend_sparse(sparse: onnx.SparseTensorProto, array: Array) -> bool:
    """Keep the last value of each index of a sparse tensor, in place; return whether an index had more than one."""
    # A tensor whose data is not valid cannot be compared.
    if tensor_fault(sparse.values) or tensor_fault(sparse.indices):
        return False
    flat_indices = flat_places(sparse, array)
    values, indices = array(sparse.values), array(sparse.indices)
    if flat_indices is None or values is None or indices is None or len(values) != len(flat_indices):
        return False
    # Reversed, because `unique` returns the first of equal indices and the last one counts.
    _, last = np.unique(flat_indices[::-1], return_index=True)
    if len(last) == len(flat_indices):
        return False
    kept_rows = np.sort(len(flat_indices) - 1 - last)
    for tensor, data in ((sparse.values, values), (sparse.indices, indices)):
        tensor.CopyFrom(numpy_helper.from_array(data[kept_rows], tensor.name))
    return True
