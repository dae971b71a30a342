"""Opset imports, and the IR version that an opset requires."""

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
    """Return the version of ai.onnx that a model or function imports; None if it imports only other domains.

    A model of IR version 1 or 2 has no imports and is of opset 1 (onnx/docs/Versioning.md). Messages call the importer
    `name`. Raises LoadError, code `ambiguous-opset`, if "" and "ai.onnx" are imported at two versions.
    """
    entries = list(imports)
    found = {entry.version for entry in entries if is_onnx(entry.domain)}
    if len(found) > 1:
        raise _ambiguous(name, "ai.onnx", found)
    if found:
        return int(found.pop())
    return 1 if not entries and ir_version < 3 else None


def imported(imports: Iterable[onnx.OperatorSetIdProto], domain: str) -> int | None:
    """Return the imported version of a domain other than ai.onnx; None if it is not imported.

    Raises LoadError, code `ambiguous-opset`, if it is imported at two versions.
    """
    found = {entry.version for entry in imports if entry.domain == domain}
    if len(found) > 1:
        raise _ambiguous("the model", domain, found)
    return int(found.pop()) if found else None


def _ambiguous(name: str, domain: str, versions: set[int]) -> LoadError:
    return LoadError(
        f"{name} imports {domain} at two versions: {' and '.join(map(str, sorted(versions)))}",
        code="ambiguous-opset",
        hint="remove the wrong one of the entries of opset_import",
    )


def set_onnx_opset(owner: onnx.ModelProto | onnx.FunctionProto, version: int) -> None:
    """Set the version of ai.onnx that `owner` imports, in place; the spelling of the domain, "" or "ai.onnx", stays."""
    entries = [entry for entry in owner.opset_import if is_onnx(entry.domain)]
    for entry in entries or [owner.opset_import.add()]:
        entry.version = version


@cache
def _ir_of_opset() -> dict[tuple[str, int], int]:
    return dict(helper.OP_SET_ID_VERSION_MAP)


def minimal_ir_version(opset: int, domain: str = "ai.onnx") -> int:
    """Return the oldest IR version that allows an opset (onnx/docs/Versioning.md, "Released Versions").

    Opsets 2 to 4 of ai.onnx and unknown opsets, which are in no release, get IR version 3, that of opset 5.
    """
    return _ir_of_opset().get((domain, opset), 3)


def raise_ir_version(proto: onnx.ModelProto, opset: int) -> None:
    """Raise the IR version, in place, to the oldest that allows the opset; a newer IR version stays."""
    proto.ir_version = max(proto.ir_version, minimal_ir_version(opset))
