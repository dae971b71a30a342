"""How the numbers of an input become those that a node reads, and which number of the input becomes a given one there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from onnx_migrate.verify.inputs.constraints.facts import Argument
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["MOVING", "Path", "Step", "operators", "paths_behind"]


def operators(names: str) -> frozenset[str]:
    """Return the operators of a text, whose names are separated by blanks and ends of lines."""
    return frozenset(names.split())


_MOST_CONSTANTS = 3
"""Most numbers of one constant that are tried, for example of the biases of channels."""

MOVING = operators(
    """
    Identity Cast CastLike Reshape Transpose Squeeze Unsqueeze Flatten Slice Gather GatherElements GatherND Expand Tile
    Split Pad Dropout DepthToSpace SpaceToDepth Compress ReverseSequence Trilu SplitToSequence SequenceAt OptionalGetElement
    Optional
    """
)
"""Operators whose output holds elements of an input, unchanged except for a Cast."""

_KEEPING: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        [
            *sorted(MOVING),
            "Resize",
            "Relu",
            "LeakyRelu",
            "PRelu",
            "Clip",
            "Abs",
            "Floor",
            "Ceil",
            "Round",
            "ReduceMax",
            "ReduceMin",
            "MaxPool",
            "GlobalMaxPool",
            "TopK",
            "ThresholdedRelu",
            "Mod",
            "CumSum",
            "ArrayFeatureExtractor",
            "Imputer",
            "CastMap",
            "Unique",
            "ConcatFromSequence",
        ],
        (0,),
    ),
    **dict.fromkeys(("ReduceMean", "AveragePool", "GlobalAveragePool", "Softmax", "LogSoftmax"), (0,)),
    **dict.fromkeys(("ScatterElements", "ScatterND", "Scatter", "TensorScatter"), (0, 2)),
    "Where": (1, 2),
    "SequenceInsert": (0, 1),
    **dict.fromkeys(("Concat", "Max", "Min", "SequenceConstruct", "FeatureVectorizer", "Range"), None),
}
"""Operators that pass some elements through unchanged, with the positions of these inputs; None stands for all inputs."""

_IN_PLACE = operators(
    """
    Identity Cast CastLike Dropout Clip Relu Abs Imputer Optional OptionalGetElement SequenceConstruct SequenceInsert
    SequenceAt
    """
)
"""Operators that leave each element at its position."""

_MEANS = frozenset({"ReduceMean", "AveragePool", "GlobalAveragePool", "ReduceSum"})
"""Operators that pass an element through unchanged if all elements are the same."""

_ORDER_ALONE = frozenset({"Softmax", "LogSoftmax"})
"""Operators that keep equal elements equal, and no number."""

Inverse = Callable[[float], float | None]


@dataclass(frozen=True)
class Step:
    """A node as a function of one number, and its inverse, which returns None for a number that nothing becomes."""

    forward: Callable[[Any], Any]
    back: Inverse


@dataclass(frozen=True)
class Path:
    """The steps from an input to a value. `in_place` says that no element changed its position.

    `even` says that all elements must be the same for one of them to come out. `numbers` is false if only the order
    of elements is known behind the path.
    """

    steps: tuple[Step, ...] = ()
    in_place: bool = True
    even: bool = False
    numbers: bool = True

    def to_input(self, number: float) -> float | None:
        """Return the number of the input that becomes `number`, None if there is none."""
        value: float | None = number
        for step in reversed(self.steps):
            value = step.back(value) if value is not None else None
        return value if value is not None and np.isfinite(value) else None

    def is_exact(self, number: float, given: Array) -> bool:
        """Whether a number of the input becomes `number` without rounding, so that no other order of computing moves it."""
        narrow, wide = given, given.astype(np.float64)
        with np.errstate(all="ignore"):
            for step in self.steps:
                narrow = np.asarray(step.forward(narrow)).astype(given.dtype)
                wide = np.asarray(step.forward(wide))
        return bool(wide == number) and bool(narrow == number)


def paths_behind(argument: Argument, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the outputs of a node that the elements of one of its inputs reach, each with the path that leads there."""
    node = argument.node
    # Only these have several outputs with elements of the input.
    for output in node.output[:1] if node.op_type not in ("Split", "Unique") else node.output:
        for step in _steps(argument):
            yield (
                output,
                replace(
                    path,
                    steps=path.steps if step is None else (*path.steps, step),
                    in_place=path.in_place and (step is not None or node.op_type in _IN_PLACE),
                    even=path.even or node.op_type in _MEANS,
                    numbers=path.numbers and node.op_type not in _ORDER_ALONE,
                ),
            )


