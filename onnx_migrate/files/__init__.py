"""Reads and writes models: the structure passes through memory, the weights are copied from file to file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_migrate.lazy_names import lazy_names

if TYPE_CHECKING:
    from onnx_migrate.files.destination import check_not_source, check_target
    from onnx_migrate.files.equality import equal
    from onnx_migrate.files.kinds import returned_kind
    from onnx_migrate.files.loading import load
    from onnx_migrate.files.places import ensure_local
    from onnx_migrate.files.protos import inline
    from onnx_migrate.files.publishing import NewContent, published
    from onnx_migrate.files.reading import Content, GivenModel, IrModel, Source
    from onnx_migrate.files.saving import Beside, contents_beside, rest_path, save, write

__all__ = [
    "Beside",
    "Content",
    "GivenModel",
    "IrModel",
    "NewContent",
    "Source",
    "check_not_source",
    "check_target",
    "contents_beside",
    "ensure_local",
    "equal",
    "inline",
    "load",
    "published",
    "rest_path",
    "returned_kind",
    "save",
    "write",
]

__getattr__ = lazy_names(
    __name__,
    {
        "destination": "check_not_source check_target",
        "equality": "equal",
        "kinds": "returned_kind",
        "loading": "load",
        "places": "ensure_local",
        "protos": "inline",
        "publishing": "NewContent published",
        "reading": "Content GivenModel IrModel Source",
        "saving": "Beside contents_beside rest_path save write",
    },
)
