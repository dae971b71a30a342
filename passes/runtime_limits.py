"""Checks a model against the limits of a runtime's release, and writes its Resizes in a form that the release supports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.validity import IrLimit
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.spec.opsets import onnx_opset
from onnx_migrate.spec.runtimes import Runtime
from onnx_migrate.spec.schema import is_onnx

from .ir_version import lower_ir
from .resize.all_axes import name_all_axes
from .resize.node_context import ResizeNode
from .resize.resize_nodes import ResizeTraversal, resizes

__all__ = ["RuntimeLimits"]


@register_pass
@dataclass(frozen=True)
class RuntimeLimits(Pass):
    """Lower the IR version to one that a runtime's release loads, and warn of a newer opset.

    A model that holds what such an IR version does not have is refused. If the release does not support the
    attribute `axes` of Resize, scales and sizes are written for all axes instead. A note warns of each node that the
    release computes wrongly.
    """

    name: ClassVar[str] = "runtime_limits"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    runtime: Runtime

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Rewrite the Resizes of `model` in place. Raises CannotMigrate, code `runtime-ir`."""
        proto, newest = model.proto, self.runtime.ir_version
        if newest is not None and proto.ir_version > newest:
            self._lower_ir(model, newest, log)
        opset = onnx_opset(proto.opset_import, ir_version=proto.ir_version)
        if opset is not None and opset > self.runtime.opset:
            log.note(
                self.name,
                "runtime-opset",
                f"the model stays at its opset {opset}, but {self.runtime} is known to run models only up to opset"
                f" {self.runtime.opset}",
                severity="warning",
            )
        for node in self._faults(proto, opset or 0):
            log.note(
                self.name,
                "runtime-fault",
                f"{node_label(node)}: {self.runtime} computes wrong numbers for an AveragePool of opset 19 or newer with"
                " count_include_pad and padding only at the end. Migrate to opset 18 instead",
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

    def _lower_ir(self, model: Model, newest: int, log: ChangeLog) -> None:
        before = model.proto.ir_version
        try:
            lower_ir(model, newest, log, pass_name=self.name)
        except CannotMigrate as error:
            raise CannotMigrate(
                f"{self.runtime} loads IR versions up to {newest}, and the model has {before}: {error.reason}",
                code="runtime-ir",
                where=error.where,
                hint=error.hint,
            ) from error
        reason = f"IR version {before} became {newest}, the newest that {self.runtime} loads"
        log.note(self.name, "ir-version", reason, subject="model")
        model.proto.ir_version = newest
        log.record_fact("", "", IrLimit(newest))

    def _name_all_axes(self, traversal: ResizeTraversal, node: ResizeNode) -> None:
        rw = node.rw
        if rw.node.op_type == "Resize" and rw.attribute("axes") is not None:
            kept = name_all_axes(rw, node.shape)
            if kept is None:
                rw.note(
                    f"scales or sizes are of all axes, as {self.runtime} does not support the attribute axes"
                )
            else:
                reason = f"keeps the attribute axes, which {self.runtime} does not support: {kept}"
                traversal.warn(node, reason, code="resize-kept")

    def _faults(self, proto: onnx.ModelProto, opset: int) -> Iterator[onnx.NodeProto]:
        """Yield the nodes of all bodies that this release computes wrongly; docs/runtimes.md says how that was found."""
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
