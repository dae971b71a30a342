"""A pass, which runs in every migration where this package is installed, before the simplifier."""

import onnx


def drop_doc_strings(model: onnx.ModelProto) -> None:
    """Remove the doc strings of nodes, in which exporters write paths of the machine that they ran on."""
    for node in model.graph.node:
        node.ClearField("doc_string")
