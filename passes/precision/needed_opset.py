"""Raises the opset of a model so that its operators take a narrow type."""

from __future__ import annotations

from onnx_migrate.advice import Advice
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import onnx_opset, set_onnx_opset
from onnx_migrate.standard.schema import is_onnx

__all__ = ["with_needed_opset"]

_QUANTISING = ("QuantizeLinear", "DequantizeLinear")

_BFLOAT_BEGINS = 13
"""The first opset with bfloat16."""

_BESIDE = 17
"""The opset of ai.onnx, whose Casts are written, in a model that imports other domains alone."""

_SCALES_OPSET, _BFLOAT_OPSET = 19, 22
"""The first opsets in which QuantizeLinear and DequantizeLinear take float16 scales, and Conv and the pools bfloat16."""


def with_needed_opset(model: Model, kind: str, log: ChangeLog, *, may_raise: bool) -> Model:
    """Return the model at the first opset whose operators take the type, if that is newer and allowed.

    Raises CannotMigrate if the model must become bfloat16 and must keep an opset without bfloat16.
    """
    opset = onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version) or 0
    needed, reason = _needed(model, kind)
    half = kind.replace("bf16", "fp16")
    if 0 < opset < _BFLOAT_BEGINS and kind.startswith("bf16") and not may_raise:
        raise CannotMigrate(
            f"bfloat16 begins with opset {_BFLOAT_BEGINS}, and the model is to have opset {opset}",
            code="precision-lost",
            hint=(
                Advice(f"give --opset {_BFLOAT_BEGINS} or more", options={"opset": _BFLOAT_BEGINS}),
                Advice(f"give --precision {half}", options={"precision": half}),
            ),
        )
    if not opset:
        set_onnx_opset(model.proto, max(needed, _BESIDE))
    if opset >= needed or not opset or not may_raise:
        return model
    log.note(
        "precision",
        "opset-raised",
        f"onnx-migrate raised the opset from {opset} to {needed}, because from there on {reason}; --opset {opset} keeps it",
    )
    return make_pass("migrate_opset", opset=needed, newer="keep").run(model, log)


def _needed(model: Model, kind: str) -> tuple[int, str]:
    """Return the opset that a type needs, 0 for any, and why."""
    if kind == "bf16":
        return _BFLOAT_OPSET, "convolutions and pools take bfloat16"
    if kind == "bf16-weights":
        return _BFLOAT_BEGINS, "there is bfloat16"
    nodes = all_nodes(model.proto)
    if kind == "fp16" and any(node.op_type in _QUANTISING and is_onnx(node.domain) for node in nodes):
        return _SCALES_OPSET, "scales may be float16"
    return 0, ""
