"""Tells of each linear Resize that the exported PyTorch module computed otherwise than the file says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, make_pass, register_pass
from onnx_migrate.errors import MigrateError
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.graphs import bodies, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import Alternative, ChangeLog
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx

from .pairs import ResizeOrigin
from .resize_intent import is_asymmetric

__all__ = ["IntentNote"]

_FIRST = 11
"""The first opset whose Resize can say half_pixel."""


@register_pass
@dataclass(frozen=True)
class IntentNote(Pass):
    """Tell of the linear Resizes that PyTorch exported up to opset 10 as asymmetric and computed as half_pixel.

    Nothing is changed: resize_intent, in its place, restores them. The model that it would have made is recorded, so that
    a verification can say how far apart the two are.
    """

    name: ClassVar[str] = "intent_note"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.TARGET_OPSET})
    operators: ClassVar[frozenset[str]] = frozenset({"Resize", "Upsample"})
    producer: ClassVar[str] = "pytorch"
    like: str = ""
    """The runtime that computes half_pixel for the original, and from opset 11 on what the file says: there it is a warning."""
    dynamic: DynamicAxes | None = field(default=None)
    """The axes that a later pass makes dynamic."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Note the nodes, if there are any, and return the model as it is."""
        found, older = _meant_half_pixel(model.proto, log)
        if not found:
            return model
        label = node_label(found[0])
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        message = (
            f"{label!r}{more}: PyTorch's linear interpolation is half_pixel, which its exporter could not write up to"
            " opset 10. The file says asymmetric, and that is what the result computes"
        )
        if self.like and not older:
            message += f"; {self.like} computes half_pixel for the original, and asymmetric for the result"
        message += (
            "; --resize-intent writes half_pixel, at opset 11 or newer"
            if older
            else "; --resize-intent writes half_pixel"
        )
        severity = "warning" if self.like and not older else "info"
        log.note(self.name, "exporter-intent", message, subject=label, severity=severity)
        note = log.notes[-1]
        intended = self._intended(model, log, older=older)
        if intended is not None:
            log.record_fact("", "", Alternative(intended, note, "--resize-intent"))
        return model

    def _intended(self, model: Model, log: ChangeLog, *, older: bool) -> Model | None:
        """Return a copy of the model as resize_intent leaves it; None where it cannot be made."""
        trial, copy = log.trial(), model.copy()
        passes = [
            make_pass("resize_intent", dynamic=self.dynamic),
            make_pass("resize_form", dynamic=self.dynamic),
        ]
        if older:
            passes.insert(0, make_pass("migrate_opset", opset=_FIRST, newer="keep"))
        try:
            for item in passes:
                copy = item.run(copy, log)
        except MigrateError:
            return None
        finally:
            trial.roll_back()
        return copy


def _meant_half_pixel(proto: onnx.ModelProto, log: ChangeLog) -> tuple[list[onnx.NodeProto], bool]:
    """Return the nodes that PyTorch meant to be half_pixel, and whether one is of an opset that cannot say so."""
    if proto.producer_name != "pytorch":
        return [], False
    found, older = [], False
    for located in bodies(proto):
        opset = onnx_opset(located.owner.opset_import, ir_version=proto.ir_version) or 0
        for node in located.body.node:
            if node.op_type not in ("Upsample", "Resize") or not is_onnx(node.domain):
                continue
            if opset < _FIRST:
                meant = _mode(node) in (b"linear", b"bilinear")
                older |= meant
            else:
                origin = log.fact(ResizeOrigin, located.path, node.output[0])
                meant = origin is not None and origin.is_before_11 and is_asymmetric(node)
            if meant:
                found.append(node)
    return found, older


def _mode(node: onnx.NodeProto) -> bytes:
    return next((attribute.s for attribute in node.attribute if attribute.name == "mode"), b"nearest")
