"""onnxruntime-web, with WebAssembly, under node: `onnxruntime_web.mjs` is the program that node runs.

The driver looks for node_modules in the folders of sys.path. The first of them is the FOLDER that a user names, and another the
folder in which the command was called.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["load", "version"]

TITLE = "onnxruntime-web"
ALIASES = ("ort-web", "onnxruntime-node")
MANAGER = "npm"
FLOOR = 16.0
DOUBLES = True

_TYPES = {
    "float16": "uint16", "bool": "uint8", "float32": "float32", "float64": "float64", "int8": "int8", "int16": "int16",
    "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
}  # fmt: skip
"""By type of an element, the one whose bytes are handed over."""


def version() -> str:
    """Return the name of the runtime and its version; raises ImportError if node or the package is missing."""
    with open(os.path.join(_package(), "package.json"), encoding="utf-8") as file:
        return f"onnxruntime-web {json.load(file)['version']}"


def load(path: str, example: dict[str, Any], outputs: list[str]) -> Callable[[dict[str, Any]], list[Any]]:
    """Load a model in a process of node's, which ends with this one."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "onnxruntime_web.mjs")
    folder = tempfile.mkdtemp()
    process = subprocess.Popen(
        [_node(), program, _package(), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        universal_newlines=True,
    )

    def ask(request: Any) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        if request is not None:
            process.stdin.write(json.dumps(request) + "\n")
            # The other process waits for a whole line; without this, both would wait.
            process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"node ended with exit code {process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def run(feed: dict[str, Any]) -> list[Any]:
        written_inputs = [_write(folder, index, *entry) for index, entry in enumerate(feed.items())]
        answer = ask({"inputs": written_inputs, "outputs": outputs, "folder": folder})
        return [_read(entry) for entry in answer["outputs"]]

    ask(None)
    return run


def _write(folder: str, index: int, name: str, value: Any) -> dict[str, Any]:
    kind = value.dtype.name
    if kind not in _TYPES:
        raise TypeError(f"input {name!r} is of {value.dtype}, which is not handed to onnxruntime-web")
    path = os.path.join(folder, f"in{index}")
    np.ascontiguousarray(value).tofile(path)
    return {"name": name, "type": kind, "dims": list(value.shape), "path": path}


def _read(item: dict[str, Any]) -> Any:
    return np.fromfile(item["path"], dtype=item["type"]).reshape(item["dims"])


def _node() -> str:
    program = shutil.which("node")
    if not program:
        raise ImportError("there is no program node on the PATH")
    return program


def _package() -> str:
    _node()
    for folder in [*sys.path, os.environ.get("PWD", ""), *os.environ.get("NODE_PATH", "").split(os.pathsep)]:
        for inner in ("node_modules", ""):
            package_folder = os.path.join(folder, inner, "onnxruntime-web")
            if folder and os.path.isfile(os.path.join(package_folder, "package.json")):
                return os.path.abspath(package_folder)
    raise ImportError("there is no node_modules/onnxruntime-web in this folder or the one given after @")
