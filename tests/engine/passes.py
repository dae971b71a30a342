"""Passes that the tests of this folder share."""

from __future__ import annotations

import onnx
import onnx_graphsurgeon as gs
from onnx import numpy_helper

from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

TEXT = """<ir_version: 8, opset_import: ["":17], producer_name: "maker", model_version: 7, doc_string: "words">
g (float[2,3] x) => (float[2,3] y) <float[1] w = {2.}> { a = Mul(x, w)  b = Identity(a)  y = Relu(b) }"""


class Own(Pass):
    """A user's subclass of Pass that leaves the model alone."""

    name = "own"

    def run(self, model: Model, log: ChangeLog) -> Model:
        return model


def skip_identity(graph: gs.Graph) -> None:
    """Take Identity nodes out."""
    for node in [node for node in graph.nodes if node.op == "Identity"]:
        for reader in list(node.outputs[0].outputs):
            reader.inputs = [node.inputs[0] if value is node.outputs[0] else value for value in reader.inputs]
        node.outputs.clear()
    graph.cleanup()


def double_weights(proto: onnx.ModelProto) -> None:
    """Double every initializer."""
    for tensor in proto.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 2, tensor.name))
