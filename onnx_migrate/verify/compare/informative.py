"""Checks whether an output can show a difference: an output that is the same for all inputs proves nothing.

An output may also hide a small difference in the values that its last operators read, or be bounded by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import onnx

from onnx_migrate.advice import untried
from onnx_migrate.model.graphs import producers
from onnx_migrate.verify.compare.values import extremes, flatten
from onnx_migrate.verify.kernel.arrays import Array, in_blocks, is_float, widened

__all__ = ["VARYING_INPUTS", "bounded_outputs", "is_informative", "masked_outputs", "uninformative_outputs"]

VARYING_INPUTS = untried("give inputs on which outputs vary with --input-data")
"""Advice for users about outputs that are not informative, for messages."""


def is_informative(values: Sequence[Any]) -> bool:
    """Whether the values of one output, one for each run, vary within a run or between two runs that follow.

    A tensor does not vary if its finite elements are all the same within rounding. Nor does it if they are all at one of two
    ends, like those of a saturated Sigmoid.
    """
    arrays = [[array for _, array in flatten("", value)] for value in values]
    return any(_varies(array) for parts in arrays for array in parts) or any(
        _changed(a, b) for a, b in pairwise(arrays)
    )


def uninformative_outputs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the outputs that are not informative, in the order of the outputs."""
    return [name for name in runs[0] if not is_informative([run[name] for run in runs])] if runs else []


def _varies(array: Array | None) -> bool:
    if array is None or array.size == 0:
        return False
    if not is_float(array) or array.dtype.kind == "c":
        return bool(np.any(array != array.flat[0]))
    ends = extremes(array)
    if ends is None:
        return False
    eps = (
        float(np.finfo(array.dtype).eps)
        if array.dtype.kind == "f" and array.dtype.isbuiltin == 1
        else 2.0**-7
    )
    least, extent = ends[0], ends[1] - ends[0]
    if not extent > 64 * eps * max(-least, ends[1]):
        return False
    low, high = least + 1e-4 * extent, ends[1] - 1e-4 * extent
    blocks = (widened(block) for block, _ in in_blocks(array, array))
    if any(bool(np.any((block > low) & (block < high))) for block in blocks):
        return True
    # Only two distinct values: a Softmax or Sigmoid that is saturated, which hides what is computed before it.
    return sum(int(np.count_nonzero(np.isfinite(block))) for block, _ in in_blocks(array, array)) <= 2


def _changed(one: list[Array | None], other: list[Array | None]) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    return len(one) != len(other) or any(
        a.shape != b.shape or _varies(np.stack([np.resize(a, 1), np.resize(b, 1)]))
        for a, b in pairs
        if a.size and b.size
    )


_BOUNDED = frozenset({"Sigmoid", "HardSigmoid", "Softmax", "Tanh"})
"""Operators whose outputs lie in [-1, 1] and are flat at both ends."""

_DISCRETE = frozenset(
    {
        "ArgMax",
        "ArgMin",
        "TopK",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Round",
        "Sign",
        "Floor",
        "Ceil",
    }
)
"""Operators whose output changes in steps."""

_TRANSPARENT = frozenset({"Identity", "Cast", "Squeeze", "Unsqueeze", "Not"})
"""Operators that hide nothing: the traversal upstream goes past them."""


def masked_outputs(model: onnx.ModelProto) -> dict[str, str]:
    """Return each output that bounded or discrete operators produce, with the computed value before these.

    A difference that a saturated Sigmoid, an index or a comparison hides is visible in that value.
    """
    producer_of = producers(model.graph)
    inputs = {value.name for value in model.graph.input}
    value_before: dict[str, str] = {}
    for output in model.graph.output:
        name, masked = output.name, False
        # Nothing is known about operators of other domains.
        while (node := producer_of.get(name)) is not None and node.domain in ("", "ai.onnx"):
            if node.op_type not in _BOUNDED | _DISCRETE | _TRANSPARENT:
                break
            # A node that only moves elements hides nothing.
            masked |= node.op_type not in _TRANSPARENT
            name = node.input[0]
        if masked and name in producer_of and name not in inputs:
            value_before[output.name] = name
    return value_before


def bounded_outputs(model: onnx.ModelProto) -> set[str]:
    """Return the outputs that lie in [-1, 1] by their last operator: runtimes round them relative to 1."""
    last = {output: node.op_type for node in model.graph.node for output in node.output}
    return {output.name for output in model.graph.output if last.get(output.name) in _BOUNDED}
