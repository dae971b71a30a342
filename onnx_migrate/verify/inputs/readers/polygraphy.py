"""Reads inputs in the JSON of `polygraphy run --save-inputs`, or in a list of sets with numbers in lists.

Polygraphy writes a list with an object for each run. An array in it is an object too, with the bytes of an .npy file in base64:
{"array": "k05VTVBZ...", "polygraphy_class": "ndarray"}. Early releases wrote a key "__polygraphy_encoded_ndarray" for the class.
Source: polygraphy/json/serde.py in the package polygraphy 0.53.6.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open import read_at_most
from onnx_migrate.verify.inputs.input_files import byte_limit, reason_of
from onnx_migrate.verify.inputs.source import Part, Source, notes_on
from onnx_migrate.verify.inputs.stored import spaced

__all__ = ["read_file", "read_folder"]

_CLASS = "polygraphy_class"
_FORMER_CLASS = "__polygraphy_encoded_"
_HINT = "it is a list of objects with an array by input name, as polygraphy run --save-inputs writes"


def read_file(source: Source) -> Part:
    """Return a feed for each object in the list."""
    return Part(source.keep(_sets(source.path, source), source.path.name))


def read_folder(source: Source, files: Sequence[Path]) -> Part:
    """Return the feeds of all files; Polygraphy writes one for each run if it is given a folder."""
    chosen = spaced(files, source.most)
    sets = (feed for path in chosen for feed in _sets(path, source))
    return Part(source.keep(sets, source.path.name), notes_on(len(chosen), len(files), "file"))


def _sets(path: Path, source: Source) -> Iterator[Mapping[str, Any]]:
    """Yield the sets of inputs in a file. Raises UsageError for a file of another kind."""
    try:
        content = json.loads(
            read_at_most(path, byte_limit()), object_pairs_hook=lambda pairs: _decoded(dict(pairs))
        )
    except Exception as error:  # zipfile's and NumPy's own kinds, by what is wrong
        raise UsageError(
            f"{path}: cannot be read as input data: {reason_of(error)}", code="input-data", hint=_HINT
        ) from error
    sets = content if isinstance(content, list) else [content]
    if source.name:
        sets = [each if isinstance(each, Mapping) else {source.name: each} for each in sets]
    if not sets or not all(isinstance(each, Mapping) for each in sets):
        raise UsageError(f"{path}: has no inputs by name", code="input-data", hint=_HINT)
    yield from sets


def _decoded(value: dict[str, Any]) -> Any:
    """Return the array that an object stands for, or the object. Raises ValueError for another class of Polygraphy."""
    former = next((key for key in value if key.startswith(_FORMER_CLASS)), "")
    kind = value.get(_CLASS) or former.removeprefix(_FORMER_CLASS)
    if not kind:
        return value
    if kind != "ndarray" or not isinstance(value.get("array"), str):
        raise ValueError(
            f"it has a value of the class {kind}, and only arrays of NumPy are read"
            + ("; save the inputs with --data-loader-backend-module numpy" if kind == "Tensor" else "")
        )
    return _array(value["array"])


def _array(text: str) -> Any:
    """Return the array in a text; early releases wrote the bytes as latin-1, and an archive for the array.

    Raises ValueError, and the errors of zipfile and NumPy.
    """
    try:
        content = base64.b64decode(text, validate=True)
    except ValueError:
        content = text.encode("latin-1")
    content_array = np.load(io.BytesIO(content), allow_pickle=False)
    if isinstance(content_array, np.ndarray):
        return content_array
    arrays = list(content_array.values())
    if not arrays:
        raise ValueError("it has an archive without an array")
    return arrays[0]
