"""`--depfile FILE`: a dependency file for make and ninja."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx_migrate.model.model import Model

__all__ = ["dependencies", "write_depfile"]


def dependencies(original: Model, options: dict[str, Any]) -> list[str]:
    """Return the files that a migration of `original` reads: model, weights, --input-data, modules of --pass."""
    folder = os.path.dirname(str(options["model"]))
    found = [os.path.join(folder, name) for name in original.files]
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
