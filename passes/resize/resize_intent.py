"""Writes each Resize as its exporter meant it, on request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from onnx_migrate.analysis.shapes import drop_value_info
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.model.dim_requests import DynamicAxes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .exporter_intent import as_before_converter, as_pytorch, converted
from .node_context import ResizeNode
from .pairs import pair_of
from .resize_nodes import ResizeTraversal, resizes

__all__ = ["ResizeIntent"]

_ROUNDS = 32
"""Each settles the Resizes whose shapes follow from those settled before."""


@register_pass
@dataclass(frozen=True)
class ResizeIntent(Pass):
    """Let what PyTorch exported up to opset 10 compute what its module did, and mend converted Resizes.

    PyTorch's interpolate is half_pixel in linear modes, rounds down in nearest, and means whole lengths; its
    exporter had no words for these. What onnx's version converter made of an older Resize lost its
    coordinates. These are assumptions: the model's numbers change, and each node is reported.
    """

    name: ClassVar[str] = "resize_intent"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    changes_numbers: ClassVar[bool] = True
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that are made dynamic afterwards."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model`, which the pass migrate_opset has lifted, in place."""
        if not resizes(model):
            return model
        traversal = ResizeTraversal(self.name, model, log, self.dynamic)
        pytorch = model.proto.producer_name == "pytorch"

        def mean(node: ResizeNode) -> set[str]:
            pair, origin = pair_of(node), node.origin
            if node.rw.node.op_type == "Gather" and pair is None:
                return set()
            if pytorch and origin is not None and origin.is_before_11:
                gone, longer = as_pytorch(node, pair, origin)
                if longer:
                    drop_value_info(model.proto.graph)
                return gone
            if pair is None and converted(node):
                as_before_converter(node, pytorch=pytorch)
            return set()

        for _ in range(_ROUNDS):
            if not traversal.visit_all(mean):
                break
        traversal.end()
        return model
