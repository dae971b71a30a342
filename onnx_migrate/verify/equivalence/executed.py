"""Finds the branches of If and bodies of Loop and Scan that no input ran, so that the runs tell nothing about their nodes.

It runs a copy of the model in which each body writes a flag that it ran. The flags of a body become further outputs of its node.
The other branch of an If writes false for them. A Loop or Scan carries from turn to turn whether one was set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.advice import untried
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import all_nodes, fed_inputs, names_read, node_label, subgraphs
from onnx_migrate.model.names import Names
from onnx_migrate.process import mark
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import CONTROL_FLOW, is_onnx
from onnx_migrate.verify.equivalence.stages import BRANCHES_STAGE
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, open_model
from onnx_migrate.verify.model_traits import needed_nodes
from onnx_migrate.verify.run_count import run_each

__all__ = ["not_executed"]


_MOST = 5
"""Most bodies that did not run, and most nodes of one body, that a message names."""

_GIVE = untried("give inputs that run it with --input-data")

_NOT_KNOWN = "which branches and bodies of loops were run is not known"

_BODIES = {"then_branch": "then branch", "else_branch": "else branch", "body": "body"}


@dataclass(frozen=True, eq=False)
class _Body:
    """A branch or body as notes call it, and the one around it, None in the main graph."""

    what: str
    around: _Body | None


_Flags = list[tuple[str, _Body]]
"""The values that say whether bodies ran."""


def not_executed(
    original: Runnable, inputs: Sequence[Mapping[str, Any]], configuration: str, ended: str = ""
) -> Iterator[str]:
    """Yield notes that name the branches and bodies that no input runs, with nodes in them, but not the bodies inside of those.

    `ended` says how an earlier try ended its process; then the function does not try again.
    """
    if not any(map(_has_bodies, all_nodes(original.model))):
        return
    if ended:
        yield f"{_NOT_KNOWN}: {ended}"
        return
    mark(BRANCHES_STAGE)
    model = original.proto()
    if any(_has_bodies(node) for function in model.functions for node in function.node):
        # The flags must pass through to the outputs of the main graph.
        model = onnx.inliner.inline_local_functions(model)
    try:
        flags = _write_flags(model)
        runs = list(run_each(open_model(original.with_structure(model), configuration), inputs))
    except (EvaluationError, MemoryError) as error:
        yield f"{_NOT_KNOWN}: {error}"
        return
    # One run is enough to execute a body.
    ran = {body for value, body in flags if any(np.any(run[value]) for run in runs)}
    # A body inside one that does not run is no news.
    idle = [body for _, body in flags if body not in ran and (body.around is None or body.around in ran)]
    for body in idle[:_MOST]:
        yield f"no input runs {body.what}, so its results were not compared; {_GIVE}"
    if idle[_MOST:]:
        yield f"no input runs {len(idle) - _MOST} more branches or bodies of loops"


def _has_bodies(node: onnx.NodeProto) -> bool:
    return node.op_type in CONTROL_FLOW and is_onnx(node.domain)


def _write_flags(model: onnx.ModelProto) -> _Flags:
    """Write a flag into each body of a model; leave the flags as its only outputs, with the nodes that compute them."""
    graph, opset = model.graph, onnx_opset(model.opset_import, ir_version=model.ir_version) or 0
    flags = _Writer(Names(model), opset).write(graph, None)
    nodes = needed_nodes(graph.node, [value for value, _ in flags])
    read = {name for node in nodes for name in names_read(node)} | {value.name for value in fed_inputs(graph)}
    del graph.node[:], graph.output[:]
    graph.node.extend(nodes)
    graph.output.extend(_declared(value) for value, _ in flags)
    for values in (graph.initializer, graph.input):
        # From the end, so that a deletion moves no index that is still to come.
        for index in reversed(range(len(values))):
            if values[index].name not in read:
                del values[index]
    return flags


@dataclass(frozen=True)
class _Writer:
    names: Names
    opset: int

    def write(self, graph: onnx.GraphProto, around: _Body | None) -> _Flags:
        """Write flags into the bodies inside a graph, and return the values of the graph that have them."""
        flags: _Flags = []
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            if _has_bodies(node) and (node.op_type != "Scan" or self.opset >= 9):  # Scan-8 is of batches
                inside = [
                    (graph, _Body(_said(node, name, graph), around)) for name, _, graph in subgraphs(node)
                ]
                for body, of in [body_and_label for body_and_label in inside if body_and_label[0].node]:
                    flags += self._flags_of(node, body, of, nodes)
            nodes.append(node)
        if flags:
            del graph.node[:]
            graph.node.extend(nodes)
        return flags

    def _flags_of(
        self,
        node: onnx.NodeProto,
        graph: onnx.GraphProto,
        body: _Body,
        before: list[onnx.NodeProto],
    ) -> _Flags:
        """Make the flags of a body and of bodies inside it outputs of its node; add the nodes that they need to `before`."""
        inner = self.write(graph, body)
        inner.append((self._constant(graph.node, value=True), body))
        flags = []
        for value, of in inner:
            outside = self.names.fresh("executed")
            flags.append((outside, of))
            if node.op_type == "If":
                for _, _, other in subgraphs(node):
                    written = value if other is graph else self._constant(other.node, value=False)
                    other.output.append(_declared(written))
                node.output.append(outside)
                continue
            carried, set_here = self.names.fresh("executed"), self.names.fresh("executed")
            graph.node.append(helper.make_node("Or", [carried, value], [set_here]))
            # The number of turns and the condition come before what is carried.
            first = 2 if node.op_type == "Loop" else 0
            node.input.extend([""] * (first - len(node.input)))
            node.input.insert(first, self._constant(before, value=False))
            graph.input.insert(first, _declared(carried))
            graph.output.insert(first // 2, _declared(set_here))
            node.output.insert(0, outside)
        return flags

    def _constant(self, nodes: Any, *, value: bool) -> str:
        name = self.names.fresh("executed")
        tensor = numpy_helper.from_array(np.array([value]))
        nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name


def _said(node: onnx.NodeProto, name: str, graph: onnx.GraphProto) -> str:
    labels = [node_label(inner_node) for inner_node in graph.node]
    shown = [*labels[:_MOST], *(["…"] if labels[_MOST:] else [])]
    return f"the {_BODIES[name]} of {node.op_type} {node_label(node)!r} ({count_of(len(labels), 'node')}: {', '.join(shown)})"


def _declared(value: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(value, TensorProto.BOOL, [1])
