"""Restores, on request, what the exporter of each Resize intended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from onnx_migrate.analysis.shapes import drop_value_info
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from ..node_context import ResizeNode
from ..pairs import pair_of
from ..resize_nodes import ResizeTraversal, resizes
from .exporter_intent import is_converted, restore_before_converter, restore_coordinates, restore_pytorch

__all__ = ["ResizeIntent"]

_ROUNDS = 32
"""The largest number of traversals. Each restores the Resizes whose shapes follow from those restored before."""


@register_pass
@dataclass(frozen=True)
class ResizeIntent(Pass):
    """Let what PyTorch exported up to opset 10 compute what its module did, and repair converted Resizes.

    PyTorch's interpolate is half_pixel in linear modes, rounds down in nearest, and computes scales from whole
    lengths; its exporter could express none of these up to opset 10. onnx's version converter lost the coordinates of
    older Resizes. Both are assumptions: the model's numbers change, and each node is reported.

    For a runtime that computes half_pixel for such a file itself (`like`), only the coordinates are restored, so that it
    computes for the result what it computed for the original.
    """

    name: ClassVar[str] = "resize_intent"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    changes_numbers: ClassVar[bool] = True
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that a later pass makes dynamic."""
    like: str = ""
    """The runtime whose reading of the original is restored; "" restores all that is known of the exporter."""

    def why_other_numbers(self) -> str:
        """Return for whom the numbers change."""
        if not self.like:
            return super().why_other_numbers()
        return f"to what {self.like} computes for the original, whatever the file says (--without {self.name} leaves it)"

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model`, which migrate_opset has brought to its target; it is edited and returned."""
        if not resizes(model):
            return model
        traversal = ResizeTraversal(self.name, model, log, self.dynamic)
        from_pytorch = model.proto.producer_name == "pytorch"

        def restore(node: ResizeNode) -> None:
            pair, origin = pair_of(node), node.origin
            if node.rw.node.op_type == "Gather" and pair is None:
                return
            if self.like:
                if from_pytorch and origin is not None and origin.is_before_11:
                    restore_coordinates(node)
            elif from_pytorch and origin is not None and origin.is_before_11:
                if restore_pytorch(node, pair, origin):
                    drop_value_info(model.proto.graph)
            elif pair is None and is_converted(node):
                restore_before_converter(node, from_pytorch=from_pytorch)

        for _ in range(_ROUNDS):
            if not traversal.visit_all(restore):
                break
        traversal.end()
        return model
