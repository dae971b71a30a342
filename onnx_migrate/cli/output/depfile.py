"""`--depfile FILE`: a dependency file for make and ninja."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["dependencies", "write_depfile"]


def dependencies(options: dict[str, Any]) -> list[str]:
    """Return the files that a migration with these options reads: model, weights, --input-data, modules of --pass."""
    from onnx import TensorProto

    from onnx_migrate.files import load
    from onnx_migrate.model.weights import FilePayload, tensors

    model = str(options["model"])
    found = [model]
    loaded = load(model)
    for tensor in tensors(loaded.proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            payload = loaded.weights.payload(tensor)
            if isinstance(payload, FilePayload) and payload.path != loaded.weights.source:
                found.append(
                    os.path.join(os.path.dirname(model), os.path.relpath(payload.path, loaded.weights.folder))
                )
    data = options["input_data"]
    if data is not None:
        found += (
            sorted(str(path) for path in Path(data).rglob("*.pb")) if os.path.isdir(data) else [str(data)]
        )
    for name in options["extra"]:
        module = sys.modules.get(str(name).partition(":")[0])
        path = getattr(module, "__file__", None)
        if path:
            found.append(os.path.relpath(path))
    return list(dict.fromkeys(found))


def write_depfile(path: str, target: str, sources: list[str]) -> None:
    """Write the rule `target: sources`, and an empty rule for each source, so that make goes on when one is deleted.

    Raises SaveError.
    """
    from onnx_migrate.errors import saving
    from onnx_migrate.files.atomic_file import NewFile

    rule = f"{_escaped(target)}: {' '.join(map(_escaped, sources))}\n"
    phony = "".join(f"{_escaped(source)}:\n" for source in sources)
    with saving(path), NewFile(Path(os.path.abspath(path)), [os.fsencode(rule + phony)]) as file:
        file.put()


def _escaped(path: str) -> str:
    return path.replace(os.sep, "/").replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")
