"""onnx's shape inference of a whole model with data propagation, at a cost that is linear in the size of the graph.

It runs in a process of its own, within limits: on some models it aborts the process, or uses all memory (see `LONG`). A
migration runs it a dozen times, on models that hardly differ. If one run exceeds the limits, the next would too. So
this module remembers each inference that it gave up, also for the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import TensorProto, shape_inference

from onnx_migrate import process
from onnx_migrate.model.graphs import initializer_names, nested_bodies, nested_nodes
from onnx_migrate.model.interface import list_initializers, listed_initializers
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.validity.equations import equation_faults
from onnx_migrate.model.weights import INLINE_LIMIT, mark_external
from onnx_migrate.standard.opsets import owners
from onnx_migrate.standard.schema import schema_generation

__all__ = [
    "GivenUp",
    "InferenceError",
    "cannot_infer",
    "cannot_propagate",
    "give_up",
    "infer_shapes",
    "remembering",
    "skeleton",
    "without_fragile_ops",
]

LONG = 1 << 16
"""The most elements of a vector that can be a shape; data propagation need not follow the values of longer ones."""

_LENGTH_PREFIX = "a vector of "
"""The prefix of the symbols that replace the lengths of long vectors; the length follows it."""

_SECONDS, _SECONDS_PER_BYTE = 20.0, 1e-5
"""The time that an inference may take. It takes 0.1 µs for each byte of a model of many small nodes."""

_MEMORY, _MEMORY_PER_BYTE = 1 << 29, 64
"""The memory that an inference may take. It takes 10 bytes for each byte of a model of many small nodes."""

FRAGILE = frozenset({"DictVectorizer", "LabelEncoder"})
"""Operators of ai.onnx.ml whose inference functions crash the process if the input's type is unknown (onnx 1.23)."""

_DEQUANTIZES = tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 17)
"""Whether the same holds for DequantizeLinear-19 and newer, as in onnx 1.16."""


class InferenceError(Exception):
    """onnx's inference failed, as for a domain that is not imported; the message is onnx's, on one line."""


def skeleton(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which every tensor of more than INLINE_LIMIT bytes of raw data has its type and shape alone.

    The structure of a `Model` holds no large payloads except those that passes have added, which are removed here.
    Such a tensor refers to a file that does not exist.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in tensors(copy):
        if tensor.data_location == TensorProto.EXTERNAL or len(tensor.raw_data) <= INLINE_LIMIT:
            continue
        tensor.ClearField("raw_data")
        mark_external(tensor, "skeleton", 0, 0)
    return copy


def infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a skeleton (see `skeleton`) with inferred types and shapes.

    Raises InferenceError, also if inference exceeds its limits; the report then says so (see `remembering`).

    Data propagation follows every vector as if it were a shape and allocates a message for each element
    (DataPropagationContextImpl in onnx/shape_inference/implementation.h). A vector of 10 million numbers needs half a
    gigabyte at each node that reads it. So inputs with symbolic lengths replace all initializers and inputs of more
    than LONG elements. After the inference the lengths replace the symbols.

    The outputs of FRAGILE operators stay unknown, unless they read an input of the model.

    A model of IR version 3 or less may have initializers that its inputs do not list. The inference does not see them,
    and takes a Slice for one with steps of 1. So the copy for the inference lists them.
    """
    hidden = [tensor for tensor in proto.graph.initializer if len(tensor.dims) == 1 and tensor.dims[0] > LONG]
    long = bool(hidden) or any(map(_is_long, proto.graph.input))
    input_model = without_fragile_ops(_with_symbolic_lengths(proto, hidden) if long else proto)
    inferred = _inferred(_with_listed_initializers(input_model).SerializeToString())
    if len(inferred.graph.input) > len(input_model.graph.input):
        # Initializers that the copy lists as inputs are no inputs of the model.
        del inferred.graph.input[len(input_model.graph.input) :]
    if long:
        # The shortened inputs and initializers go back to their real lengths.
        _restore_lengths(inferred.graph)
        del inferred.graph.input[:]
        # The caller's model must not show the symbolic lengths.
        inferred.graph.input.extend(proto.graph.input)
        inferred.graph.initializer.extend(hidden)
    return inferred


def _inferred(model: bytes) -> onnx.ModelProto:
    """Infer in another process, and without data propagation if that exceeds the limits. Raises InferenceError."""
    # onnx's inference does not end on some equations.
    _refuse_endless_equations(model)
    seconds, memory = _SECONDS + len(model) * _SECONDS_PER_BYTE, _MEMORY + len(model) * _MEMORY_PER_BYTE
    reason = cannot_infer()
    for propagate in (True, False):
        if reason or (propagate and cannot_propagate()):
            continue
        ending = process.call_in_fork(
            f"{__name__}:_infer", model, propagate, seconds=seconds, memory=memory, state=schema_generation()
        )
        if isinstance(ending, process.Returned):
            return onnx.ModelProto.FromString(ending.value)
        if isinstance(ending, process.Raised):
            reason = " ".join(ending.message.split())
        else:
            reason = give_up(ending, propagate=propagate)
            if propagate:
                reason = ""
    raise InferenceError(reason)


def _refuse_endless_equations(model: bytes) -> None:
    """Raise InferenceError for an Einsum whose equation would keep onnx's inference from ending.

    The search for the name in the bytes costs almost nothing.
    """
    if b"Einsum" in model:
        for fault in equation_faults(onnx.ModelProto.FromString(model)):
            raise InferenceError(f"{fault.where}: {fault.reason}")


def _infer(model: bytes, propagate: bool) -> bytes:
    """The function that runs in the other process.

    It does the same as `onnx.shape_inference.infer_shapes`, which also parses the result.
    """
    native: Any = shape_inference
    inferred: bytes = native.C.infer_shapes(model, False, False, propagate)
    return inferred


def _with_listed_initializers(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose inputs list its initializers behind the others, if its IR version requires that."""
    if proto.ir_version >= 4 or len(listed_initializers(proto.graph)) == len(initializer_names(proto.graph)):
        return proto
    listed = onnx.ModelProto()
    listed.CopyFrom(proto)
    list_initializers(listed.graph)
    return listed


def _is_long(value: onnx.ValueInfoProto) -> bool:
    dims = value.type.tensor_type.shape.dim
    return len(dims) == 1 and dims[0].dim_value > LONG


def _with_symbolic_lengths(proto: onnx.ModelProto, hidden: list[onnx.TensorProto]) -> onnx.ModelProto:
    names = {tensor.name for tensor in hidden}
    shortened = onnx.ModelProto()
    shortened.CopyFrom(proto)
    tensors = [tensor for tensor in shortened.graph.initializer if tensor.name not in names]
    inputs = [value for value in shortened.graph.input if value.name not in names]
    del shortened.graph.initializer[:], shortened.graph.input[:]
    shortened.graph.initializer.extend(tensors)
    shortened.graph.input.extend(inputs)
    # The length itself is enough for shapes.
    for value in filter(_is_long, shortened.graph.input):
        dim = value.type.tensor_type.shape.dim[0]
        dim.dim_param = f"{_LENGTH_PREFIX}{dim.dim_value}"
    for tensor in hidden:
        # The symbol's name holds the length, which replaces it after the inference.
        name = f"{_LENGTH_PREFIX}{tensor.dims[0]}"
        shortened.graph.input.append(
            onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, [name])
        )
    return shortened


