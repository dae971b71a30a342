"""The complete list of defects that onnx.checker refuses and runtimes accept. onnx-migrate migrates such a model, with a note.

Measured with onnx 1.23 and ONNX Runtime 1.31, which loads and runs a model with each of these defects.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import function_nodes, initializer_names
from onnx_migrate.model.validity.tensors import Array, array_of, unordered
from onnx_migrate.standard.ir_versions import IrFeature

__all__ = ["tolerated"]


def tolerated(proto: onnx.ModelProto, array: Array = array_of) -> Iterator[tuple[str, str]]:
    """Yield the name of the defective thing, and the defect that onnx.checker refuses, one for each kind in a model.

    `array` reads the indices of sparse tensors.
    """
    graph = proto.graph
    if not graph.name:
        yield "graph", "the graph has no name"
    if any(not value.name for value in graph.input):
        yield "graph", "an input has no name"
    untyped = [value.name for value in graph.output if not value.type.WhichOneof("value")]
    if untyped:
        yield untyped[0], f"{_outputs(untyped)} declared without a type"
    unshaped = [
        f"{role} {value.name!r}"
        for role, values in (("input", graph.input), ("output", graph.output))
        for value in values
        if value.type.WhichOneof("value") == "tensor_type" and not value.type.tensor_type.HasField("shape")
    ]
    if unshaped:
        yield (
            unshaped[0],
            f"{unshaped[0]}{_more(unshaped)} {'are' if len(unshaped) > 1 else 'is'} declared without a shape",
        )
    for sparse in graph.sparse_initializer:
        if unordered(sparse, array):
            yield (
                sparse.values.name,
                f"the indices of sparse initializer {sparse.values.name!r} are not in ascending order",
            )
            break
    if any(not function.name for function in proto.functions):
        yield "functions", "a local function has no name, so no node can call it"
    references = (
        attribute
        for function in proto.functions
        for node in function_nodes(function)
        for attribute in node.attribute
        if attribute.ref_attr_name and not attribute.type
    )
    untyped_reference = next(references, None)
    if untyped_reference is not None:
        name = untyped_reference.name
        yield (
            name,
            f"attribute {name!r} in a local function stands for one of its attributes, and has no type",
        )
    # From IR version 4 on, initializers need not be inputs.
    if proto.ir_version < IrFeature.UNLISTED.since:
        unlisted = sorted(initializer_names(graph) - {value.name for value in graph.input})
        if unlisted:
            yield (
                unlisted[0],
                f"the inputs lack {count_of(len(unlisted), 'initializer')} which IR version {proto.ir_version} requires there",
            )


def _outputs(names: list[str]) -> str:
    return f"output {names[0]!r}{_more(names)} {'are' if len(names) > 1 else 'is'}"


def _more(names: list[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""
