"""How far each runtime's own rounding takes it from ONNX Runtime, as measured, and values in forms of its own.

Measured by `python -m tests.verify.other_runtimes.measure` over the fixtures and the node tests of onnx's releases: the largest
difference among the models that a runtime computes as ONNX Runtime does, in units of the eps of float32 times the largest
magnitude of the output, beyond ten times the noise that ONNX Runtime shows itself (docs/proving.md has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnx_migrate.verify.compare.tolerance import Tolerance

__all__ = ["FLOORS", "in_form_of", "tolerance_of"]

FLOORS = {
    "onnxruntime": 16.0,
    "onnxruntime-web": 16.0,
    "openvino": 64.0,
    "opencv": 64.0,
    "tract": 64.0,
    "mnn": 4096.0,
    "ncnn": 64.0,
    "rknn": 2.0**17,
}
"""What each may be off, in units of eps of the largest magnitude, whatever the model."""

_EPS = 2.0**-23


def tolerance_of(name: str, eps: float, *, quantized: bool, given: Tolerance) -> Tolerance:
    """Return what may differ in a runtime, for a model whose coarsest type has this eps; of `given`, rtol and atol count.

    No runtime but ONNX Runtime has doubles throughout: the eps is at least that of float32.
    """
    exact = name in ("onnxruntime", "onnxruntime-web")
    return Tolerance(
        given.rtol,
        given.atol,
        floor=FLOORS[name],
        quantum=quantized,
        eps=eps if exact else max(eps, _EPS),
    )


def in_form_of(
    found: Mapping[str, Any], expected: Mapping[str, Any], *, loses_axes: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return a run's values in the types and shapes of those expected, as far as that changes no number, and notes.

    A runtime without 64-bit integers, doubles or bools returns 32-bit ones or 0 and 1. With `loses_axes` it may also drop
    or add axes of length 1.
    """
    values: dict[str, Any] = {}
    notes = []
    for name, value in found.items():
        wanted = expected.get(name)
        if not isinstance(value, np.ndarray) or not isinstance(wanted, np.ndarray):
            values[name] = value
            continue
        if value.shape != wanted.shape and loses_axes and _squeezed(value) == _squeezed(wanted):
            notes.append(f"{name!r} has the shape {list(value.shape)} in place of {list(wanted.shape)}")
            value = value.reshape(wanted.shape)
        if value.dtype != wanted.dtype:
            changed = _as_type(value, wanted.dtype)
            if changed is not None:
                notes.append(f"{name!r} is of {value.dtype} in place of {wanted.dtype}")
                value = changed
        values[name] = value
    return values, notes


def _squeezed(value: Any) -> list[int]:
    return [length for length in value.shape if length != 1]


def _as_type(value: Any, wanted: Any) -> Any:
    """Return the values in another type, None where those are not of the same kind of number."""
    if value.dtype.kind == "f" and wanted.kind in "iub":
        whole = np.all(np.isfinite(value)) and np.array_equal(value, np.round(value))
        return value.astype(wanted) if whole else None
    kinds = {value.dtype.kind, wanted.kind}
    if kinds <= set("iub") or kinds == {"f"}:
        return value.astype(wanted)
    return None