def _steps(argument: Argument) -> Sequence[Step | None]:
    """Return the steps that a node may do to the numbers of an input: None stands for no change.

    Unknown steps give an empty list.
    """
    operator, index = argument.node.op_type, argument.index
    if operator == "ReduceSum":
        return _sum(argument) if index == 0 else []
    if operator in _KEEPING:
        positions = _KEEPING[operator]
        return [None] if positions is None or index in positions else []
    if index == 0 and operator in _UNARY:
        return [_UNARY[operator]]
    arithmetic = _ARITHMETIC.get(operator)
    if arithmetic is None or len(argument.node.input) != 2:
        return []
    constant = argument.facts.value(argument.node.input[1 - index])
    if constant is None or constant.dtype.kind not in "iuf":
        return []
    numbers = sorted(set(constant.ravel().tolist()))[
        :_MOST_CONSTANTS
    ]  # np.unique imports numpy.ma, which takes long
    return [step for number in numbers if (step := arithmetic(number, index)) is not None]


def _sum(argument: Argument) -> Sequence[Step | None]:
    """Return the step of a ReduceSum: equal elements give one of them times their number. It is empty if that is unknown."""
    shape, axes = argument.shape(), argument.attribute("axes", [])
    count = (
        prod(shape[axis] for axis in axes) if shape and axes and max(axes) < len(shape) else prod(shape or ())
    )
    whole = len(argument.node.input) < 2 or argument.attribute("keepdims", 1) == 0
    return [_times(float(count))] if shape and (axes or whole) and count else []


def _times(number: float) -> Step:
    return Step(lambda x: x * number, lambda y: y / number)


def _add(number: float, index: int) -> Step | None:
    return Step(lambda x: x + number, lambda y: y - number)


def _sub(number: float, index: int) -> Step | None:
    if index == 0:
        return Step(lambda x: x - number, lambda y: y + number)
    return Step(lambda x: number - x, lambda y: number - y)


def _mul(number: float, index: int) -> Step | None:
    return _times(number) if number else None


def _div(number: float, index: int) -> Step | None:
    if not number:
        return None
    if index == 0:
        return Step(lambda x: x / number, lambda y: y * number)
    return Step(lambda x: number / x, lambda y: number / y if y else None)


def _pow(number: float, index: int) -> Step | None:
    if index == 1 or not number:
        return None
    return Step(lambda x: x**number, lambda y: y ** (1 / number) if y > 0 else None)


_ARITHMETIC: dict[str, Callable[[float, int], Step | None]] = {
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "Div": _div,
    "Pow": _pow,
}


def _in(low: float, high: float, inverse: Callable[[float], float]) -> Inverse:
    return lambda y: float(inverse(y)) if low < y < high else None


_UNARY: dict[str, Step] = {
    "Neg": Step(lambda x: -x, lambda y: -y),
    "Sqrt": Step(np.sqrt, lambda y: y * y if y >= 0 else None),
    "Exp": Step(np.exp, _in(0, 1e30, np.log)),
    "Log": Step(np.log, _in(-60, 60, np.exp)),
    "Sigmoid": Step(lambda x: 1 / (1 + np.exp(-x)), _in(0, 1, lambda y: float(np.log(y / (1 - y))))),
    "Tanh": Step(np.tanh, _in(-1, 1, np.arctanh)),
    "Reciprocal": Step(lambda x: 1 / x, lambda y: 1 / y if y else None),
}
