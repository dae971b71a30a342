"""A pass, which runs before the simplifier where the user names it: `onnx-migrate model.onnx out.onnx --pass drop_doc_strings`.

Of the entry-point group `onnx_migrate.default_passes` in pyproject.toml it would run in every migration.
"""

import onnx


def drop_doc_strings(model: onnx.ModelProto) -> None:
    """Remove the doc strings of nodes, in which exporters write paths of the machine that they ran on."""
    for node in model.graph.node:
        node.ClearField("doc_string")
