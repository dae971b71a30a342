"""The journal of a batch: its results and their sources, so that --resume can skip them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onnx_migrate.engine.pass_infra import Pass, is_builtin
from onnx_migrate.errors import saving
from onnx_migrate.files.atomic_file import NewFile, remove_leftovers
from onnx_migrate.files.equality import file_digest
from onnx_migrate.json_form import json_of
from onnx_migrate.model.model import Model
from onnx_migrate.report.request import tool_versions
from onnx_migrate.safe_open import open_regular
from onnx_migrate.standard.targets import resolve

__all__ = ["NAME", "Journal", "content", "key", "whole", "written"]

NAME = ".onnx-migrate.jsonl"
"""The journal's file in the folder of the results: one line for each model, each a JSON object."""


class Journal:
    """Records by output. They are appended as models end, and sorted by output when the batch ends.

    Methods that write raise SaveError.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.records: dict[str, Mapping[str, Any]] = {}

    def read(self) -> None:
        """Read the records of earlier runs; ignore incomplete lines, which a killed run may leave."""
        if not self.path.exists():
            return
        with saving(self.path), open(open_regular(self.path), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        for line in lines:
            try:
                record = json.loads(line)
                self.records[record["output"]] = record
            except (ValueError, TypeError, KeyError):  # noqa: PERF203
                continue

    def add(self, record: Mapping[str, Any]) -> None:
        """Append a record, in memory and on disk."""
        self.records[record["output"]] = record
        with saving(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(_line(record))

    def forget(self, output: str) -> None:
        """Drop the record of an output whose model could not be migrated this time."""
        self.records.pop(output, None)

    def rewrite(self) -> None:
        """Write all records again; call this before the first new record and after the last one.

        So each new line follows a complete one, and the same models give the same bytes in any order of their ends.
        """
        lines = "".join(_line(self.records[output]) for output in sorted(self.records))
        with saving(self.path):
            remove_leftovers(self.path)
            with NewFile(self.path, [lines.encode()]) as file:
                file.put()


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, sort_keys=True) + "\n"


def key(arguments: Mapping[str, Any], *, external: bool) -> dict[str, Any] | None:
    """Return everything the result depends on except the model: versions, options, and digests of the files they name.

    For each target runtime this includes the installed release and the digest of its table. Raises UsageError for an unknown
    runtime.

    Returns None if JSON cannot express an option: a pass, a pipeline or a function for inputs that is an object of the caller's.
    """
    read = {}
    # These limits change no finished result.
    options = {name: value for name, value in arguments.items() if name not in ("timeout", "memory_limit")}
    for module_name in (
        *(options.get("passes") or ()),
        *(f"{name}:" for name in options.get("adapters") or ()),
    ):
        # The version of the package covers its own passes.
        if is_builtin(module_name):
            continue
        if not isinstance(module_name, str):
            return None
        module = module_name.partition(":")[0]
        spec = importlib.util.find_spec(module) if ":" in module_name else None
        # A changed module may change the result.
        if spec is not None and spec.origin and os.path.isfile(spec.origin):
            read[module_name] = file_digest(Path(spec.origin))
    if options.get("pipeline") is not None:
        return None
    data = options.get("input_data")
    from onnx_migrate.verify.inputs.given import data_files, texts_of

    if data is not None and not texts_of(data):
        # A function may return other arrays each time.
        if callable(data) or not isinstance(data, (Mapping, Sequence)):
            return None
        options["input_data"] = _digest_of_arrays(data)
    elif data is not None:
        for path in data_files(data):
            if path.is_file():
                read[str(path)] = file_digest(path)
    # A changed library may change the verification.
    for path in map(Path, options.get("ort_library") or ()):
        if path.is_file():
            read[str(path)] = file_digest(path)
    # The table of the runtime says more than its name.
    runtime = options.pop("runtime", None)
    targets = None if runtime is None else resolve(runtime)
    inputs_of_result = {
        "options": {**options, "external": external},
        "targets": [json_of(target) for target in targets or ()],
        "files": read,
        "versions": tool_versions(),
    }
    # The key is compared with one that was read from JSON.
    plain: dict[str, Any] = json.loads(json.dumps(inputs_of_result, default=_plain))
    return plain


def _digest_of_arrays(data: Any) -> str:
    """Return the BLAKE2b of a dict of arrays by input name, of several, or of arrays in the order of the inputs."""
    digest = hashlib.blake2b(digest_size=16)
    for at, values in enumerate([data] if isinstance(data, Mapping) else data):
        for name, value in sorted(values.items()) if isinstance(values, Mapping) else [(at, values)]:
            array = np.asarray(value)
            # Texts have no bytes of a fixed form.
            content = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
            digest.update(f"{name} {array.dtype} {array.shape} {len(content)}".encode() + content)
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Pass):
        return repr(value)
    return os.fspath(value)


def content(model: Model) -> dict[str, str]:
    """Return the digests of the model's file and of the files with its weights, by name. Raises LoadError."""
    return {name: file_digest(path) for name, path in sorted(model.files.items())}


def written(output: str) -> dict[str, str]:
    """Return the digests of the result's file and of its data file, if it has one, by name."""
    files = Path(output), Path(f"{output}.data")
    return {path.name: file_digest(path) for path in files if path.is_file()}


def whole(output: str, known: Mapping[str, str]) -> bool:
    """Return whether the result still has the digests `known`, which `written` returned."""
    return bool(known) and written(output) == known
