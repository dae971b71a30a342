"""Opset imports and the IR version they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx
from onnx import helper

from onnx_migrate.errors import LoadError
from onnx_migrate.spec.schema import is_onnx

__all__ = ["imported", "minimal_ir_version", "onnx_opset", "raise_ir_version", "set_onnx_opset"]


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


def imported(imports: Iterable[onnx.OperatorSetIdProto], domain: str) -> int | None:
    """Return the version of a domain other than ai.onnx that is imported, None when it is not.

    Raises LoadError when it is imported at two versions.
    """
    found = {entry.version for entry in imports if entry.domain == domain}
    if len(found) > 1:
        numbers = " and ".join(map(str, sorted(found)))
        raise LoadError(f"the model imports {domain} at versions {numbers} at once", code="ambiguous-opset")
    return int(found.pop()) if found else None


def set_onnx_opset(owner: onnx.ModelProto | onnx.FunctionProto, version: int) -> None:
    """Make `owner` import ai.onnx at `version`, under the name or names it used before."""
    entries = [entry for entry in owner.opset_import if is_onnx(entry.domain)]
    for entry in entries or [owner.opset_import.add()]:
        entry.version = version


@cache
def _ir_of_opset() -> dict[tuple[str, int], int]:
    return dict(helper.OP_SET_ID_VERSION_MAP)


def minimal_ir_version(opset: int, domain: str = "ai.onnx") -> int:
    """Return the oldest IR version that may carry an opset (onnx/docs/Versioning.md, released versions).

    Opsets 2 to 4 of ai.onnx were never in a release of their own and take the IR version of opset 5.
    """
    return _ir_of_opset().get((domain, opset), 3)


def raise_ir_version(proto: onnx.ModelProto, opset: int) -> None:
    """Lift the IR version to what the opset needs; never above, never down."""
    proto.ir_version = max(proto.ir_version, minimal_ir_version(opset))
