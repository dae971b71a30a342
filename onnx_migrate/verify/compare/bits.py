"""Checks that two values have the same bits, which a change that claims to keep every number must preserve."""

from __future__ import annotations

import onnx

from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.compare.values import paired
from onnx_migrate.verify.kernel import Observation, Tolerance, judge

__all__ = ["OTHER_ELEMENTS", "bit_difference", "tells_zeros_apart"]

OTHER_ELEMENTS = "another number of elements, or other keys"
"""The difference of two sequences or maps whose tensors cannot be compared one by one."""

_SIGNED_ZEROS = frozenset(
    {"Div", "Reciprocal", "Pow", "Cast", "CastLike", "BitCast", "Mod", "Atan", "Inverse"}
)
"""Operators whose result can depend on the sign of a zero; Cast writes "-0" as text."""


def bit_difference(name: str, original: object, result: object, *, zeros: bool = True) -> str:
    """Describe the first tensor in which two values do not have the same bits; "" if they have.

    With `zeros` unset, 0 and -0 count as the same: no later node can tell them apart.
    """
    parts = paired(name, original, result)
    if parts is None:
        return f"{name!r} has {OTHER_ELEMENTS}"
    for part, a, b in parts:
        entry = judge(Observation(part, a, b, Tolerance(atol=float("inf"))))
        if entry.problem:
            return f"{part!r} differs: {entry.problem}"
        if not entry.identical and (zeros or entry.largest_absolute):
            size = f"{entry.largest_absolute:.3g} ({100 * entry.largest_relative:.3g} % of the largest value)"
            return f"{part!r} differs in {entry.differing} of {count_of(entry.elements, 'element')}, by up to {size}"
    return ""


def tells_zeros_apart(model: onnx.ModelProto) -> bool:
    """Whether some node of the model may compute other numbers from -0 than from 0; nodes of other domains may."""
    return any(node.op_type in _SIGNED_ZEROS or not is_onnx(node.domain) for node in all_nodes(model))
