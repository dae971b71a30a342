"""Whether values that the result's nodes compute from the original's own values are the original's within rounding."""

from __future__ import annotations

from onnx_migrate.verify.compare.bits import OTHER_ELEMENTS
from onnx_migrate.verify.compare.values import paired
from onnx_migrate.verify.kernel import rules

__all__ = ["beyond_one_node"]


def beyond_one_node(original: object, recomputed: object, ulps: float) -> str:
    """Describe the first tensor of a value that differs by more than one node may round; "" if none does.

    `ulps` are units in the last place at the tensor's largest magnitude.
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