def _restore_lengths(graph: onnx.GraphProto) -> None:
    """Replace the symbols of lengths by the lengths, in place."""
    for _, body in nested_bodies(graph):
        for value in (*body.value_info, *body.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param.startswith(_LENGTH_PREFIX):
                    dim.dim_value = int(dim.dim_param.removeprefix(_LENGTH_PREFIX))


def without_fragile_ops(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that onnx's inference does not crash on: itself, or a copy without FRAGILE operators.

    In the copy, FRAGILE nodes get a name that onnx does not know, so that inference skips them. They keep their name if
    all their inputs are typed inputs of the model. With onnx 1.16, DequantizeLinear nodes that depend on a node of
    another domain get such a name too.
    """
    domains = {entry.domain for owner in owners(proto) for entry in owner.opset_import}
    if "ai.onnx.ml" not in domains and not (_DEQUANTIZES and domains - {"", "ai.onnx"}):
        return proto
    renamed = onnx.ModelProto()
    renamed.CopyFrom(proto)
    _rename(
        renamed.graph.node, {value.name for value in renamed.graph.input if value.type.WhichOneof("value")}
    )
    for function in renamed.functions:
        # Types of a function's inputs are not known.
        _rename(function.node, set())
    return renamed


def _rename(nodes: Sequence[onnx.NodeProto], typed: Set[str]) -> None:
    unknown: set[str] = set()
    for node in nested_nodes(nodes):
        of_others = node.domain not in ("", "ai.onnx", "ai.onnx.ml")
        fragile = node.op_type in FRAGILE and node.domain == "ai.onnx.ml" and not set(node.input) <= typed
        if fragile or of_others or unknown.intersection(node.input[:1]):
            unknown.update(filter(None, node.output))
            fragile |= _DEQUANTIZES and node.op_type == "DequantizeLinear"
        if fragile:
            node.op_type += "_of_unknown_type"


@dataclass
class GivenUp:
    """The inferences that onnx-migrate gave up within a block, as texts for the report."""

    reasons: list[str] = field(default_factory=list)
    without_propagation: bool = False
    without_inference: str = ""


_given_up: ContextVar[GivenUp | None] = ContextVar("given_up", default=None)


@contextmanager
def remembering() -> Iterator[GivenUp]:
    """Record each inference that onnx-migrate gives up within the block; an inner block adds to the outer one's record."""
    # An inner block reports into the outer record, so that no abandoned inference is lost.
    outer = _given_up.get()
    if outer is not None:
        yield outer
        return
    record = GivenUp()
    token = _given_up.set(record)
    try:
        yield record
    finally:
        _given_up.reset(token)


def _so_far() -> GivenUp:
    """Return the record of this block; outside any block, a record that nobody reads."""
    return _given_up.get() or GivenUp()


def cannot_propagate() -> bool:
    """Return whether inference with data propagation exceeded its limits in this block."""
    return _so_far().without_propagation


def cannot_infer() -> str:
    """Return why inference exceeded its limits in this block; "" if it did not."""
    return _so_far().without_inference


def give_up(ending: process.Ending, *, propagate: bool) -> str:
    """Record how an inference ended that did not return, with or without data propagation; return the record as a text."""
    task = "shape inference with data propagation" if propagate else "shape inference"
    reason = f"onnx's {task} did not finish: {ending}"
    record = _so_far()
    record.reasons.append(reason)
    if propagate:
        record.without_propagation = True
    else:
        record.without_inference = reason
    return reason
