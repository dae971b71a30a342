"""Rules 4 and 8 of the kernel for whole values, whose tensors are compared one by one."""

from __future__ import annotations

from typing import Any

from onnx_migrate.verify.compare.bits import OTHER_ELEMENTS
from onnx_migrate.verify.compare.values import flatten, paired
from onnx_migrate.verify.kernel import rules

__all__ = ["beyond_one_node", "worse_than"]


def beyond_one_node(original: object, recomputed: object, ulps: float) -> str:
    """Describe the first tensor of a value that differs by more than one node may round; "" if none does.

    `ulps` are units in the last place at the tensor's largest value.
    """
    parts = paired("", original, recomputed)
    if parts is None:
        return OTHER_ELEMENTS
    for _, a, b in parts:
        if a is None or b is None:
            if a is not b:
                return "it is present in only one of the models"
        elif problem := rules.beyond_one_node(a, b, ulps):
            return problem
    return ""


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
