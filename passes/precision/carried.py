"""Operators that carry a mask or another huge number on: which of their inputs they move, and which they compute with."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
from onnx import AttributeProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value

from .numbers import largest

__all__ = ["ALL_INPUTS", "ARITHMETIC", "CARRIED", "bounds_nothing", "flows", "has_huge_attribute"]

ALL_INPUTS = tuple(range(64))

CARRIED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("Concat", "Max", "Min"), ALL_INPUTS),
    **dict.fromkeys(
        (
            "Abs", "Cast", "CastLike", "Compress", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements",
            "GatherND", "GlobalMaxPool", "Identity", "MaxPool", "Neg", "ReduceMax", "ReduceMin", "Relu", "Reshape",
            "ReverseSequence", "Slice", "Softplus", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Trilu",
            "Unsqueeze",
        ),
        (0,),
    ),
    "Clip": (0, 1, 2),
    "OneHot": (2,),
    "Pad": (0, 2),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), (0, 2)),
    "Where": (1, 2),
}  # fmt: skip
"""Operators that give elements of some inputs, with these inputs."""

ARITHMETIC = frozenset(
    {
        "Add",
        "CumSum",
        "Div",
        "LogSoftmax",
        "Mean",
        "Mul",
        "ReduceLogSumExp",
        "ReduceMean",
        "ReduceSum",
        "Sub",
        "Sum",
    }
)
"""Operators with a huge result if their input is huge."""


def flows(step: Step) -> Iterator[tuple[Value, Value]]:
    """Yield pairs of one value outside and inside a branch or loop: inputs with body inputs, body outputs with outputs."""
    for _, inner in step.inner:
        inputs = [inner.values.get(value.name) for value in inner.body.input]
        outputs = [inner.find(value.name) for value in inner.body.output]
        first = 2 if step.is_a("Loop") else 0  # before these are the number of iterations and the condition
        pairs = [*zip(step.inputs[first:], inputs[first:], strict=False)] if step.is_a("Loop", "Scan") else []
        pairs += zip(outputs[1:] if step.is_a("Loop") else outputs, step.outputs, strict=False)
        # The states after one iteration are those before the next.
        if step.is_a("Loop"):
            pairs += zip(outputs[1:], inputs[2:], strict=False)
        elif step.is_a("Scan"):
            pairs += zip(outputs, inputs[: _states(step, inner)], strict=False)
        yield from ((source, target) for source, target in pairs if source is not None and target is not None)


def _states(step: Step, inner: Frame) -> int:
    scanned = next(
        (attribute.i for attribute in step.node.attribute if attribute.name == "num_scan_inputs"), 0
    )
    return len(inner.body.input) - int(scanned)


def bounds_nothing(step: Step, value: Value, huge: Collection[float]) -> bool:
    """Return whether a huge constant bounds nothing: Max(x, -1e9) is x."""
    if value.tensor is None:
        return False
    if step.is_a("Clip"):
        index = step.inputs.index(value)
        return max(huge) < 0 if index == 1 else index == 2 and min(huge) > 0
    others = [other for other in step.read if other is not value]
    if not others or not step.is_a("Max", "Min"):
        return False
    return max(huge) < 0 if step.is_a("Max") else min(huge) > 0


def has_huge_attribute(step: Step, target: int) -> bool:
    """Return whether an attribute of a node overflows in a type; a bound of Clip and a padding are values as others are."""
    if step.domain or step.is_a("Clip", "Constant", "Pad"):
        return False
    stated = [
        number
        for attribute in step.node.attribute
        if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS)
        for number in (attribute.f, *attribute.floats)
    ]
    return any(np.isfinite(number) and abs(number) > largest(target) for number in stated)
