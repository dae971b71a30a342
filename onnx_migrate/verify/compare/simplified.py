"""Whether simplification moves a tensor of an output farther than it may (rule 8)."""

from __future__ import annotations

from typing import Any

from onnx_migrate.verify.compare.values import flatten
from onnx_migrate.verify.kernel import rules

__all__ = ["worse_than"]


def worse_than(original: Any, unsimplified: Any, simplified: Any, eps: float = 0.0) -> str:
    """Describe the first tensor of an output that simplification moves too far; "" if there is none.

    `eps` is the least eps, if the user asked for a coarser type.
    """
    plain, moved = dict(flatten("", unsimplified)), dict(flatten("", simplified))
    for part, array in flatten("", original):
        before, after = plain.get(part), moved.get(part)
        if array is None or before is None or after is None:
            continue
        if worse := rules.worse_than(array, before, after, eps):
            return worse
    return ""
