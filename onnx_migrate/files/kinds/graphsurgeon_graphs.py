"""An onnx_graphsurgeon.Graph."""

from __future__ import annotations

from typing import Any

import onnx

from onnx_migrate.errors import LoadError
from onnx_migrate.files.kinds import ModelKind
from onnx_migrate.files.protos import structure_of
from onnx_migrate.model.weights import Weights

__all__ = ["KIND"]

_UNLISTED = 4
"""From this IR version on, initializers need not be inputs too; graphsurgeon does not list them as inputs."""


class _Graph(ModelKind):
    title = "an onnx_graphsurgeon.Graph"

    def holds(self, source: object) -> bool:
        kind = type(source)
        return kind.__module__.partition(".")[0] == "onnx_graphsurgeon" and kind.__name__ == "Graph"

    def structure(self, source: Any, weights: Weights) -> onnx.ModelProto:
        import onnx_graphsurgeon as gs

        try:
            proto: onnx.ModelProto = gs.export_onnx(source, do_type_check=False)
        except Exception as error:  # graphsurgeon's own kinds, and those of numpy and onnx
            raise LoadError(
                f"onnx_graphsurgeon cannot write this Graph as a model: {error}",
                hint="call gs.export_onnx(graph) to see where",
            ) from error
        if getattr(source, "ir_version", None) is None:  # a Graph that was made by hand, not read
            least = onnx.helper.find_min_ir_version_for(list(proto.opset_import), ignore_unknown=True)
            proto.ir_version = max(least, _UNLISTED)
        return structure_of(proto, weights)


KIND = _Graph()
