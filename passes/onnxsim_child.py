"""Runs onnxsim on a file, in a child process; outside `simplify/`, whose modules the child does not need to import."""

from __future__ import annotations

from pathlib import Path

import onnx

__all__ = ["simplify_file"]

_THRESHOLDS = (1 << 20, 1 << 14, 1 << 10)
"""Limits in bytes for each folded tensor; the first with which the result stays within the budget is used."""


def simplify_file(source: str, result: str, allowed: int, fuse: bool) -> int:
    """Simplify the model at `source`, write it to `result` and return its size in bytes.

    Without `fuse`, constants are folded, and other nodes stay as they are. Nothing is written if even the lowest limit for
    folded tensors leads to more than `allowed` bytes.
    """
    import onnxsim

    for threshold in _THRESHOLDS:
        simplified, _ = onnxsim.simplify(
            onnx.load(source), perform_optimization=fuse, tensor_size_threshold=f"{threshold}B"
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
