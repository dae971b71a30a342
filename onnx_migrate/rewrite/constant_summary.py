"""Constants as a report shows them: name, type and shape, and the values of small ones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import onnx
from onnx import TensorProto

from onnx_migrate.analysis.scope import Scope

__all__ = ["constant_summaries", "values_text"]

_LARGEST = 8
"""Elements of a constant up to which its values are told."""


def constant_summaries(
    scope: Scope, names: Iterable[str], kept: dict[str, bytes] | None = None
) -> tuple[bytes, ...]:
    """Return those of the values that are constants, as serialised tensors; where the values of one are not
    told, because they are many or lie in a file, it says that they lie elsewhere.

    Costs nothing for the size of a constant. In `kept` are those of an earlier call for the same scope, and those of
    this one are put there.
    """
    kept = {} if kept is None else kept
    found = []
    for name in dict.fromkeys(names):
        if name not in kept:
            holder = scope.constant_source(name) if name else None
            if isinstance(holder, onnx.NodeProto):
                holder = _held(holder, scope, name)
            if holder is None:
                continue
            kept[name] = _summary(holder, name)
        found.append(kept[name])
    return tuple(found)


def values_text(summary: TensorProto) -> str | None:
    """Return the values of a summary as short text, as in "[1, 0.5]"; None where it has none."""
    if summary.data_location == TensorProto.EXTERNAL:
        return None
    array = onnx.numpy_helper.to_array(summary)
    words = [_word(value) for value in array.reshape(-1)]
    return f"[{', '.join(words)}]" if summary.dims else words[0]


def _word(value: Any) -> str:
    """Return a number in short; what NumPy gives for text is bytes or str."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value
    if value.dtype.kind in "iub":
        return str(value).lower()
    return f"{value if value.dtype.kind == 'c' else float(value):g}"


def _held(node: onnx.NodeProto, scope: Scope, name: str) -> TensorProto | None:
    """Return what a Constant node holds, None for text and sparse tensors."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t
    array = scope.constant(name)
    return None if array is None else onnx.numpy_helper.from_array(array)


def _summary(tensor: TensorProto, name: str) -> bytes:
    if math.prod(tensor.dims) <= _LARGEST and tensor.data_location != TensorProto.EXTERNAL:
        summary = TensorProto()
        summary.CopyFrom(tensor)
        summary.name = name
        summary.ClearField("doc_string")
    else:
        elsewhere = TensorProto.EXTERNAL
        summary = TensorProto(
            name=name, data_type=tensor.data_type, dims=tensor.dims, data_location=elsewhere
        )
    return summary.SerializeToString(deterministic=True)
