"""Renames values that share a name: one in a body, another in a body around it.

A branch or loop may have an initializer with the name of an outer one. The standard means the inner one, but ONNX Runtime 1.32
gives the node the outer one. With a name for each value, all runtimes read the right one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import chain

import onnx
import onnx.inliner

from onnx_migrate.facts.typed_graph import Frame, Value, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import initializer_names, outputs_of_each, subgraphs
from onnx_migrate.model.names import Names
from onnx_migrate.verify.evaluators.interface import Runnable

__all__ = ["OWN_NAMES_NOTE", "with_own_names"]

OWN_NAMES_NOTE = (
    "inner values with the name of an outer one got names of their own for the comparison. ONNX Runtime gives some nodes the"
    " outer value, and the standard means the inner one"
)


def with_own_names(runnable: Runnable) -> Runnable:
    """Return the model with a new name for each inner value that has the name of an outer one; most models have none."""
    model = runnable.model
    functions = model.functions
    if not _shadows(model.graph.node, _defined(model.graph)) and not any(
        # Most models have no such names, and stay unchanged.
        _shadows(function.node, {*function.input, *_made(function.node)})
        for function in functions
    ):
        return runnable
    model = runnable.proto()
    if model.functions:
        # The names of a function's values are its own.
        model = onnx.inliner.inline_local_functions(model)
    frames, names = frames_of(model, TypeTable(model)), Names(model)
    renamed: dict[Value, str] = {}
    for frame in frames:
        for name, value in frame.values.items() if frame.parent is not None else ():
            # Only a name that hides an outer value is a problem.
            if frame.parent is not None and frame.parent.find(name) is not None:
                renamed[value] = names.fresh(name)
    for frame in frames:
        _rename(frame, renamed)
    return runnable.with_structure(model)


def _defined(body: onnx.GraphProto) -> set[str]:
    """Return the names of the values that a body defines itself."""
    return {value.name for value in body.input} | initializer_names(body) | _made(body.node)


def _made(nodes: Sequence[onnx.NodeProto]) -> set[str]:
    return {name for name in chain.from_iterable(outputs_of_each(nodes)) if name}


def _shadows(nodes: Iterable[onnx.NodeProto], outer: Set[str]) -> bool:
    """Return whether a body inside of nodes defines a name that is defined around it."""
    for node in nodes:
        for _, _, body in subgraphs(node):
            own = _defined(body)
            if own & outer or _shadows(body.node, own | outer):
                return True
    return False


def _rename(frame: Frame, renamed: dict[Value, str]) -> None:
    """Write the new names of values in a body's definitions, reads and declarations."""
    body = frame.body
    sparse = [tensor.values for tensor in body.sparse_initializer]
    defined: list[onnx.ValueInfoProto | onnx.TensorProto] = [
        *body.input,
        *body.value_info,
        *body.initializer,
        *sparse,
    ]
    for named in defined:
        value = frame.values.get(named.name)
        named.name = renamed.get(value, named.name) if value is not None else named.name
    for declared in body.output:
        value = frame.find(declared.name)
        declared.name = renamed.get(value, declared.name) if value is not None else declared.name
    for step in frame.steps:
        for names, values in ((step.node.input, step.inputs), (step.node.output, step.outputs)):
            for index, value in enumerate(values):
                if value is not None and value in renamed:
                    names[index] = renamed[value]
