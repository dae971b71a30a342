"""Libraries with the kernels of custom operators, which ONNX Runtime loads before a model that has such operators."""

from __future__ import annotations

import os
from collections.abc import Sequence

from onnx_migrate.errors import UsageError

__all__ = ["Libraries", "libraries_of"]

Libraries = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""The path of a shared library, or several."""


def libraries_of(given: Libraries) -> tuple[str, ...]:
    """Return the absolute paths of libraries, none of which is loaded here. Raises UsageError for one that is no file."""
    paths = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    found = tuple(os.path.abspath(path) for path in paths)
    for path in found:
        if not os.path.isfile(path):
            raise UsageError(
                f"{path}: there is no such library of custom operators",
                code="ort-library",
                hint="give the path of a shared library that exports RegisterCustomOps; that of onnxruntime-extensions is"
                " onnxruntime_extensions.get_library_path()",
            )
    return found
