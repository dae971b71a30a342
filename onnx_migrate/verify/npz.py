"""Writes arrays to an .npz file under any names."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

__all__ = ["write_npz"]


def write_npz(file: Path | IO[bytes], values: Mapping[str, Any]) -> None:
    """Write those values that are arrays; texts get NumPy's own type, so that no reader needs pickle.

    `numpy.savez` takes the names as keywords, and cannot write an array named "file" or "allow_pickle".
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                array = value.astype("U") if value.dtype.kind == "O" else value
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
