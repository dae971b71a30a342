"""Opset imports and the IR version they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx
from onnx import helper

from onnx_migrate.errors import LoadError
from onnx_migrate.model.schema import is_onnx

__all__ = ["minimal_ir_version", "onnx_opset", "raise_ir_version", "set_onnx_opset"]


def onnx_opset(
    imports: Iterable[onnx.OperatorSetIdProto], *, ir_version: int, name: str = "the model"
) -> int | None:
    """Return the version of ai.onnx that a model or function imports; None when it imports only others.

    A model of IR 1 or 2 has no imports, and means opset 1 (onnx/docs/Versioning.md).
    Raises LoadError when "" and "ai.onnx" are imported at two versions.
    """
    entries = list(imports)
    found = {entry.version for entry in entries if is_onnx(entry.domain)}
    if len(found) > 1:
        numbers = " and ".join(map(str, sorted(found)))
        raise LoadError(f"{name} imports ai.onnx at versions {numbers} at once", code="ambiguous-opset")
    if found:
        return int(found.pop())
    return 1 if not entries and ir_version < 3 else None


def set_onnx_opset(owner: onnx.ModelProto | onnx.FunctionProto, version: int) -> None:
    """Make `owner` import ai.onnx at `version`, under the name or names it used before."""
    entries = [entry for entry in owner.opset_import if is_onnx(entry.domain)]
    for entry in entries or [owner.opset_import.add()]:
        entry.version = version


@cache
def _ir_of_opset() -> dict[int, int]:
    return {
        version: ir for (domain, version), ir in helper.OP_SET_ID_VERSION_MAP.items() if domain == "ai.onnx"
    }


def minimal_ir_version(opset: int) -> int:
    """Return the oldest IR version that may carry an ai.onnx opset (onnx/docs/Versioning.md, released versions).

    Opsets 2 to 4 were never in a release of their own and take the IR version of opset 5.
    """
    table = _ir_of_opset()
    return table.get(opset, 3)


def raise_ir_version(proto: onnx.ModelProto, opset: int) -> None:
    """Lift the IR version to what the opset needs; never above, never down."""
    proto.ir_version = max(proto.ir_version, minimal_ir_version(opset))
