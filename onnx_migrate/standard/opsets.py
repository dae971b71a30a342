"""Opset imports."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "Owner",
    "body_opsets",
    "imported",
    "newest_onnx_opset",
    "onnx_opset",
    "owners",
    "remove_repeated_imports",
    "set_onnx_opset",
]


Owner = onnx.ModelProto | onnx.FunctionProto
"""A model or function; its opset imports hold for its nodes and those of its sub-graphs."""


def owners(proto: onnx.ModelProto) -> list[Owner]:
    """Return the model and its local functions."""
    return [proto, *proto.functions]


def body_opsets(proto: onnx.ModelProto) -> list[tuple[Owner, int | None]]:
    """Return the model and its functions, each with the ai.onnx opset that it imports."""
    return [(owner, onnx_opset(owner.opset_import, ir_version=proto.ir_version)) for owner in owners(proto)]


def newest_onnx_opset(proto: onnx.ModelProto) -> int:
    """Return the newest ai.onnx opset that the model or a function of it imports, 0 if none does."""
    return max((version for _, version in body_opsets(proto) if version is not None), default=0)


def onnx_opset(imports: Iterable[onnx.OperatorSetIdProto], *, ir_version: int) -> int | None:
    """Return the version of ai.onnx that a model or function imports; None if it imports only other domains.

    If it imports both "" and "ai.onnx", the last entry holds, as in ONNX Runtime (Model::Model in core/graph/model.cc
    enters each into one map). A model of IR version 1 or 2 has no imports; its opset is 1 (onnx/docs/Versioning.md).
    """
    entries = list(imports)
    # Both spellings name the same domain.
    versions = [int(entry.version) for entry in entries if is_onnx(entry.domain)]
    if versions:
        return versions[-1]
    return 1 if not entries and ir_version < 3 else None


def imported(imports: Iterable[onnx.OperatorSetIdProto], domain: str) -> int | None:
    """Return the imported version of a domain other than ai.onnx, of several the last; None if it is not imported."""
    versions = [int(entry.version) for entry in imports if entry.domain == domain]
    return versions[-1] if versions else None


def set_onnx_opset(owner: onnx.ModelProto | onnx.FunctionProto, version: int) -> None:
    """Set the version of ai.onnx that `owner` imports, in place; the spelling of the domain, "" or "ai.onnx", stays."""
    entries = [entry for entry in owner.opset_import if is_onnx(entry.domain)]
    for entry in entries or [owner.opset_import.add()]:
        entry.version = version


def remove_repeated_imports(owner: onnx.ModelProto | onnx.FunctionProto) -> list[tuple[str, list[int]]]:
    """Keep the last import of each domain, which is the one that holds, in place; "" and "ai.onnx" are one domain.

    Returns the domains that were imported more than once, with the versions in their order.
    """
    versions: dict[str, list[int]] = {}
    for entry in owner.opset_import:
        versions.setdefault("" if is_onnx(entry.domain) else entry.domain, []).append(int(entry.version))
    repeated = {
        domain: imported_versions
        for domain, imported_versions in versions.items()
        if len(imported_versions) > 1
    }
    if not repeated:
        return []
    waiting = {domain: len(imported_versions) for domain, imported_versions in repeated.items()}
    last_imports = []
    for entry in owner.opset_import:
        domain = "" if is_onnx(entry.domain) else entry.domain
        # The count reaches zero at the last import of the domain.
        waiting[domain] = waiting.get(domain, 1) - 1
        if not waiting[domain]:
            last_imports.append(entry)
    del owner.opset_import[:]
    owner.opset_import.extend(last_imports)
    return list(repeated.items())
