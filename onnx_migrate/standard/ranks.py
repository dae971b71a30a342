"""The number of axes that inputs must have, and numbers that cannot be an axis or a size.

The texts of operators state these rules, and onnx's inference does not check them.

Source: the texts of onnx.defs ("tensor of rank r >= 1", "of the same rank as the data"), which docs/Operators.md of
onnx prints.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_migrate.messages import count_of

__all__ = ["number_violation", "rank_violation"]

_LEAST = {
    "CumSum": 1,
    "DepthToSpace": 4,
    "Gather": 1,
    "GatherElements": 1,
    "GatherND": 1,
    "NegativeLogLikelihoodLoss": 2,
    "ReverseSequence": 2,
    "Scatter": 1,
    "ScatterElements": 1,
    "ScatterND": 1,
    "SoftmaxCrossEntropyLoss": 2,
    "SpaceToDepth": 4,
    "Split": 1,
    "TopK": 1,
}
"""The fewest axes of input 0."""

_SAME = {
    "DequantizeLinear": (1, 2),
    "GatherElements": (0, 1),
    "QuantizeLinear": (1, 2),
    "Scatter": (0, 1, 2),
    "ScatterElements": (0, 1, 2),
}
"""The inputs of an operator that have as many axes as each other."""

_AXES = frozenset(("batch_axis", "time_axis"))
_ONE_OR_MORE = frozenset(
    (
        "block_shape",
        "blocksize",
        "dilations",
        "group",
        "kernel_shape",
        "num_groups",
        "offset_group",
        "strides",
    )
)
"""Attributes that are axes of input 0, and attributes whose numbers are 1 or more."""

_LARGEST = 2**31
"""A number beyond which nothing is an axis, a size or a count."""


def number_violation(name: str, numbers: Sequence[float], rank: int | None) -> str | None:
    """Return why a number of an attribute cannot be an axis, size or count; None if nothing shows that.

    `rank` is the number of axes of input 0; None if it is unknown. The message has no subject. Callers use this only
    after a failed rewrite, because large numbers can be valid: a Slice may end at 2^63 - 1.
    """
    for number in numbers:
        if abs(number) > _LARGEST:
            return f"has {name}={number}, which is beyond all axes and sizes"
        if name in _ONE_OR_MORE and number < 1:
            return f"has {name}={number}, which must be 1 or more"
        if name in _AXES and rank is not None and not -rank <= number < rank:
            return f"has {name}={number}, and its input has {count_of(rank, 'axis')}"
    return None


def rank_violation(operator: str, ranks: Sequence[int | None], axis: int = 0) -> str | None:
    """Return why the ranks of a node's inputs or its `axis` are not allowed; None if nothing shows that. None is an unknown rank.

    `operator` is of ai.onnx. The message has no subject.
    """
    first, *others = [index for index in _SAME.get(operator, (0,)) if index < len(ranks)] or [0]
    for index in others:
        if None not in (ranks[first], ranks[index]) and ranks[first] != ranks[index]:
            axes = count_of(ranks[first] or 0, "axis")
            return f"has {axes} in input {first} and {ranks[index]} in input {index}, and {operator} takes as many"
    rank, least = ranks[0] if ranks else None, _LEAST.get(operator)
    if rank is None or least is None:
        return None
    if rank < least:
        return f"has an input of {count_of(rank, 'axis')}, and {operator} takes {least} or more"
    if not -rank <= axis < rank:
        return f"has axis={axis}, and its input has {count_of(rank, 'axis')}"
    return None
