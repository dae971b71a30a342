"""`--depfile FILE`: a dependency file for make and ninja."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from onnx_migrate.cli.output.side_files import SideFile

if TYPE_CHECKING:
    from onnx_migrate.model.model import Model

__all__ = ["dependencies", "depfile_at", "rules"]

_RULE = re.compile(rb"[^\s#].*?:(\s|$)")


def depfile_at(path: str) -> SideFile:
    """Return the dependency file at a path, which may replace another one."""
    return SideFile("--depfile", path, "a dependency file", _is_depfile)


def _is_depfile(head: bytes) -> bool:
    """Whether a file begins with one rule, and goes on with empty rules for what the first one lists.

    Compilers write such files, with or without -MP.
    """
    whole = head[: head.rfind(b"\n") + 1] or head
    lines = [line for line in whole.replace(b"\\\n", b" ").split(b"\n") if line.strip()]
    if not lines or b"\0" in head or not all(map(_RULE.match, lines)):
        return False
    first, *phony = lines
    listed = first.partition(b": ")[2]
    return all(line.rstrip().endswith(b":") and line.strip()[:-1] in listed for line in phony)


def dependencies(original: Model, model: str, given: Mapping[str, Any]) -> list[str]:
    """Return the files that a migration of `original` reads: model, weights, --input-data, modules of --pass and --adapters,
    libraries."""
    folder = os.path.dirname(model)
    read_files = [os.path.join(folder, name) for name in original.files]
    data = given["input_data"]
    if data is not None:
        # A change of the inputs may change the verification.
        from onnx_migrate.verify.inputs.given import data_files

        read_files += map(str, data_files(data))
    read_files += map(str, given["ort_library"])
    for name in (*given["passes"], *given["adapters"]):
        # The modules were imported for the migration.
        module = sys.modules.get(str(name).partition(":")[0])
        path = getattr(module, "__file__", None)
        if path:
            read_files.append(os.path.relpath(path))
    return list(dict.fromkeys(read_files))


def rules(targets: list[str], sources: list[str]) -> bytes:
    """Return the rule `targets: sources`, and an empty rule for each source, so that make goes on when one is deleted."""
    rule = f"{' '.join(map(_escaped, targets))}: {' '.join(map(_escaped, sources))}\n"
    phony = "".join(f"{_escaped(source)}:\n" for source in sources)
    return os.fsencode(rule + phony)


def _escaped(path: str) -> str:
    return path.replace(os.sep, "/").replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")
