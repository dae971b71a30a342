"""Runs onnxsim on a file, in a child process; outside `simplify/`, whose modules the child does not need to import."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import onnx

__all__ = ["simplify_file"]

_THRESHOLDS = (1 << 20, 1 << 14, 1 << 10)
"""Limits in bytes for each folded tensor; the first with which the result stays within the budget is used."""


def simplify_file(source: str, result: str, allowed: int, fuse: bool, batch_norm: bool, alone: bool) -> int:
    """Simplify the model at `source`, write it to `result` and return its size in bytes.

    Without `fuse`, constants are folded, and other nodes stay as they are; without `batch_norm`, BatchNormalization is not fused.
    Nothing is written if even the lowest limit for folded tensors leads to more than `allowed` bytes. `alone` says that nothing
    else in this process registers schemas.
    """
    import onnxsim

    options = _schema_options(onnxsim.simplify, alone=alone)
    for threshold in _THRESHOLDS:
        simplified, _ = onnxsim.simplify(
            onnx.load(source),
            perform_optimization=fuse,
            skip_fuse_bn=not batch_norm,
            tensor_size_threshold=f"{threshold}B",
            **options,
        )
        size = simplified.ByteSize()
        if size <= allowed:
            break
    if size > allowed:
        return int(size)
    if size < onnx.checker.MAXIMUM_PROTOBUF:
        onnx.save(simplified, result)
    else:
        onnx.save(simplified, result, save_as_external_data=True, location=Path(result).name + ".data")
    return int(size)


def _schema_options(simplify: Callable[..., object], *, alone: bool) -> dict[str, bool]:
    """Return what makes onnxsim copy onnx's schemas, which are thousands, at the first call of a process alone."""
    global _copied
    before, _copied = _copied, True
    known = alone and before and "import_custom_schemas" in inspect.signature(simplify).parameters
    return {"import_custom_schemas": False} if known else {}


_copied = False
