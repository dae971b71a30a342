"""Holds a model against what a runtime's release takes, and writes its Resizes so that it knows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.runtimes import Runtime
from onnx_migrate.spec.schema import is_onnx

from .resize.all_axes import name_all_axes
from .resize.node_context import ResizeNode
from .resize.resize_nodes import ResizeTraversal, resizes

__all__ = ["FitsRuntime"]


@register_pass
@dataclass(frozen=True)
class FitsRuntime(Pass):
    """Refuse a model of a newer IR version than a runtime's release takes, and say so of a newer opset.

    IR versions are never lowered: a model may hold what only its own version has. Where the release does not know
    the attribute `axes` of Resize, all axes are named instead. What it is known to compute wrong is said.
    """

    name: ClassVar[str] = "fits_runtime"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    runtime: Runtime

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model` in place. Raises CannotMigrate, code `runtime-ir`."""
        proto, newest = model.proto, self.runtime.ir_version
        if newest is not None and proto.ir_version > newest:
            raise CannotMigrate(
                f"the model is of IR version {proto.ir_version}, and {self.runtime} takes up to {newest}",
                code="runtime-ir",
                hint="export the model with an older IR version",
            )
        opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version)
        if opset is not None and opset > self.runtime.opset:
            log.note(
                self.name,
                "runtime-opset",
                f"the model stays at its opset {opset}; {self.runtime} is known to run models up to {self.runtime.opset}",
                severity="warning",
            )
        for node in self._faults(proto, opset or 0):
            log.note(
                self.name,
                "runtime-fault",
                f"{node.name or node.output[0]}: {self.runtime} computes an AveragePool of opset 19 and on wrong"
                " where it counts padding that is only at the end; at opset 18 it is right",
                subject=node.name,
                severity="warning",
            )
        if not self.runtime.resize_axes and any(
            attribute.name == "axes" for node in resizes(model) for attribute in node.attribute
        ):
            traversal = ResizeTraversal(self.name, model, log, None)
            traversal.visit_all(lambda node: self._name_all_axes(traversal, node))
            traversal.end()
        return model

    def _name_all_axes(self, traversal: ResizeTraversal, node: ResizeNode) -> None:
        rw = node.rw
        if rw.node.op_type == "Resize" and rw.attribute("axes") is not None:
            kept = name_all_axes(rw, node.shape)
            if kept is None:
                rw.note(f"names all axes: {self.runtime} does not know the attribute axes")
            else:
                told = f"keeps the attribute axes, which {self.runtime} does not know: {kept}"
                traversal.warn(node, told, code="resize-kept")

    def _faults(self, proto: onnx.ModelProto, opset: int) -> Iterator[onnx.NodeProto]:
        """Give the nodes, of all bodies, that this release was seen to compute wrong."""
        if self.runtime.name != "onnxruntime" or not (1, 21) <= self.runtime.release <= (1, 24) or opset < 19:
            return
        for node in all_nodes(proto):
            if node.op_type == "AveragePool" and is_onnx(node.domain) and _counts_padding_at_the_end(node):
                yield node


def _counts_padding_at_the_end(node: onnx.NodeProto) -> bool:
    given = {attribute.name: attribute for attribute in node.attribute}
    pads = list(given["pads"].ints) if "pads" in given else []
    half = len(pads) // 2
    counts = "count_include_pad" in given and given["count_include_pad"].i
    return bool(counts and any(pads[half:]) and not any(pads[:half]))
