"""Gives advice on a model that does not run: a library of operators, or other inputs unless its node fails for all inputs."""

from __future__ import annotations

import re

import onnx

from onnx_migrate.advice import untried
from onnx_migrate.facts.shape_arithmetic import ELEMENTWISE
from onnx_migrate.model.graphs import fed_inputs, names_read, node_label, producers
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.inputs.constraints.facts import Facts

__all__ = ["input_advice", "library_advice"]

_ARGUMENTS = {
    "Expand": (1,), "Gather": (1,), "GatherElements": (1,), "GatherND": (1,), "OneHot": (1,), "Pad": (1, 3), "Reshape": (1,),
    "Resize": (2, 3), "ScatterElements": (1,), "ScatterND": (1,), "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,),
    "Tile": (1,), "TopK": (1,), "Unsqueeze": (1,),
}  # fmt: skip
"""Operators with the inputs whose values decide whether a node fails, beside the shapes of all."""

_BY_SHAPES = (ELEMENTWISE - {"Div", "Mod"}) | {
    "BatchNormalization", "Concat", "Conv", "ConvTranspose", "DequantizeLinear", "Einsum", "GRU", "Gemm", "LSTM",
    "LayerNormalization", "MatMul", "PRelu", "Pow", "QuantizeLinear", "RNN", "Sum",
}  # fmt: skip
"""Operators that fail for shapes alone. An integer Div or Mod fails for a 0."""

_UNREGISTERED = "is not a registered function/op"
"""ONNX Runtime's words for an operator that neither it nor a registered library has."""

_GIVE = f"; {untried('give inputs that it runs on with --input-data')}"


def input_advice(model: onnx.ModelProto, name: str, message: str) -> str:
    """Return advice, as the end of a sentence, for a model whose node `name` fails with a message."""
    node = _failing(model.graph, name, message)
    if node is None:
        return _GIVE
    if not _reads_inputs(model.graph, node):
        return "; the node depends on constants alone, so that no inputs help: correct the model"
    if is_onnx(node.domain) and _never_fits(node, Facts(model)):
        return (
            "; the node has these shapes whatever the inputs are, so that no inputs help: correct the model"
        )
    return _GIVE


def library_advice(message: str) -> str:
    """Return advice, as the end of a sentence, for a model that ONNX Runtime does not load because of this message."""
    if _UNREGISTERED not in message or "ai.onnx" in message:
        return ""
    return f"; {untried('--ort-library FILE registers the library that has this operator')}"


def _failing(graph: onnx.GraphProto, name: str, message: str) -> onnx.NodeProto | None:
    """Return the node that fails; of one without a name the message has the operator, which then is to be the only one."""
    if name:
        return next((node for node in graph.node if node_label(node) == name), None)
    begin = re.match(r"(\w+) '': ", message)
    nodes = [node for node in graph.node if begin is not None and node.op_type == begin[1]]
    return nodes[0] if len(nodes) == 1 else None


def _reads_inputs(graph: onnx.GraphProto, node: onnx.NodeProto) -> bool:
    """Return whether the inputs of a node depend on inputs of the model, by shapes or by values."""
    fed, makers = {value.name for value in fed_inputs(graph)}, producers(graph)
    waiting, seen = names_read(node), set[str]()
    while waiting:
        name = waiting.pop()
        if name in fed:
            return True
        if name not in seen and name in makers:
            waiting += names_read(makers[name])
        seen.add(name)
    return False


def _never_fits(node: onnx.NodeProto, facts: Facts) -> bool:
    """Return whether all that decides follows from the declared dims and constants."""
    if node.op_type not in _BY_SHAPES and node.op_type not in _ARGUMENTS:
        return False
    arguments = [node.input[at] for at in _ARGUMENTS.get(node.op_type, ()) if at < len(node.input)]
    if any(name and facts.value(name) is None for name in arguments):
        return False
    return all(facts.static_shape(name) is not None for name in node.input if name)
